"""A reverse proxy that stands between a Kubernetes client and a real API server, and injects faults.

A real API server can't be ordered to lose an answer or to fall silent, so tests put this proxy in front of it. It ends
TLS on both sides, passes bytes on as they come, and checks its rules once per request; a request that no rule takes
goes through untouched. Failures upstream are failures downstream: the proxy hides nothing.

    async with FaultProxy(upstream=c.url, upstream_ca=c.ca, authority=c.authority, seed=7) as proxy:
        proxy.write_kubeconfig(tmp_path / "kubeconfig", token=c.token)
        proxy.rules.add(
            Rule(fault=throttled(retry_after=1), methods=("POST",), path="/secrets$", times=3),
            Rule(fault=Reset(carried_out=True), methods=("PUT", "PATCH"), probability=0.1),
            Rule(fault=EndWatch(how=WatchEnd.SILENT, after_events=5), path="/managedresources$"),
        )
        ...  # run the client
        proxy.end_watches(WatchEnd.EXPIRED)
        assert proxy.injected["throttled"] == 3
        proxy.rules.clear()

Faults and rules are in `devcluster.testing.faults`. All methods belong to the event loop that runs the proxy.

Limits: HTTP/1.1 with bearer tokens (client certificates end here), no upgrades (exec, port-forward), and watches in
JSON, since faults of watches work on lines.
"""

import asyncio
import collections
import contextlib
import functools
import json
import re
import socket
import ssl
import struct
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import aiohttp
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from devcluster.testing.faults import (
    Answer,
    Delay,
    EndWatch,
    Fault,
    Foreign,
    LateEvents,
    LineJoiner,
    Overtake,
    RepeatEvents,
    Request,
    Reset,
    Rules,
    Silence,
    Trickle,
    Truncated,
    WatchEnd,
    each_twice,
    first_lines,
    object_path,
)
from kube.runtime.transport import AbortingResponse
from localprocesses.pki import Authority, kubeconfig, token_credentials, write_private
from process.listener import Listener

_HOST = "127.0.0.1"
_MAX_BODY = 16 * 2**20
"""Bytes of a request body or of one watch event; an API server takes less."""
_MAX_UPSTREAM_CONNECTIONS = 1000
_LOG_SIZE = 10_000
_HOP_BY_HOP = frozenset(
    {"connection", "expect", "host", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
_NOT_JSON = Answer(
    name="not-json",
    code=406,
    reason="NotAcceptable",
    message="the fault proxy understands watches in JSON only; ask with Accept: application/json",
)


@dataclass(slots=True, kw_only=True)
class LogEntry:
    """A request that reached the proxy. It is logged on arrival, and completed as it goes on."""

    request: Request
    fault: str = ""
    """Name of the fault that a rule chose."""
    status: int | None = None
    """Status of the head sent to the client; None without one."""
    answer: int | None = None
    """Status of the API server's answer, also of one that was kept from the client; None without one."""
    error: str = ""
    """Failure that no rule caused: on the API server's side, or the client went away."""


@dataclass(slots=True, eq=False)
class _OpenWatch:
    """A watch whose head was passed on. Its deadline is brought forward to end it from outside."""

    path: str
    deadline: asyncio.Timeout
    watch_end: WatchEnd | None

    def end(self, how: WatchEnd) -> None:
        self.watch_end = how
        self.deadline.reschedule(asyncio.get_running_loop().time())


class FaultProxy:
    """An async context manager; it listens on a free port of 127.0.0.1 while it is entered.

    `upstream` is the API server's URL and `upstream_ca` the PEM of the CA that signed its certificate. The
    proxy's own certificate is issued by `authority`, which clients have to trust. `seed` is for the
    probabilities of the rules.
    """

    def __init__(
        self,
        *,
        upstream: str,
        upstream_ca: str,
        authority: Authority,
        seed: int = 0,
    ) -> None:
        self.rules = Rules(seed)
        self.injected: collections.Counter[str] = collections.Counter()
        """Number of times that each fault was carried out, by name (events of a watch count one by one)."""
        self.log: collections.deque[LogEntry] = collections.deque(maxlen=_LOG_SIZE)
        """The newest requests, oldest first."""
        self._upstream = upstream.rstrip("/")
        self._upstream_tls = _trusting(upstream_ca)
        self._authority = authority
        self._tls = _serving_tls(authority)
        self._port = 0
        self._socket: socket.socket | None = None
        self._listener: Listener | None = None
        self._watches: set[_OpenWatch] = set()

    @property
    def url(self) -> str:
        return f"https://{_HOST}:{self._port}"

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            auto_decompress=False,
            connector=aiohttp.TCPConnector(ssl=self._upstream_tls, limit=_MAX_UPSTREAM_CONNECTIONS),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Closed gracefully in TLS, an abandoned connection could outlast the proxy.
            response_class=AbortingResponse,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        )
        # A silent handler only ends by its cancellation when its client is gone.
        self._server = web.Server(self._handle, handler_cancellation=True, access_log=None, auto_decompress=False)
        await self.resume()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.pause()
        await self._session.close()
        await self._server.shutdown(timeout=1)

    def write_kubeconfig(self, path: Path, *, token: str) -> None:
        """Write a kubeconfig that leads to the API server through this proxy."""
        ca = self._authority.bundle.decode()
        text = kubeconfig(name="proxy", url=self.url, ca=ca, user=token_credentials(token))
        write_private(path, text.encode())

    @property
    def open_connections(self) -> int:
        """Number of connections of clients."""
        return len(self._server.connections)

    @property
    def open_watches(self) -> int:
        return len(self._watches)

    def drop_all_connections(self) -> None:
        """Reset every connection of a client, idle or not."""
        for connection in self._server.connections:
            _reset(connection.transport)

    async def pause(self) -> None:
        """Simulate the absence of the API server: refuse connections, and reset existing ones."""
        if self._listener is not None and self._socket is not None:
            listener, self._listener = self._listener, None
            await listener.close()
            self._socket.close()
            # Clients in the middle of a handshake are no connections yet.
            await listener.give_up()
        self.drop_all_connections()

    async def resume(self) -> None:
        """Listen (again), on the same port as before."""
        if self._listener is None:
            self._socket = socket.create_server((_HOST, self._port))
            self._port = self._socket.getsockname()[1]
            self._listener = Listener(self._socket, self._server, self._tls, make_room=lambda: False)

    async def serve_as(self, authority: Authority) -> None:
        """Use a new certificate of this authority from now on; all connections are reset."""
        await self.pause()
        self._tls = _serving_tls(authority)
        await self.resume()

    def end_watches(self, how: WatchEnd, *, path: str = "") -> int:
        """End the open watches whose path matches the regular expression, and return their number."""
        ended = [w for w in self._watches if re.search(path, w.path) and not w.deadline.expired()]
        for watch in ended:
            watch.end(how)
        return len(ended)

    async def _handle(self, http: web.BaseRequest) -> web.StreamResponse:
        request = _describe(http)
        entry = LogEntry(request=request)
        self.log.append(entry)
        if self._listener is None:  # the connection slipped in just before the pause
            _reset(http.transport)
            return await _silence()
        fault = self.rules.choose(request)
        entry.fault = fault.name if fault else ""
        try:
            if isinstance(fault, Answer | Foreign | Reset | Silence):
                return await self._replace_answer(http, entry, fault)
            return await self._pass_on(http, entry, fault)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            entry.error = repr(error)
            _reset(http.transport)
            return await _silence()

    async def _replace_answer(
        self, http: web.BaseRequest, entry: LogEntry, fault: Answer | Foreign | Reset | Silence
    ) -> web.StreamResponse:
        if fault.carried_out:
            async with self._ask(http) as answer:
                entry.answer = answer.status  # an API server sends the head when the write is done
        self.injected[fault.name] += 1
        if isinstance(fault, Answer | Foreign):
            entry.status = fault.code
            return web.Response(status=fault.code, headers=fault.headers, body=fault.body)
        if isinstance(fault, Reset):
            _reset(http.transport)
        return await _silence()

    async def _pass_on(self, http: web.BaseRequest, entry: LogEntry, fault: Fault | None) -> web.StreamResponse:
        if isinstance(fault, Delay) and not fault.carried_out:
            await self._wait(fault)
        if isinstance(fault, Overtake):
            await self._overtake(http, entry.request)
        async with self._ask(http) as answer:
            entry.answer = answer.status
            if isinstance(fault, Delay) and fault.carried_out:
                await self._wait(fault)
            events = entry.request.watch and answer.status == 200
            if events and answer.content_type != "application/json":
                entry.status = _NOT_JSON.code
                return web.Response(status=_NOT_JSON.code, headers=_NOT_JSON.headers, body=_NOT_JSON.body)
            if isinstance(fault, Truncated) and not events:
                self.injected[fault.name] += 1
                body, entry.status = await answer.read(), answer.status
                headers = _end_to_end(answer.headers)
                headers.popall("Content-Length", None)
                return web.Response(status=answer.status, headers=headers, body=body[: len(body) // 2])
            response = web.StreamResponse(
                status=answer.status, reason=answer.reason, headers=_end_to_end(answer.headers)
            )
            entry.status = answer.status
            await response.prepare(http)
            watch_end = None
            if isinstance(fault, Trickle):
                await self._trickle(response, answer, fault)
            elif events:
                watch_end = await self._relay_watch(response, answer, entry.request, fault)
            else:
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
        if watch_end is not None:
            return await self._end_watch(http, response, watch_end)
        await response.write_eof()
        return response

    @contextlib.asynccontextmanager
    async def _ask(self, http: web.BaseRequest) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send the request to the API server; its head is there on entry, its body is yet to come."""
        url = URL(self._upstream + http.raw_path, encoded=True)
        body = await _read_body(http) if http.can_read_body else None
        async with self._session.request(
            http.method, url, headers=_end_to_end(http.headers), data=body, allow_redirects=False
        ) as answer:
            yield answer

    async def _overtake(self, http: web.BaseRequest, request: Request) -> None:
        self.injected[Overtake.name] += 1
        headers = _end_to_end(http.headers)
        headers.popall("Content-Length", None)
        headers["Content-Type"] = "application/merge-patch+json"
        headers["User-Agent"] = Overtake.name  # distinguishes writers for the API server
        note = {"metadata": {"annotations": {"test/overtaken": str(self.injected[Overtake.name])}}}
        url = URL(self._upstream + object_path(request.path), encoded=True)
        async with self._session.patch(url, headers=headers, data=json.dumps(note)) as answer:
            await answer.read()

    async def _wait(self, fault: Delay) -> None:
        self.injected[fault.name] += 1
        await asyncio.sleep(fault.seconds)

    async def _trickle(self, response: web.StreamResponse, answer: aiohttp.ClientResponse, fault: Trickle) -> None:
        self.injected[fault.name] += 1
        async for chunk in answer.content.iter_any():
            for start in range(0, len(chunk), fault.size):
                await asyncio.sleep(fault.pause)
                await response.write(chunk[start : start + fault.size])

    async def _relay_watch(
        self, response: web.StreamResponse, answer: aiohttp.ClientResponse, request: Request, fault: Fault | None
    ) -> WatchEnd | None:
        """Pass events on until the server ends the watch (None) or a fault does."""
        plan = fault if isinstance(fault, EndWatch) else None
        deadline = asyncio.timeout(plan.after_seconds if plan else None)
        watch = _OpenWatch(path=request.path, deadline=deadline, watch_end=plan.how if plan else None)
        self._watches.add(watch)
        try:
            async with deadline:
                due = await self._relay_events(response, answer.content, fault)
                return watch.watch_end if due else None
        except TimeoutError:
            return watch.watch_end
        finally:
            self._watches.discard(watch)

    async def _relay_events(
        self, response: web.StreamResponse, content: aiohttp.StreamReader, fault: Fault | None
    ) -> bool:
        """Pass events on in whole lines; return whether the fault's number of events has passed."""
        left = fault.events_to_pass if isinstance(fault, EndWatch) else None
        if left == 0:
            return True
        lines = LineJoiner(limit=_MAX_BODY)
        async for chunk in content.iter_any():
            block = lines.feed(chunk)
            if not block:
                continue
            if left is not None:
                block, taken = first_lines(block, left)
                left -= taken
            elif isinstance(fault, RepeatEvents):
                self.injected[fault.name] += block.count(b"\n")
                block = each_twice(block)
            elif isinstance(fault, LateEvents):
                self.injected[fault.name] += block.count(b"\n")
                await asyncio.sleep(fault.seconds)
            await response.write(block)
            if left == 0:
                return True
        return False

    async def _end_watch(
        self, http: web.BaseRequest, response: web.StreamResponse, how: WatchEnd
    ) -> web.StreamResponse:
        self.injected[how.value] += 1
        await response.write(how.last_words)
        if how is WatchEnd.RESET:
            _reset(http.transport)
        if how in {WatchEnd.RESET, WatchEnd.SILENT}:
            return await _silence()
        await response.write_eof()
        return response


async def _silence() -> web.StreamResponse:
    """Wait forever. The handler is cancelled when the client gives up or the proxy closes."""
    never: asyncio.Future[web.StreamResponse] = asyncio.get_running_loop().create_future()
    return await never


def _reset(transport: asyncio.Transport | None) -> None:
    """Cut the connection with a RST: without lingering the kernel sends one in place of a FIN."""
    if transport is None or transport.is_closing():
        return
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def _describe(http: web.BaseRequest) -> Request:
    return Request(
        method=http.method,
        path=http.path,
        query=http.rel_url.raw_query_string,
        user_agent=http.headers.get("User-Agent", ""),
        watch=http.method == "GET" and http.query.get("watch") in {"1", "true"},
    )


def _end_to_end(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in _HOP_BY_HOP)


async def _read_body(http: web.BaseRequest) -> bytes:
    body = bytearray()
    async for chunk in http.content.iter_any():
        body += chunk
        if len(body) > _MAX_BODY:
            raise web.HTTPRequestEntityTooLarge(max_size=_MAX_BODY, actual_size=len(body))
    return bytes(body)


# Contexts take milliseconds to make, and tests make many proxies before few clusters.


@functools.lru_cache(maxsize=8)
def _trusting(ca: str) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=ca)


@functools.lru_cache(maxsize=8)
def _serving_tls(authority: Authority) -> ssl.SSLContext:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.TemporaryDirectory() as directory:  # ssl reads files only
        files = authority.issue_server([_HOST, "localhost", "kubernetes.default.svc"]).write(Path(directory), "serving")
        tls.load_cert_chain(files.certificate, files.key)
    return tls
