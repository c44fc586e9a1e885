"""Raw JSON over one connection to a cluster.

An object is identified by its `Key`, a cluster-scoped one also by its name alone.

A `RoundTripper` owns the resources shared by all clients of one API server: sessions, TLS, credentials. A `Client` is a
light view of it with a user agent, a rate limit, a bound on requests in flight and a guard: leader election uses one
without a limit, so that renewals never queue behind the work; controllers use one whose guard refuses to write when
leadership may be lost. No HTTP library is imported here: a command that makes one request should not pay for the needs
of a program that makes thousands.

Methods that take a resource raise KindNotServed if discovery lists no such kind (see `discovery_documents`); any other
answer that can't be from an API server is Unreachable (see `answers`).

Instructions of the API server are honoured here and nowhere else: Retry-After on 429 and 503 (the request was not
carried out, so it is safe to send it again), and a fresh token after a 401.
"""

import asyncio
import contextlib
import copy
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import Enum
from typing import Any, Never, Protocol, Self

from multidict import CIMultiDict, MultiMapping

from kube import errors
from kube.json_patches import as_stored
from kube.objects import Key, Object, key_of, mapping, metadata, spec, text
from kube.resources import Resource
from kube.runtime import answers, discovery_documents
from kube.runtime.answers import warning_texts
from kube.runtime.codec import dumps
from kube.runtime.connection import Connection
from kube.runtime.kind_shares import KindShares
from kube.runtime.limiter import TokenBucket
from kube.runtime.paging import Paging
from kube.write_mode import CARRIED_OUT, WriteMode

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"

_METADATA_ACCEPT = {
    False: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    True: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
}
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""Annotation, see `Client.watch`."""
_FROM_NOTHING = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_UNPROCESSABLE = 422
_REQUEST_SECONDS = 60.0
_SOON_SECONDS = 1.0
_IN_FLIGHT = 64
_RETRIES = 4
_CONFLICTS = 2
"""Repetitions of a patch after conflicts that it has no precondition for."""
_SHORTEST_PAUSE = 0.1
_LONGEST_PAUSE = 30.0
_PAGE = 500
_SMALLER_PAGE = 8
"""Divisor of the page size after a page that was too long."""
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_ANY_KIND = contextlib.nullcontext()


class Form(Enum):
    """Whole objects, or their metadata only (the API server leaves out the rest)."""

    WHOLE = "whole"
    METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class Selection:
    """Selected objects of a kind: of one namespace or all (empty), by labels and fields."""

    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""

    def parameters(self) -> dict[str, str]:
        chosen = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {name: value for name, value in chosen.items() if value}


def by_name(name: str) -> str:
    """Field selector for one object; special characters in its name are escaped."""
    escaped = name.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
    return f"metadata.name={escaped}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeout:
    """Seconds; None: no limit."""

    total: float | None = None
    """Limit for the whole answer."""
    silence: float | None = None
    """Limit between two pieces of it."""


class RoundTripper(Protocol):
    """Carries out HTTP requests to one API server, with its credentials. Programs use `kube.runtime.transport`."""

    @property
    def host(self) -> str:
        """Host and port of the API server."""

    @property
    def connection(self) -> Connection: ...

    async def close(self) -> None: ...

    def send(
        self,
        method: str,
        path: str,
        *,
        headers: MultiMapping[str],
        params: Mapping[str, str] | None,
        body: bytes | None,
        timeout: Timeout,
        lasting: bool = False,
    ) -> AbstractAsyncContextManager[answers.Response]:
        """Send one request as given; return the response regardless of its status. `lasting` is for watches.

        Raises: Unreachable: no answer came, or it broke off.
        """


class Consistency(Protocol):
    """Whether the caches that writers read from still agree with the cluster."""

    @property
    def unverified(self) -> bool:
        """Whether `verify` has to be called before anything is written."""

    async def verify(self) -> None:
        """Return if writing is permitted now; raise KubeError if not."""


class _InitialEvents:
    """Whether the API server begins a watch with all existing objects: older ones answer 422.

    The first such watch finds out, and others wait for its answer, so that there is one refusal and not one per kind.
    """

    def __init__(self) -> None:
        self._is_asked = False
        self._answered = asyncio.Event()
        self._is_refused = False

    async def demand(self) -> None:
        """Return unless the API server is known to refuse.

        Raises: Invalid: initial events are not supported.
        """
        if self._is_asked:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_SOON_SECONDS):
                    await self._answered.wait()
        self._is_asked = True
        if self._is_refused:
            raise errors.Invalid(422, message="the API server does not start watches with existing objects")

    def note(self, status: int) -> None:
        self._is_refused = status == _UNPROCESSABLE
        self._answered.set()


class Client:
    """View of a cluster for one purpose.

    Args:
        limiter: the connection's token bucket, None for no limit.
        write_guard: called before each write; returns the seconds for which this process may still write, and raises if
            it must not write now.
    """

    def __init__(
        self,
        transport: RoundTripper,
        *,
        user_agent: str,
        limiter: TokenBucket | None = None,
        write_guard: Callable[[], float] | None = None,
    ) -> None:
        self.transport = transport
        self.identity: MultiMapping[str] = CIMultiDict({"User-Agent": user_agent})
        """Headers that identify the user."""
        self._limiter = limiter
        self._write_guard = write_guard
        self.consistency: Consistency | None = None
        """Verified before each write; None: written objects do not come from a cache."""
        self._in_flight = asyncio.Semaphore(_IN_FLIGHT)
        self._shares = KindShares(self._is_answering)
        self.is_dry_run = False
        self._page_limits: dict[Resource, int] = {}
        self._list_kinds: dict[Resource, str] = {}
        self._initial_events = _InitialEvents()

    def impersonating(self, user: str, groups: Sequence[str] = ()) -> Self:
        """Same client, limits and guard included, with requests made as another user.

        The API server adds the groups by itself if the user is a ServiceAccount.
        """
        view = copy.copy(self)
        view.identity = CIMultiDict(
            [*self.identity.items(), ("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups)]
        )
        return view

    def dry_run(self) -> Self:
        """Same client, limits and guard included, whose writes the API server checks completely, and does not store."""
        view = copy.copy(self)
        view.is_dry_run = True
        return view

    def without_limit(self) -> Self:
        """Same client, guard included, whose requests wait for no others: for heartbeats."""
        view = type(self)(self.transport, user_agent="", write_guard=self._write_guard)
        view.identity, view.consistency = self.identity, self.consistency
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
        warnings: list[str] | None = None,
        kind: Resource | None = None,
        namespace: str = "",
    ) -> bytes:
        """Body of a successful answer.

        `warnings` gets the warnings of the API server. For `kind`, None for any, and `namespace` see `kind_shares`.

        Raises:
            ApiError: the API server refused; after retries if it requested them.
            Unreachable: no complete answer came in time. AnswerTooLong: it was not read to its end. NoStatus: it is a
                failure, but perhaps not of the API server.
        """
        headers = CIMultiDict(self.identity, Accept=accept)
        headers["Accept-Encoding"] = "identity"
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = body if isinstance(body, bytes) else dumps(body)
        refreshed, retries = False, _RETRIES
        patience = timeout or _REQUEST_SECONDS
        while True:
            try:
                return await self._once(
                    method,
                    path,
                    params=params,
                    data=data,
                    headers=headers,
                    timeout=timeout,
                    warnings=warnings,
                    kind=kind,
                    namespace=namespace,
                )
            except errors.Unauthorized:
                may_differ = self.transport.connection.credentials.invalidate()
                if refreshed or not retries or not may_differ:
                    raise
                refreshed = True
            except (errors.TooManyRequests, errors.ServerFailure) as error:
                refused = error.status in {429, 503} and error.retry_after is not None
                pause = pause_before_retry(error.retry_after or 0.0, retries=_RETRIES - retries)
                patience -= pause
                if not refused or not retries or patience < 0:
                    raise
                await asyncio.sleep(pause)
            retries -= 1

    async def read(self, path: str, *, accept: str = JSON) -> Object:
        """GET: the JSON object at a path."""
        return answers.loads(await self.request("GET", path, accept=accept))

    async def demand_served(self, resource: Resource) -> None:
        """Return if discovery lists the kind; raise KindNotServed if not, KubeError if unknown."""
        if not await discovery_documents.is_served(self.read, resource):
            raise errors.KindNotServed(resource.api_version, resource.kind)

    async def _request(
        self, resource: Resource, method: str, path: str, *, is_one: bool = True, **options: Any
    ) -> bytes:
        """Send a request to a path of a resource. Raises KindNotServed if it is not served any more."""
        kind = resource if is_one else None
        try:
            return await self.request(method, path, kind=kind, **options)
        except (errors.NoStatus, errors.NotFound) as error:
            return await self._missing(resource, error)

    async def _object(
        self, resource: Resource, method: str, path: str, *, form: Form = Form.WHOLE, **options: Any
    ) -> Object:
        body = await self._request(resource, method, path, **options)
        return await answers.object_of(resource, body, metadata_only=form is Form.METADATA)

    async def _missing(self, resource: Resource, error: errors.NoStatus | errors.NotFound) -> Never:
        """Raise KindNotServed if that is the reason, or the error itself."""
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
        headers: MultiMapping[str],
        timeout: float | None,
        warnings: list[str] | None,
        kind: Resource | None,
        namespace: str,
    ) -> bytes:
        if kind is not None:
            self._shares.demand(kind, namespace)
        is_write = method in _WRITES
        if is_write and self.is_dry_run:
            params = {**(params or {}), "dryRun": "All"}
        if self._limiter is not None:
            await self._limiter.acquire()
        await self._take_turn(verified=is_write)
        try:
            async with self._share(kind, namespace):
                seconds = timeout or _REQUEST_SECONDS
                if is_write and self._write_guard is not None:
                    # Called last, when the request is about to go out; it must not outlive the permission either.
                    seconds = min(seconds, self._write_guard())
                async with self.transport.send(
                    method, path, headers=headers, params=params, body=data, timeout=Timeout(total=seconds)
                ) as response:
                    if not 200 <= response.status < 300:
                        raise await answers.error_of(response)
                    if warnings is not None:
                        warnings += warning_texts(response.headers.getall("Warning", ()))
                    return await answers.whole(method, path, response)
        finally:
            self._in_flight.release()

    async def _take_turn(self, *, verified: bool) -> None:
        """Acquire one of the requests in flight; `verified`: not before the caches are verified."""
        while True:
            if verified and self.consistency is not None and self.consistency.unverified:
                await self.consistency.verify()
            await self._in_flight.acquire()
            # It may have waited for as long as an outage took.
            if not verified or self.consistency is None or not self.consistency.unverified:
                return
            self._in_flight.release()

    def _share(self, kind: Resource | None, namespace: str) -> AbstractAsyncContextManager[None]:
        return _ANY_KIND if kind is None else self._shares.hold(kind, namespace)

    async def _is_answering(self) -> bool:
        """Whether the API server, with its etcd, responds at all just now."""
        try:
            async with self.transport.send(
                "GET", "/readyz", headers=self.identity, params=None, body=None, timeout=Timeout(total=_SOON_SECONDS)
            ) as response:
                return response.status < 500
        except errors.KubeError:
            return False

    async def _wait_for_token(self) -> None:
        if self._limiter is not None:
            await self._limiter.acquire()

    # --- one object

    async def get(
        self,
        resource: Resource,
        name: Key | str,
        *,
        form: Form = Form.WHOLE,
        timeout: float | None = None,
    ) -> Object:
        accept = JSON if form is Form.WHOLE else _METADATA_ACCEPT[False]
        namespace, path = _place(resource, name)
        return await self._object(resource, "GET", path, form=form, accept=accept, timeout=timeout, namespace=namespace)

    async def find(self, resource: Resource, name: Key | str) -> Object | None:
        """Get an object; None if it does not exist."""
        try:
            return await self.get(resource, name)
        except errors.NotFound:
            return None

    async def create(
        self,
        resource: Resource,
        obj: Object,
        *,
        mode: WriteMode = CARRIED_OUT,
        timeout: float | None = None,
        warnings: list[str] | None = None,
    ) -> Object:
        """POST. For `warnings` see `request`."""
        namespace = metadata(obj).get("namespace") or ""
        return await self._object(
            resource,
            "POST",
            resource.path(namespace=namespace),
            params=mode.parameters() or None,
            body=obj,
            timeout=timeout,
            warnings=warnings,
            namespace=namespace,
        )

    async def create_if_missing(
        self, resource: Resource, obj: Object, *, mode: WriteMode = CARRIED_OUT
    ) -> Object | None:
        """Create an object. None if there is one of this name already."""
        try:
            return await self.create(resource, obj, mode=mode)
        except errors.AlreadyExists:
            return None

    async def replace(
        self,
        resource: Resource,
        obj: Object,
        *,
        subresource: str = "",
        mode: WriteMode = CARRIED_OUT,
        timeout: float | None = None,
        warnings: list[str] | None = None,
    ) -> Object:
        """PUT. The object's resourceVersion, if it has one, is the precondition. For `warnings` see `request`."""
        meta = metadata(obj)
        namespace = meta.get("namespace") or ""
        return await self._object(
            resource,
            "PUT",
            resource.path(namespace=namespace, name=_one(meta.get("name") or ""), subresource=subresource),
            params=mode.parameters() or None,
            body=obj,
            timeout=timeout,
            warnings=warnings,
            namespace=namespace,
        )

    async def patch(
        self,
        resource: Resource,
        name: Key | str,
        body: Any,
        *,
        subresource: str = "",
        content_type: str = MERGE_PATCH,
        timeout: float | None = None,
    ) -> Object:
        """PATCH. Without a resourceVersion, it is sent again if the API server finds no place between other writes."""
        namespace, path = _place(resource, name, subresource)
        data = as_stored(dumps(body)) if content_type == JSON_PATCH else body
        options: dict[str, Any] = {"content_type": content_type, "timeout": timeout, "namespace": namespace}
        for _ in range(_CONFLICTS):
            try:
                return await self._object(resource, "PATCH", path, body=data, **options)
            except errors.Conflict as error:
                if _demands_version(body) or "Precondition failed" in str(error):
                    raise
        return await self._object(resource, "PATCH", path, body=data, **options)

    async def patch_if_exists(self, resource: Resource, name: Key | str, body: Any) -> Object | None:
        """Apply a merge patch. None if there is no such object."""
        try:
            return await self.patch(resource, name, body)
        except errors.NotFound:
            return None

    async def annotate(
        self,
        resource: Resource,
        name: Key | str,
        notes: Mapping[str, str | None],
        *,
        uid: str = "",
        resource_version: str = "",
    ) -> Object:
        """Set annotations, with the given preconditions; None removes one."""
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        meta = {field: value for field, value in preconditions.items() if value}
        return await self.patch(resource, name, {"metadata": {**meta, "annotations": dict(notes)}})

    async def delete(
        self,
        resource: Resource,
        name: Key | str,
        *,
        propagation: str = "",
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
        timeout: float | None = None,
    ) -> None:
        """DELETE, with the given preconditions (409 if they do not hold).

        Args: grace_seconds: grace period; None: the object's own.
        """
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        preconditions = {field: value for field, value in preconditions.items() if value}
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if propagation:
            options["propagationPolicy"] = propagation
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if preconditions:
            options["preconditions"] = preconditions
        namespace, path = _place(resource, name)
        body = await self._request(resource, "DELETE", path, body=options, timeout=timeout, namespace=namespace)
        await answers.check_deletion(resource, body)

    async def delete_if_exists(
        self,
        resource: Resource,
        name: Key | str,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_seconds: int | None = None,
    ) -> bool:
        """Delete an object that may be missing; return whether it existed."""
        try:
            await self.delete(resource, name, uid=uid, resource_version=resource_version, grace_seconds=grace_seconds)
        except errors.NotFound:
            return False
        return True

    # --- many objects

    async def delete_collection(self, resource: Resource, selection: Selection) -> None:
        path = resource.path(namespace=selection.namespace)
        body = await self._request(resource, "DELETE", path, is_one=False, params=selection.parameters())
        await answers.check_deletion(resource, body, of_many=True)

    async def list_page(
        self,
        resource: Resource,
        selection: Selection,
        *,
        form: Form = Form.WHOLE,
        limit: int = _PAGE,
        continue_token: str = "",
        at: str = "",
        managed_fields: bool = False,
        timeout: float | None = None,
        paging: Paging | None = None,
    ) -> Object:
        """One page; `metadata.continue` of the answer is the token for the next. Items get apiVersion and kind.

        Objects have no `managedFields` unless requested. A part of an object that can't be read is left out of it
        alone.

        For kinds with very large objects, a page has fewer than `limit`. `at` is the resourceVersion to list at,
        instead of the present; raises Gone if the API server has forgotten it.

        `paging` counts the bytes of a list of several pages.
        """
        params = {**selection.parameters(), "limit": str(min(limit, self._page_limits.get(resource, limit)))}
        if continue_token:
            params["continue"] = continue_token
        if at:
            params |= {"resourceVersion": at, "resourceVersionMatch": "Exact"}
        accept = JSON if form is Form.WHOLE else _METADATA_ACCEPT[True]
        path = resource.path(namespace=selection.namespace)
        try:
            body = await self._request(
                resource, "GET", path, is_one=False, params=params, accept=accept, timeout=timeout
            )
        except errors.AnswerTooLong:
            requested = int(params["limit"])
            if requested == 1:
                raise
            self._page_limits[resource] = max(requested // _SMALLER_PAGE, 1)
            return await self.list_page(
                resource,
                selection,
                form=form,
                limit=limit,
                continue_token=continue_token,
                at=at,
                managed_fields=managed_fields,
                timeout=timeout,
                paging=paging,
            )
        if paging is not None:
            paging.received(len(body))
        return await answers.list_of(
            resource,
            body,
            metadata_only=form is Form.METADATA,
            managed_fields=managed_fields,
            other_kind=lambda: self._list_kind(resource),
        )

    async def _list_kind(self, resource: Resource) -> str:
        """Kind of the lists of a kind: a CustomResourceDefinition may set it."""
        if resource not in self._list_kinds:
            path = f"{_DEFINITIONS}/{resource.plural}.{resource.group}"
            names = mapping(spec(await self.read(path)).get("names"))
            self._list_kinds[resource] = text(names.get("listKind"))
        return self._list_kinds[resource]

    async def pages(
        self,
        resource: Resource,
        selection: Selection,
        *,
        form: Form = Form.WHOLE,
        limit: int = _PAGE,
        managed_fields: bool = False,
    ) -> AsyncIterator["list[Object]"]:
        token, paging = "", Paging(resource)
        while True:
            page = await self.list_page(
                resource,
                selection,
                form=form,
                limit=limit,
                continue_token=token,
                managed_fields=managed_fields,
                paging=paging,
            )
            token = paging.following(page)
            yield page["items"]
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
        managed_fields: bool = False,
    ) -> AsyncIterator[AsyncIterator[Object]]:
        """Events of a watch: `{"type": …, "object": …}`, bookmarks and errors included. Objects are as in a list.

        Without a resourceVersion it begins with all existing objects, and a bookmark that marks their end
        (`INITIAL_EVENTS_END`). Raises Invalid if the API server does not support that.

        A broken stream raises Unreachable, one that is silent for `idle_timeout` seconds TimedOut, an invalid event
        NotUnderstood; its regular end ends the iteration.
        """
        params = {
            **selection.parameters(),
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(timeout_seconds),
            **({"resourceVersion": resource_version} if resource_version else _FROM_NOTHING),
        }
        headers = CIMultiDict(self.identity, Accept=JSON if form is Form.WHOLE else _METADATA_ACCEPT[False])
        headers["Accept-Encoding"] = "identity"
        if not resource_version:
            await self._initial_events.demand()
        await self._wait_for_token()
        async with self.transport.send(
            "GET",
            resource.path(namespace=selection.namespace),
            headers=headers,
            params=params,
            body=None,
            timeout=Timeout(silence=idle_timeout),
            lasting=True,
        ) as response:
            if not resource_version:
                self._initial_events.note(response.status)
            if response.status != 200:
                error = await answers.error_of(response)
                if isinstance(error, errors.Unauthorized):
                    self.transport.connection.credentials.invalidate()
                if isinstance(error, errors.NoStatus | errors.NotFound):
                    await self._missing(resource, error)
                raise error
            yield answers.events_of(
                resource, response, metadata_only=form is Form.METADATA, managed_fields=managed_fields
            )

    @contextlib.asynccontextmanager
    async def lines(self, path: str, *, params: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        """GET: the lines of a text that arrives bit by bit, such as a followed log."""
        await self._wait_for_token()
        async with self.transport.send(
            "GET",
            path,
            headers=self.identity,
            params=params,
            body=None,
            timeout=Timeout(),
            lasting=True,
        ) as response:
            if response.status != 200:
                raise await answers.error_of(response)
            yield answers.lines_of(response)


def pause_before_retry(retry_after: float, *, retries: int) -> float:
    """Seconds to wait before the next retry: as requested by the API server, within bounds.

    A client that may come back at once waits longer each time: else many of them would keep the API server from
    recovering.
    """
    return min(max(retry_after, _SHORTEST_PAUSE * 2.0**retries), _LONGEST_PAUSE)


def _demands_version(patch: Any) -> bool:
    """Whether a patch has the resourceVersion as precondition."""
    if isinstance(patch, list):
        return any(each.get("path") == "/metadata/resourceVersion" for each in patch)
    return "resourceVersion" in metadata(patch)


def _place(resource: Resource, name: Key | str, subresource: str = "") -> tuple[str, str]:
    """Namespace of an object, and its path. Raises ValueError without a name."""
    own = key_of(name)
    return own.namespace, resource.path(namespace=own.namespace, name=_one(own.name), subresource=subresource)


def _one(name: str) -> str:
    """Name for a path to one object: an empty one is refused, since the path would be that of all objects."""
    if not name:
        raise ValueError("cannot get an object without a name")
    return name
