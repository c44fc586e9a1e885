"""Raw JSON over one HTTP session a cluster.

`Transport` owns what is shared by all who talk to one API server: session, TLS, credentials. A `Client` is a
light view of it with a user agent, a rate limit, a bound on requests in flight and a guard: leader election uses
one without a limit, so that renewals never queue behind the work; controllers use one whose guard refuses
to write when leadership may be lost.

Methods that take a resource raise KindNotServed where discovery says that there is no such kind (see `served`); what
else is no answer of an API server is Unreachable (see `answers`).

What the API server asks for is honoured here and nowhere else: Retry-After on 429 and 503 (the request was not
carried out, so it is safe to send it again), and a fresh token after a 401.
"""

import asyncio
import contextlib
import copy
import heapq
import io
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Never, Protocol, Self

import orjson
from yarl import URL

from kube import answers, errors, metrics, served, tracing
from kube.connection import Connection, Rotation
from kube.http import aiohttp
from kube.kubeconfig import ConfigurationError
from kube.limiter import TokenBucket
from kube.objects import Object, metadata
from kube.resources import Resource

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"

_METADATA_ACCEPT = {
    False: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    True: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
}
_REQUEST_SECONDS = 60.0
_CONNECT_SECONDS = 10.0
_IDLE_SECONDS = 30.0
_IN_FLIGHT = 64
_OF_WATCHES = 0
_RETRIES = 4
_LONGEST_RETRY_AFTER = 30.0
_PAGE = 500
_SMALLER_PAGE = 8
"""The divisor of the page size after a page that was too long."""
_PIECE = 128 << 10
"""Bytes of a body from which on it is encrypted and sent in pieces, as aiohttp does with files."""
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


class AbortingResponse(aiohttp.ClientResponse):
    """Cuts the connection if it ends before its answer does.

    aiohttp closes it in the way of TLS, which waits for the API server: for half a minute, if there is none any more.
    """

    def close(self) -> None:
        self._cut()
        super().close()

    def release(self) -> Any:
        self._cut()
        return super().release()

    def _cut(self) -> None:
        # A connection whose answer has been read has been given back already.
        if self.connection is not None and self.connection.transport is not None:
            self.connection.transport.abort()


class Transport:
    """HTTP sessions to one API server, opened when first needed.

    A session takes the idle connection that has waited longest. With only one, a few calls a second would keep all
    connections of the largest burst open, each with up to 300 kB of buffers here, and more at the API server. So
    requests in flight are numbered, each by the lowest number that is free, and there is a session for number 0, one
    for 1 and 2, one for 3 to 6 and so on: what only a burst needed is not used afterwards, and is given up.
    """

    def __init__(self, connection: Connection) -> None:
        self._rotation = Rotation(connection)
        self._sessions: dict[int, aiohttp.ClientSession] = {}
        self._numbers = 0
        self._free: list[int] = []
        """A heap of the numbers below `_numbers` that no request has."""
        self.host = URL(connection.server).authority

    @property
    def connection(self) -> Connection:
        return self._rotation.current()

    @contextlib.contextmanager
    def _session_for(self, *, lasting: bool) -> Iterator[aiohttp.ClientSession]:
        if lasting:
            yield self._session(_OF_WATCHES)
            return
        if self._free:
            number = heapq.heappop(self._free)
        else:
            number, self._numbers = self._numbers, self._numbers + 1
        try:
            yield self._session((number + 1).bit_length())
        finally:
            heapq.heappush(self._free, number)

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
        timeout: aiohttp.ClientTimeout,
        lasting: bool = False,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request as it stands; the response whatever its status. Watches last, and are not numbered."""
        connection = self.connection
        try:
            authorization = await connection.credentials.authorization()
        except ConfigurationError as error:
            # At work it is one more reason why nothing comes through; it may be mended meanwhile.
            raise errors.Unreachable(f'{method} "{connection.server}{path}": {error}') from error
        if authorization:
            headers = {**headers, "Authorization": authorization}
        code = "<error>"
        try:
            with self._session_for(lasting=lasting) as session:
                async with session.request(
                    method,
                    URL(connection.server + path, encoded=True),
                    params=params,
                    data=io.BytesIO(body) if body is not None and len(body) > _PIECE else body,
                    headers=headers,
                    timeout=timeout,
                    allow_redirects=False,
                    # Connections that were made with another context are not used again.
                    ssl=connection.tls or False,
                    server_hostname=connection.tls_server_name,
                ) as response:
                    code = str(response.status)
                    yield response
        except (aiohttp.ClientError, ssl.SSLError, OSError, TimeoutError) as error:
            text = str(error) or type(error).__name__
            raise errors.Unreachable(f'{method} "{connection.server}{path}": {text}') from error
        finally:
            metrics.rest_client_requests_total.labels(code=code, method=method, host=self.host).inc()


class Consistency(Protocol):
    """Whether the caches that writers read from still agree with the cluster."""

    @property
    def in_doubt(self) -> bool:
        """Whether it has to be assured before anything is written."""

    async def assure(self) -> None:
        """Raises KubeError: nothing may be written now."""


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
        self.consistency: Consistency | None = None
        """Asked before anything that changes the cluster; None: what is written does not come from a cache."""
        self._in_flight = asyncio.Semaphore(_IN_FLIGHT)
        self._page_limits: dict[Resource, int] = {}
        self._waited = metrics.rest_client_rate_limiter_duration_seconds.labels(host=transport.host)

    def impersonating(self, user: str) -> Self:
        """The same client, limits and guard included, whose requests are made as another user.

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
            Unreachable: no complete answer came in time. AnswerTooLong: it was not read to its end. NoStatus: it is a
                failure, but perhaps not of the API server.
        """
        headers = {**self.identity, "Accept": accept, "Accept-Encoding": "identity"}
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = body if isinstance(body, bytes) else orjson.dumps(body)
        refreshed, retries = False, _RETRIES
        patience = timeout or _REQUEST_SECONDS
        while True:
            try:
                return await self._once(method, path, params=params, data=data, headers=headers, timeout=timeout)
            except errors.Unauthorized:
                may_differ = self.transport.connection.credentials.invalidate()
                if refreshed or not retries or not may_differ:
                    raise
                refreshed = True
            except (errors.TooManyRequests, errors.ServerFailure) as error:
                refused = error.status in {429, 503} and error.retry_after is not None
                pause = min(error.retry_after or 0.0, _LONGEST_RETRY_AFTER)
                patience -= pause
                if not refused or not retries or patience < 0:
                    raise
                await asyncio.sleep(pause)
            retries -= 1

    async def read(self, path: str, *, accept: str = JSON) -> Object:
        """GET: the JSON object at a path."""
        return answers.loads(await self.request("GET", path, accept=accept))

    async def demand_served(self, resource: Resource) -> None:
        """Raises KindNotServed if discovery says so; KubeError if it does not tell."""
        if not await served.is_served(self.read, resource):
            raise errors.KindNotServed(resource.api_version, resource.kind)

    async def _request(self, resource: Resource, method: str, path: str, **options: Any) -> bytes:
        """The same for a path of a resource, which may not be served any more: raises KindNotServed then."""
        try:
            return await self.request(method, path, **options)
        except (errors.NoStatus, errors.NotFound) as error:
            return await self._missing(resource, error)

    async def _object(self, resource: Resource, method: str, path: str, **options: Any) -> Object:
        return answers.object_of(resource, await self._request(resource, method, path, **options))

    async def _missing(self, resource: Resource, error: errors.NoStatus | errors.NotFound) -> Never:
        """Raises KindNotServed if that is the reason, or the error itself."""
        names_object = isinstance(error, errors.NotFound) and error.details.get("name")
        if error.status == 404 and not names_object:
            try:
                await self.demand_served(resource)
            except errors.KindNotServed:
                raise
            except errors.KubeError:
                raise error from None
        raise error

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
        async with self._turn(assured=method in _WRITES):
            seconds = timeout or _REQUEST_SECONDS
            if self._write_guard is not None and method in _WRITES:
                # Asked last, when the request is about to go out; it must not outlive the permission either.
                seconds = min(seconds, self._write_guard())
            total = aiohttp.ClientTimeout(total=seconds, sock_connect=_CONNECT_SECONDS)
            with tracing.api_call(method, path, host=self.transport.host) as call:
                headers = tracing.outgoing(call, headers)
                async with self.transport.send(
                    method, path, headers=headers, params=params, body=data, timeout=total
                ) as response:
                    call.set_attribute("http.response.status_code", response.status)
                    if not 200 <= response.status < 300:
                        raise await answers.error_of(response)
                    return await answers.whole(method, path, response)

    @contextlib.asynccontextmanager
    async def _turn(self, *, assured: bool) -> AsyncIterator[None]:
        """One of the requests in flight; `assured`: when it comes to its turn, there is no doubt."""
        while True:
            if assured and self.consistency is not None and self.consistency.in_doubt:
                await self.consistency.assure()
            async with self._in_flight:
                # It may have waited for as long as an outage took.
                if not assured or self.consistency is None or not self.consistency.in_doubt:
                    yield
                    return

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
        return await self._object(resource, "GET", path, accept=accept, timeout=timeout)

    async def find(self, resource: Resource, name: str, *, namespace: str = "") -> Object | None:
        """None if there is no such object."""
        try:
            return await self.get(resource, name, namespace=namespace)
        except errors.NotFound:
            return None

    async def create(
        self, resource: Resource, obj: Object, *, dry_run: bool = False, timeout: float | None = None
    ) -> Object:
        path = resource.path(namespace=metadata(obj).get("namespace") or "")
        params = {"dryRun": "All"} if dry_run else None
        return await self._object(resource, "POST", path, params=params, body=obj, timeout=timeout)

    async def replace(
        self, resource: Resource, obj: Object, *, subresource: str = "", timeout: float | None = None
    ) -> Object:
        """PUT. The object's resourceVersion, if it has one, is the precondition."""
        meta = metadata(obj)
        path = resource.path(
            namespace=meta.get("namespace") or "", name=_one(meta.get("name") or ""), subresource=subresource
        )
        return await self._object(resource, "PUT", path, body=obj, timeout=timeout)

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
        return await self._object(resource, "PATCH", path, body=body, content_type=content_type, timeout=timeout)

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
        answers.check_deletion(resource, await self._request(resource, "DELETE", path, body=options, timeout=timeout))

    # --- many objects

    async def delete_collection(self, resource: Resource, selection: Selection) -> None:
        path = resource.path(namespace=selection.namespace)
        answers.check_deletion(resource, await self._request(resource, "DELETE", path, params=selection.parameters()))

    async def list_page(
        self,
        resource: Resource,
        selection: Selection,
        *,
        form: Form = Form.WHOLE,
        limit: int = _PAGE,
        continue_token: str = "",
        at: str = "",
        timeout: float | None = None,
    ) -> Object:
        """One page; `metadata.continue` of the answer is the token for the next. Items get apiVersion and kind.

        Of kinds with very large objects, a page has fewer than `limit`. `at` is the resourceVersion to list at, instead
        of the present; raises Gone if the API server has forgotten it.
        """
        params = {**selection.parameters(), "limit": str(min(limit, self._page_limits.get(resource, limit)))}
        if continue_token:
            params["continue"] = continue_token
        if at:
            params |= {"resourceVersion": at, "resourceVersionMatch": "Exact"}
        accept = JSON if form is Form.WHOLE else _METADATA_ACCEPT[True]
        path = resource.path(namespace=selection.namespace)
        try:
            body = await self._request(resource, "GET", path, params=params, accept=accept, timeout=timeout)
        except errors.AnswerTooLong:
            asked = int(params["limit"])
            if asked == 1:
                raise
            self._page_limits[resource] = max(asked // _SMALLER_PAGE, 1)
            return await self.list_page(
                resource, selection, form=form, limit=limit, continue_token=continue_token, at=at, timeout=timeout
            )
        return await answers.list_of(resource, body)

    async def pages(
        self, resource: Resource, selection: Selection, *, form: Form = Form.WHOLE, limit: int = _PAGE
    ) -> AsyncIterator["list[Object]"]:
        token = ""
        while True:
            page = await self.list_page(resource, selection, form=form, limit=limit, continue_token=token)
            yield page["items"]
            token = metadata(page).get("continue") or ""
            if not token:
                return

    async def list(
        self, resource: Resource, selection: Selection | None = None, *, form: Form = Form.WHOLE
    ) -> list[Object]:
        """All pages together."""
        return [item async for page in self.pages(resource, selection or Selection(), form=form) for item in page]

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
            lasting=True,
        ) as response:
            if response.status != 200:
                error = await answers.error_of(response)
                if isinstance(error, errors.Unauthorized):
                    self.transport.connection.credentials.invalidate()
                if isinstance(error, errors.NoStatus | errors.NotFound):
                    await self._missing(resource, error)
                raise error
            with metrics.rest_client_open_watches.track_inprogress():
                yield answers.events_of(resource, response)


def _one(name: str) -> str:
    """The name, for a path to one object: without one it would lead to all of them."""
    if not name:
        raise ValueError("an object without a name can't be asked for")
    return name
