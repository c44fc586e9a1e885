"""Raw JSON over one HTTP session a cluster.

`Transport` owns what is shared by all who talk to one API server: session, TLS, credentials. A `Client` is a
light view of it with a user agent, a rate limit, a bound on requests in flight and a guard: leader election uses
one without a limit, so that renewals never queue behind the work; controllers use one whose guard refuses
to write when leadership may be lost.

What the API server asks for is honoured here and nowhere else: Retry-After on 429 and 503 (the request was not
carried out, so it is safe to send it again), and a fresh token after a 401.
"""

import asyncio
import contextlib
import copy
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Self

import orjson
from yarl import URL

from kube import errors, metrics, tracing
from kube.connection import ConfigurationError, Connection
from kube.http import aiohttp
from kube.limiter import TokenBucket
from kube.objects import Object, metadata
from kube.resources import Resource

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_METADATA_ACCEPT = {
    False: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    True: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
}
_REQUEST_SECONDS = 60.0
_CONNECT_SECONDS = 10.0
_IDLE_SECONDS = 30.0
_IN_FLIGHT = 64
_RETRIES = 4
_LONGEST_RETRY_AFTER = 30.0
_LONGEST_ERROR = 1 << 20
_LONGEST_ANSWER = 32 << 20
_PAGE = 500
_SMALLER_PAGE = 8
"""The divisor of the page size after a page that was too long."""
_LONGEST_WATCH_LINE = 32 << 20
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class Form(Enum):
    """Whole objects, or their metadata only (the API server leaves out the rest)."""

    WHOLE = "whole"
    METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a kind: of one namespace or all (empty), by labels and fields."""

    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""

    def parameters(self) -> dict[str, str]:
        chosen = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {name: value for name, value in chosen.items() if value}


class _Connector(aiohttp.TCPConnector):
    """Prefers the connection that was used last, so that those which only a burst needed are given up soon.

    aiohttp takes the one that has waited for longest. So a few calls a second would keep the connections of the largest
    burst open for ever, each with up to 300 kB of buffers here, and more at the API server.
    """

    async def _get(
        self, key: aiohttp.client_reqrep.ConnectionKey, traces: list[aiohttp.tracing.Trace]
    ) -> aiohttp.connector.Connection | None:
        if idle := self._conns.get(key):
            idle.rotate(1)
        return await super()._get(key, traces)


class Transport:
    """One HTTP session to one API server, opened when first needed."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._session: aiohttp.ClientSession | None = None
        self.host = URL(connection.server).authority

    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = _Connector(
                # Clients bound their requests; watches must not take their places.
                limit=0,
                ssl=self.connection.tls or False,
                keepalive_timeout=_IDLE_SECONDS,
            )
            self._session = aiohttp.ClientSession(
                connector=connector, auto_decompress=True, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

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
        timeout: aiohttp.ClientTimeout,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request as it stands; the response whatever its status."""
        try:
            authorization = await self.connection.credentials.authorization()
        except ConfigurationError as error:
            # At work it is one more reason why nothing comes through; it may be mended meanwhile.
            raise errors.Unreachable(f'{method} "{self.connection.server}{path}": {error}') from error
        if authorization:
            headers = {**headers, "Authorization": authorization}
        code = "<error>"
        try:
            async with self.session().request(
                method,
                URL(self.connection.server + path, encoded=True),
                params=params,
                data=body,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
                server_hostname=self.connection.tls_server_name,
            ) as response:
                code = str(response.status)
                yield response
        except (aiohttp.ClientError, ssl.SSLError, OSError, TimeoutError) as error:
            text = str(error) or type(error).__name__
            raise errors.Unreachable(f'{method} "{self.connection.server}{path}": {text}') from error
        finally:
            metrics.rest_client_requests_total.labels(code=code, method=method, host=self.host).inc()


class Client:
    """A view of a cluster for one purpose.

    Args:
        limiter: the connection's token bucket, None for no limit.
        write_guard: called before anything that changes the cluster; gives the seconds for which this process may
            still write, and raises if it must not write now.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        user_agent: str,
        limiter: TokenBucket | None = None,
        write_guard: Callable[[], float] | None = None,
    ) -> None:
        self.transport = transport
        self.identity = {"User-Agent": user_agent}
        """Headers that say who asks."""
        self._limiter = limiter
        self._write_guard = write_guard
        self._in_flight = asyncio.Semaphore(_IN_FLIGHT)
        self._page_limits: dict[Resource, int] = {}
        self._waited = metrics.rest_client_rate_limiter_duration_seconds.labels(host=transport.host)

    def impersonating(self, user: str) -> Self:
        """The same client, limits and guard included, whose requests are judged as those of another user.

        The API server adds the groups by itself if the user is a ServiceAccount.
        """
        view = copy.copy(self)
        view.identity = {**self.identity, "Impersonate-User": user}
        return view

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
        timeout: float | None = None,
    ) -> bytes:
        """The body of a successful answer.

        Raises:
            ApiError: the API server refused; after retries where it asked for them.
            Unreachable: no complete answer came in time. AnswerTooLong: it was not read to its end.
        """
        headers = {**self.identity, "Accept": accept, "Accept-Encoding": "identity"}
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = body if isinstance(body, bytes) else orjson.dumps(body)
        refreshed = False
        patience = timeout or _REQUEST_SECONDS
        for attempt in range(_RETRIES + 1):
            try:
                return await self._once(method, path, params=params, data=data, headers=headers, timeout=timeout)
            except errors.Unauthorized:
                may_differ = self.transport.connection.credentials.invalidate()
                if refreshed or attempt == _RETRIES or not may_differ:
                    raise
                refreshed = True
            except (errors.TooManyRequests, errors.ServerFailure) as error:
                refused = error.status in {429, 503} and error.retry_after is not None
                pause = min(error.retry_after or 0.0, _LONGEST_RETRY_AFTER)
                patience -= pause
                if not refused or attempt == _RETRIES or patience < 0:
                    raise
                await asyncio.sleep(pause)
        raise AssertionError("unreachable")

    async def read(self, path: str) -> Object:
        """GET: the JSON object at a path."""
        return _loads(await self.request("GET", path))

    async def _once(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None,
        data: bytes | None,
        headers: Mapping[str, str],
        timeout: float | None,
    ) -> bytes:
        await self._wait_for_token()
        async with self._in_flight:
            seconds = timeout or _REQUEST_SECONDS
            if self._write_guard is not None and method in _WRITES:
                # Asked last, when the request is about to go out; it must not outlive the permission either.
                seconds = min(seconds, self._write_guard())
            total = aiohttp.ClientTimeout(total=seconds, sock_connect=_CONNECT_SECONDS)
            with tracing.api_call(method, path, host=self.transport.host) as call:
                headers = call.outgoing(headers)
                async with self.transport.send(
                    method, path, headers=headers, params=params, body=data, timeout=total
                ) as response:
                    call.describe({"http.response.status_code": response.status})
                    if not 200 <= response.status < 300:
                        raise await _error_of(response)
                    return await _whole(method, path, response)

    async def _wait_for_token(self) -> None:
        if self._limiter is not None:
            self._waited.observe(await self._limiter.acquire())

    # --- one object

    async def get(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        form: Form = Form.WHOLE,
        timeout: float | None = None,
    ) -> Object:
        accept = JSON if form is Form.WHOLE else _METADATA_ACCEPT[False]
        path = resource.path(namespace=namespace, name=_one(name))
        return _as(resource, await self.request("GET", path, accept=accept, timeout=timeout))

    async def create(self, resource: Resource, obj: Object, *, timeout: float | None = None) -> Object:
        path = resource.path(namespace=metadata(obj).get("namespace") or "")
        return _as(resource, await self.request("POST", path, body=obj, timeout=timeout))

    async def replace(
        self, resource: Resource, obj: Object, *, subresource: str = "", timeout: float | None = None
    ) -> Object:
        """PUT. The object's resourceVersion, if it has one, is the precondition."""
        meta = metadata(obj)
        path = resource.path(
            namespace=meta.get("namespace") or "", name=_one(meta.get("name") or ""), subresource=subresource
        )
        return _as(resource, await self.request("PUT", path, body=obj, timeout=timeout))

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Any,
        *,
        namespace: str = "",
        subresource: str = "",
        content_type: str = MERGE_PATCH,
        timeout: float | None = None,
    ) -> Object:
        path = resource.path(namespace=namespace, name=_one(name), subresource=subresource)
        answer = await self.request("PATCH", path, body=body, content_type=content_type, timeout=timeout)
        return _as(resource, answer)

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        propagation: str = "",
        uid: str = "",
        resource_version: str = "",
        timeout: float | None = None,
    ) -> None:
        """DELETE, with the preconditions that are given (409 if they do not hold)."""
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        preconditions = {field: value for field, value in preconditions.items() if value}
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if propagation:
            options["propagationPolicy"] = propagation
        if preconditions:
            options["preconditions"] = preconditions
        path = resource.path(namespace=namespace, name=_one(name))
        await self.request("DELETE", path, body=options, timeout=timeout)

    # --- many objects

    async def delete_collection(self, resource: Resource, selection: Selection) -> None:
        path = resource.path(namespace=selection.namespace)
        await self.request("DELETE", path, params=selection.parameters())

    async def list_page(
        self,
        resource: Resource,
        selection: Selection,
        *,
        form: Form = Form.WHOLE,
        limit: int = _PAGE,
        continue_token: str = "",
        timeout: float | None = None,
    ) -> Object:
        """One page; `metadata.continue` of the answer is the token for the next. Items get apiVersion and kind.

        Of kinds with very large objects, a page has fewer than `limit`.
        """
        params = {**selection.parameters(), "limit": str(min(limit, self._page_limits.get(resource, limit)))}
        if continue_token:
            params["continue"] = continue_token
        accept = JSON if form is Form.WHOLE else _METADATA_ACCEPT[True]
        path = resource.path(namespace=selection.namespace)
        try:
            body = await self.request("GET", path, params=params, accept=accept, timeout=timeout)
        except errors.AnswerTooLong:
            asked = int(params["limit"])
            if asked == 1:
                raise
            self._page_limits[resource] = max(asked // _SMALLER_PAGE, 1)
            return await self.list_page(
                resource, selection, form=form, limit=limit, continue_token=continue_token, timeout=timeout
            )
        page = _loads(body)
        items = page.get("items") or []
        for item in items:
            item["apiVersion"], item["kind"] = resource.api_version, resource.kind
        page["items"] = items
        return page

    async def list(
        self, resource: Resource, selection: Selection | None = None, *, form: Form = Form.WHOLE
    ) -> list[Object]:
        """All pages together."""
        found: list[Object] = []
        token = ""
        while True:
            page = await self.list_page(resource, selection or Selection(), form=form, continue_token=token)
            found += page["items"]
            token = metadata(page).get("continue") or ""
            if not token:
                return found

    @contextlib.asynccontextmanager
    async def watch(
        self,
        resource: Resource,
        selection: Selection,
        *,
        resource_version: str,
        timeout_seconds: int,
        idle_timeout: float,
        form: Form = Form.WHOLE,
    ) -> AsyncIterator[AsyncIterator[Object]]:
        """The events of a watch: `{"type": …, "object": …}`, bookmarks and errors included.

        A broken stream, and one that is silent for `idle_timeout` seconds, raises Unreachable; its regular end
        ends the iteration.
        """
        params = {
            **selection.parameters(),
            "watch": "1",
            "resourceVersion": resource_version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(timeout_seconds),
        }
        headers = {
            **self.identity,
            "Accept": JSON if form is Form.WHOLE else _METADATA_ACCEPT[False],
            "Accept-Encoding": "identity",
        }
        await self._wait_for_token()
        async with self.transport.send(
            "GET",
            resource.path(namespace=selection.namespace),
            headers=headers,
            params=params,
            body=None,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=idle_timeout),
        ) as response:
            if response.status != 200:
                error = await _error_of(response)
                if isinstance(error, errors.Unauthorized):
                    self.transport.connection.credentials.invalidate()
                raise error
            try:
                with metrics.rest_client_open_watches.track_inprogress():
                    yield _events(resource, response)
            finally:
                if response.connection is not None and response.connection.transport is not None:
                    # A polite end of TLS would outlive the session: the API server never stops talking.
                    response.connection.transport.abort()


async def _events(resource: Resource, response: aiohttp.ClientResponse) -> AsyncIterator[Object]:
    rest = bytearray()
    async for chunk in response.content.iter_any():
        start = len(rest)
        rest += chunk
        end = rest.rfind(b"\n", start)
        if end < 0:
            if len(rest) > _LONGEST_WATCH_LINE:
                raise errors.Unreachable(f"a watch event of {resource} is longer than {_LONGEST_WATCH_LINE} bytes")
            continue
        complete = bytes(rest[:end])
        del rest[: end + 1]
        for line in complete.split(b"\n"):
            if not line:
                continue
            event = _loads(line)
            obj = event.get("object")
            if not isinstance(obj, dict):
                raise errors.Unreachable(f"a watch event of {resource} holds no object")
            if event.get("type") != "ERROR":
                obj["apiVersion"], obj["kind"] = resource.api_version, resource.kind
            yield event


def _one(name: str) -> str:
    """The name, for a path to one object: without one it would lead to all of them."""
    if not name:
        raise ValueError("an object without a name can't be asked for")
    return name


def _loads(body: bytes) -> Object:
    try:
        loaded = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise errors.Unreachable(f"the answer is no JSON: {error}") from error
    if not isinstance(loaded, dict):
        raise errors.Unreachable("the answer is no JSON object")
    return loaded


def _as(resource: Resource, body: bytes) -> Object:
    """The object of an answer, named after its resource (metadata-only answers are not)."""
    obj = _loads(body)
    if obj.get("kind") == "PartialObjectMetadata":
        obj["apiVersion"], obj["kind"] = resource.api_version, resource.kind
    return obj


async def _whole(method: str, path: str, response: aiohttp.ClientResponse) -> bytes:
    chunks, size = [], 0
    async for chunk in response.content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size > _LONGEST_ANSWER:
            raise errors.AnswerTooLong(f'{method} "{path}": the answer is longer than {_LONGEST_ANSWER} bytes')
    return b"".join(chunks)


async def _error_of(response: aiohttp.ClientResponse) -> errors.ApiError:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > _LONGEST_ERROR:
            break
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        status = None
    if not isinstance(status, dict):
        status = {}
    retry_after = response.headers.get("Retry-After", "")
    return errors.from_status(
        response.status,
        status,
        fallback=body[:500].decode(errors="replace").strip(),
        retry_after=float(retry_after) if retry_after.isdecimal() else None,
    )
