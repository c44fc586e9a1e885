"""HTTP to one API server for programs: lasting sessions of aiohttp, with metrics and traces.

A span and the metrics of a request cover its way over the network, so they are kept here; the reader of the answer may
raise an error about it within `send`, which the span records.
"""

import contextlib
import heapq
import io
import os
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Any, Self
from urllib.parse import urlencode

from multidict import CIMultiDict
from yarl import URL

from kube import errors
from kube.clock import format_time, utc_now
from kube.runtime import metrics, tracing
from kube.runtime.client import Timeout
from kube.runtime.connection import Connection, Rotation
from kube.runtime.http import aiohttp
from kube.runtime.kubeconfig import ConfigurationError
from kube.runtime.server_clock import ServerClock

_NOT_VALID_NOW = (9, 10)
"""OpenSSL's codes for a certificate that is not valid yet, or has expired."""
_CONNECT_SECONDS = 10.0
_IDLE_SECONDS = 30.0
_OF_WATCHES = 0
_PIECE = 128 << 10
"""Bytes of a body from which on it is encrypted and sent in pieces, as aiohttp does with files."""
_CERTIFICATE = re.compile("CERTIFICATE|UNKNOWN_CA")


class AbortingResponse(aiohttp.ClientResponse):
    """Cut the connection if it ends before its answer does.

    aiohttp closes it in the way of TLS, which waits for the API server: for half a minute, if there is none any more.
    """

    def close(self) -> None:
        self._cut()
        super().close()

    def release(self) -> Any:
        self._cut()
        return super().release()

    def _cut(self) -> None:
        # A connection whose answer has been read is back in the pool already.
        if self.connection is not None and self.connection.transport is not None:
            self.connection.transport.abort()


class Transport:
    """HTTP sessions to one API server, opened when first needed.

    The connection may be replaced (see `kube.runtime.connection.Rotation`): new requests use the new credentials.
    Watches end as if the API server had ended them, so that watchers continue with the new ones, too.

    A session takes the idle connection that has waited longest. With only one, a few calls a second would keep all
    connections of the largest burst open, each with up to 300 kB of buffers here, and more at the API server. So
    requests in flight are numbered, each by the lowest number that is free, and there is a session for number 0, one
    for 1 and 2, one for 3 to 6 and so on: connections that only a burst needed are not used afterwards, and are closed.
    """

    def __init__(self, connection: Connection) -> None:
        self._rotation = Rotation(connection, on_change=self._end_watches)
        self._watches: set[aiohttp.ClientResponse] = set()
        self._sessions: dict[int, aiohttp.ClientSession] = {}
        self._numbers = 0
        self._free: list[int] = []
        """Heap of the numbers below `_numbers` that no request has."""
        self.host = URL(connection.server).authority
        self.clock = ServerClock()

    @property
    def connection(self) -> Connection:
        return self._rotation.current()

    def replace(self, connection: Connection) -> None:
        """Use this connection from now on. Raises ConfigurationError: it leads to another server."""
        self._rotation.replace(connection)

    def _end_watches(self) -> None:
        while self._watches:
            self._watches.pop().close()

    def _number(self) -> int:
        """Lowest number that no request in flight has; give it back to `_free`."""
        if self._free:
            return heapq.heappop(self._free)
        self._numbers += 1
        return self._numbers - 1

    def _session(self, which: int) -> aiohttp.ClientSession:
        if which not in self._sessions:
            # Clients bound their requests.
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_SECONDS)
            self._sessions[which] = aiohttp.ClientSession(
                connector=connector,
                auto_decompress=True,
                cookie_jar=aiohttp.DummyCookieJar(),
                response_class=AbortingResponse,
            )
        return self._sessions[which]

    async def close(self) -> None:
        while self._sessions:
            await self._sessions.popitem()[1].close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @contextlib.asynccontextmanager
    async def send(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        params: Mapping[str, str] | None,
        body: bytes | None,
        timeout: Timeout,
        lasting: bool = False,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """See `kube.runtime.client.RoundTripper`. Lasting requests are neither numbered nor traced.

        In one piece: as contexts within contexts, here and in the client, a request took 123 us of CPU instead of 106.
        """
        connection = self.connection
        watch: aiohttp.ClientResponse | None = None
        with tracing.NOTHING if lasting else tracing.api_call(method, path, host=self.host) as call:
            headers = tracing.outgoing(call, headers)
            if authorization := await self._authorization(method, path):
                headers = CIMultiDict(headers, Authorization=authorization)
            number, code = None if lasting else self._number(), "<error>"
            try:
                async with self._session(_OF_WATCHES if number is None else (number + 1).bit_length()).request(
                    method,
                    # Paths and their few parameters recur, so URLs are cached.
                    URL(f"{connection.server}{path}{f'?{urlencode(params)}' if params else ''}", encoded=True),
                    data=io.BytesIO(body) if body is not None and len(body) > _PIECE else body,
                    headers=headers,
                    timeout=aiohttp.ClientTimeout(
                        total=timeout.total, sock_connect=_CONNECT_SECONDS, sock_read=timeout.silence
                    ),
                    allow_redirects=False,
                    # Connections that were made with another context are not reused.
                    ssl=connection.tls or False,
                    server_hostname=connection.tls_server_name,
                ) as response:
                    code = str(response.status)
                    self.clock.note(path, response.headers.get("Date", ""))
                    call.set_attribute("http.response.status_code", response.status)
                    if not lasting:
                        yield response
                        return
                    watch = response
                    self._watches.add(watch)
                    is_open = response.status == 200
                    with metrics.rest_client_open_watches.track_inprogress() if is_open else contextlib.nullcontext():
                        yield response
            except (aiohttp.ClientError, ssl.SSLError, OSError, TimeoutError) as error:
                if watch is not None and watch not in self._watches:
                    return  # this is its end
                text = f'{method} "{connection.server}{path}": {_reason(error)}'
                raise _kind_of(error)(text) from error
            finally:
                if number is not None:
                    heapq.heappush(self._free, number)
                if watch is not None:
                    self._watches.discard(watch)
                metrics.rest_client_requests_total.labels(code=code, method=method, host=self.host).inc()

    async def _authorization(self, method: str, path: str) -> str | None:
        try:
            return await self.connection.credentials.authorization()
        except ConfigurationError as error:
            # During operation it is one more cause of an outage; it may be corrected meanwhile.
            raise errors.Unreachable(f'{method} "{self.connection.server}{path}": {error}') from error


def _kind_of(error: Exception) -> type[errors.Unreachable]:
    if isinstance(error, TimeoutError):
        return errors.TimedOut
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error.__cause__
    # Servers refuse a certificate of ours by an alert that names the problem.
    refused = [each for each in (error, cause) if isinstance(each, ssl.SSLError) and _CERTIFICATE.search(str(each))]
    is_untrusted = isinstance(error, aiohttp.ClientConnectorCertificateError) or refused
    return errors.Untrusted if is_untrusted else errors.Unreachable


def _reason(error: Exception) -> str:
    """Reason of a failure; aiohttp's own text of a failed connection has the address of a Python object."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not accepted: {error.certificate_error}{_clock_remedy(error.certificate_error)}"
    if isinstance(error, aiohttp.ClientConnectorError):
        cause = error.os_error
        is_of_system = cause.errno is not None and cause.errno > 0 and not isinstance(cause, ssl.SSLError)
        text = os.strerror(cause.errno) if is_of_system and cause.errno else str(cause)
        return f"cannot connect: {text or type(cause).__name__}"
    return str(error) or type(error).__name__


def _clock_remedy(error: Exception) -> str:
    """Advice if a certificate is not valid now. The own clock decides: without an answer, there is no other."""
    if getattr(error, "verify_code", None) not in _NOT_VALID_NOW:
        return ""
    return f"; the clock of this machine is at {format_time(utc_now())}; correct it, or else the certificate"
