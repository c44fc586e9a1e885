"""HTTP requests of API servers to the webhooks: routing, reading the body, counting.

`webhooks.review` defines the answers; this module is about HTTP. The status is 200 for every request that reaches a
webhook, 404 for unknown paths, and 500 only for a bug in this program.
"""

import asyncio
import ssl
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from functools import partial
from typing import Any, Protocol

from aiohttp import ClientConnectionResetError, web

from kube.runtime import tracing
from process.logging import get_logger
from process.probes import CheckFailed, HealthCheck, cached
from process.server import HttpServer, read_body
from webhooks import review
from webhooks.fair_queue import LARGE, FairQueue, TooManyReviews, user_of
from webhooks.metrics import request_metrics
from webhooks.review import Endpoint

MAX_CONNECTIONS = 1024

MAX_BUFFERED = 32 * 1024**2
"""Bytes of unanswered requests of all clients together."""

IDLE_SECONDS = 120.0
READ_AND_ANSWER_SECONDS = 30.0
"""Longer than any API server waits for a webhook."""

_NOT_FOUND_LOG_SECONDS = 60.0
_REFUSED_LOG_SECONDS = 60.0


class Clients:
    """Clients that may call webhooks: API servers, identified by their certificates.

    A request to a webhook names its user, and the webhook trusts that. So an answer reveals what that user may do, and
    which objects exist; and it costs time. If certificates are required, all other clients are refused.

    `names` are the common names that a certificate may have; empty if any signed by the authorities may be used.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)

    def knows(self, transport: asyncio.BaseTransport | None) -> bool:
        """Whether the client of a connection has shown such a certificate."""
        shown = None if transport is None else transport.get_extra_info("peercert")
        if not shown:
            return False
        return not self._names or not self._names.isdisjoint(_common_names(shown))


def _common_names(certificate: dict[str, Any]) -> list[str]:
    return [value for rdn in certificate.get("subject", ()) for name, value in rdn if name == "commonName"]


@dataclass(frozen=True, slots=True)
class Disabled:
    """A path of a disabled webhook, and the setting that would enable it."""

    path: str
    webhook: str
    setting: str


class Requests:
    """Answers HTTP requests by endpoints, and logs requests to disabled ones.

    Args:
        clients: clients that are answered; None for all.
        public: paths at which all clients are answered nevertheless.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        disabled: Sequence[Disabled] = (),
        *,
        clients: Clients | None = None,
        public: Collection[str] = (),
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._clients = clients
        self._public = frozenset(public)
        self._refused_at = float("-inf")
        self._endpoints = {path: (endpoint, request_metrics.of(path)) for path, endpoint in endpoints.items()}
        self._unknown_paths = _UnknownPaths(disabled, clock)
        self._large_reviews = FairQueue()
        self._clock = clock
        self._log = get_logger("webhook")

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.raw_path.partition("?")[0]
        if self._clients is not None and path not in self._public and not self._clients.knows(request.transport):
            return self._unauthorized()
        found = self._endpoints.get(path)
        if found is None:
            self._unknown_paths.log(path)
            return web.Response(status=404, text="404 page not found\n")
        endpoint, metrics = found
        metrics.in_flight += 1
        begin = self._clock()
        status = 500
        try:
            with tracing.served(request.method, path, request.headers):
                answer = await self._answer(request, endpoint)
            status = 200
            if request.method == "HEAD":
                return web.Response(body=answer, content_type="application/json")
            return JsonAnswer(answer)
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 - one request must not end the process, and needs an answer
            self._log.error("Cannot answer a request", path=path, error=error)
            return web.Response(status=500, text="internal server error\n")
        finally:
            metrics.in_flight -= 1
            metrics.answered(status, self._clock() - begin)

    def _unauthorized(self) -> web.Response:
        now = self._clock()
        if now - self._refused_at >= _REFUSED_LOG_SECONDS:
            self._refused_at = now
            self._log.warning(
                "Rejected a client without a certificate that server.webhooks.tls allows; if it is the API server, "
                "configure one in its AdmissionConfiguration"
            )
        response = web.Response(status=401, text="401 unauthorized\n")
        response.force_close()
        return response

    async def _answer(self, request: web.BaseRequest, endpoint: Endpoint) -> bytes:
        if (request.content_length or 0) >= review.TOO_LARGE:
            return review.too_large()
        try:
            body = await read_body(request, most=review.TOO_LARGE - 1)
        except web.HTTPRequestEntityTooLarge:
            return review.too_large()
        except (web.RequestPayloadError, web.PayloadAccessError) as error:
            return review.failed(400, str(error) or type(error).__name__)
        content_type = request.headers.get("Content-Type", "")
        if len(body) <= LARGE:
            return await endpoint(body, content_type)
        try:
            return await self._large_reviews.work(len(body), user_of(body), partial(endpoint, body, content_type))
        except TooManyReviews as error:
            return review.failed(429, str(error))


class _UnknownPaths:
    """Logs requests for paths that are not served. A wrong configuration sends one for every Pod of a cluster."""

    def __init__(self, disabled: Sequence[Disabled], clock: Callable[[], float]) -> None:
        self._disabled = {each.path: each for each in disabled}
        self._clock = clock
        self._logged_at: dict[str, float] = {}
        """Time of the last log by path; all unknown paths share one entry, since their number is unlimited."""
        self._log = get_logger("webhook")

    def log(self, path: str) -> None:
        disabled = self._disabled.get(path)
        logged_as = path if disabled else ""
        now = self._clock()
        if now - self._logged_at.get(logged_as, float("-inf")) < _NOT_FOUND_LOG_SECONDS:
            return
        self._logged_at[logged_as] = now
        if disabled is None:
            self._log.warning("Received a request with an unknown path", path=path[:256])
        else:
            self._log.warning(
                "Received a request for a disabled webhook; enable it, or remove it from the webhook configurations",
                webhook=disabled.webhook,
                path=path,
                setting=disabled.setting,
            )


# --- answers
#
# aiohttp's own response supports any status, header and body; preparing it takes longer than the decision about
# most objects. Ours are all alike: 200, and JSON whose length is known.


_HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: %s\r\nContent-Length: "
_CLOSE = b"\r\nConnection: close\r\n\r\n"
_KEEP = b"\r\n\r\n"


class _Head:
    """Begin of all answers within one second."""

    def __init__(self) -> None:
        self._second = -1
        self._bytes = b""

    def now(self) -> bytes:
        second = int(time.time())
        if second != self._second:
            self._second = second
            self._bytes = (_HEAD % formatdate(second, usegmt=True)).encode()
        return self._bytes


_head = _Head()


class JsonAnswer(web.StreamResponse):
    """Answer for clients of HTTP/1.1, such as API servers."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self._bytes = body
        self._request: web.BaseRequest | None = None
        self._stays: bool | None = None
        self._is_written = False

    @property
    def keep_alive(self) -> bool | None:
        return self._stays

    def force_close(self) -> None:
        self._stays = False

    async def prepare(self, request: web.BaseRequest) -> None:
        self._request = request
        if self._stays is None:
            self._stays = request.keep_alive

    async def write_eof(self, data: bytes = b"") -> None:
        if self._is_written:
            return
        assert self._request is not None
        transport = self._request.transport
        if transport is None or transport.is_closing():
            raise ClientConnectionResetError("the client has disconnected")
        body = self._bytes
        length = str(len(body)).encode()
        transport.write(b"".join((_head.now(), length, _KEEP if self._stays else _CLOSE, body, data)))
        self._is_written = True
        # A client that sends requests and never reads has to wait. `writer` is undocumented, but not private.
        await self._request.writer.drain()


# --- the server


def webhook_server(requests: Requests, *, host: str, port: int, tls: ssl.SSLContext, grace_period: float) -> HttpServer:
    """Return the server, not yet bound.

    The first part of the grace period serves clients that have not observed the end yet, the second is for requests in
    flight, which aiohttp may use twice; a quarter is left for the rest.
    """
    return HttpServer(
        "webhooks",
        requests,
        host=host,
        port=port,
        tls=tls,
        max_connections=MAX_CONNECTIONS,
        request_timeout=READ_AND_ANSWER_SECONDS,
        # Longer than API servers keep unused connections, so that they are the ones to close them.
        idle_timeout=IDLE_SECONDS,
        max_buffered=MAX_BUFFERED,
        linger=0.35 * grace_period,
        drain_timeout=0.2 * grace_period,
    )


class Serving(Protocol):
    @property
    def address(self) -> tuple[str, int]: ...

    @property
    def serving(self) -> bool:
        """Whether it has started, and not begun to stop."""


def serving_check(name: str, server: Serving) -> HealthCheck:
    """Return a check for TLS connections, dialled every few seconds at most. It fails at once when the server stops."""

    async def dial() -> None:
        host, port = server.address
        _, writer = await asyncio.open_connection(host or "localhost", port, ssl=_any_certificate())
        writer.close()

    dialled = cached(HealthCheck(name, dial), timeout=9.0)

    async def run() -> None:
        if not server.serving:
            raise CheckFailed("webhook server is not serving: it has not been started yet, or is about to stop")
        await dialled.run()

    return HealthCheck(name, run)


def _any_certificate() -> ssl.SSLContext:
    """Return a context that accepts any certificate: only the connection is checked, and the names may differ."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
