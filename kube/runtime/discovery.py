"""Path and scope of a kind, given apiVersion and kind, according to the API server.

With the first kind of a named group all group versions are requested in one call, and each is taken over when a kind of
it is first needed. Where the API server does not support that, and later, it is one GET per group version; then from
memory. A missing kind is looked up again, since it may have been added meanwhile: at once, then less and less often.
`invalidate` makes the next lookup go to the API server at once (called when a CRD is created, changed or deleted, and
when a path turned out to be gone).

The answer 'not served' may be ten minutes old, and a kind that is not served may have objects. A caller that concludes
that all objects of a kind are gone uses `find_any_version` or `require_gone`, which never conclude that from memory.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kube.errors import Forbidden, KindGone, KindNotServed, KubeError
from kube.names import dns_label_problems, dns_subdomain_problems
from kube.objects import Key, Object, group_of, metadata
from kube.resources import BUILT_IN_GROUPS, CUSTOM_RESOURCE_DEFINITIONS, Resource
from kube.runtime import discovery_documents
from kube.runtime.client import Client, Form, Selection
from kube.runtime.kind_definitions import DefinedKinds, defined_kinds, require_not_among

_FIRST_REFRESH_SECONDS = 0.1
_FIRST_CATALOG_SECONDS = 30.0
_LONGEST_REFRESH_SECONDS = 600.0
_MOST_GROUP_VERSIONS = 1000
_MOST_EXPLAINED = 20
_GROUP_SECONDS = 1.0
"""Lifetime of the answers for all versions of a group: many objects of many kinds are looked up at once."""


@dataclass(slots=True)
class _GroupVersion:
    kinds: Mapping[str, Resource] = field(default_factory=dict)
    stale_at: float = float("-inf")
    """Time from which on a kind that is not among them justifies another request."""
    patience: float = _FIRST_REFRESH_SECONDS
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class _Group:
    """Kinds of a group, each in the first version that has it."""

    asked_at: float = float("-inf")
    kinds: Mapping[str, Resource] = field(default_factory=dict)
    defined: DefinedKinds | KubeError | None = None
    """Kinds that may have objects, or the error if unknown; None: not requested yet."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class _Catalog:
    """All kinds."""

    resources: Sequence[Resource] = ()
    stale_at: float = float("-inf")
    patience: float = _FIRST_CATALOG_SECONDS
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Discovery:
    def __init__(self, client: Client, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._group_versions: dict[str, _GroupVersion] = {}
        self._groups: dict[str, _Group] = {}
        self._version = ""
        """Version of Kubernetes."""
        self._schemas: dict[Resource, str] = {}
        self._schema_lock = asyncio.Lock()
        self._catalog = _Catalog()
        self._all: dict[str, dict[str, Resource] | None] | None = None
        """All group versions in one answer, without those taken over already; None: not requested yet."""
        self._all_at = float("-inf")
        """Time of that answer, if a group version missing in it was not served then."""
        self._asking_for_all = asyncio.Lock()
        self._changes = 0
        """Number of invalidations."""

    async def find(self, api_version: str, kind: str) -> Resource:
        """Resource of a kind in exactly this version.

        Raises:
            KindNotServed: the API server does not serve it (or did not a moment ago).
            ApiError, Unreachable: the request failed.
        """
        if not _may_be_defined(api_version, kind):
            raise KindNotServed(api_version, kind)
        known = self._group_versions.get(api_version)
        if known is None:
            if len(self._group_versions) >= _MOST_GROUP_VERSIONS:
                # Manifests may name anything; kinds that are really served are read again soon enough.
                self._group_versions.clear()
            known = self._group_versions[api_version] = _GroupVersion()
        if found := known.kinds.get(kind):
            return found
        async with known.lock:
            # The time is taken before the request: changes during it lead to another request.
            now = self._clock()
            if kind not in known.kinds and now >= known.stale_at:
                known.kinds = await self._kinds(api_version, kind, now=now)
                known.stale_at = now + known.patience
                known.patience = min(known.patience * 2, _LONGEST_REFRESH_SECONDS)
        if found := known.kinds.get(kind):
            return found
        raise KindNotServed(api_version, kind)

    async def _kinds(self, api_version: str, kind: str, *, now: float) -> Mapping[str, Resource]:
        if "/" in api_version:
            kinds = await self._kinds_at_once(api_version, now=now)
            if kinds is not None and (kind in kinds or now - self._all_at < _FIRST_REFRESH_SECONDS):
                return kinds
        return await discovery_documents.kinds(self._client.read, api_version)

    async def _kinds_at_once(self, api_version: str, *, now: float) -> Mapping[str, Resource] | None:
        """Kinds of a group version, from the one answer with all; None: that answer does not have them."""
        async with self._asking_for_all:
            if self._all is None:
                self._all, changes = {}, self._changes
                with contextlib.suppress(KubeError):  # then each is requested by itself
                    found = await discovery_documents.all_kinds(self._client.read)
                    if found and changes == self._changes:
                        self._all, self._all_at = found, now
        if api_version in self._all:
            return self._all.pop(api_version)
        return {} if now - self._all_at < _FIRST_REFRESH_SECONDS else None

    async def find_any_version(self, api_version: str, kind: str) -> Resource:
        """Resource of a kind in this version or, if that is not served any more, in another one of its group.

        Raises:
            KindGone: no version is served, and the API server has just confirmed that there are no objects.
            KindUnavailable: no version is served, but the kind is defined.
            ApiError, Unreachable: the request failed.
        """
        try:
            return await self.find(api_version, kind)
        except KindNotServed as error:
            if not _may_be_defined(api_version, kind):
                raise KindGone(api_version, kind) from error
        group = await self._group(group_of(api_version))
        if found := group.kinds.get(kind):
            return found
        await self._demand_gone(group, api_version, kind)
        raise KindGone(api_version, kind)

    async def require_gone(self, api_version: str, kind: str) -> None:
        """Return if there are no objects of a kind; see `kind_definitions.require_gone`."""
        if _may_be_defined(api_version, kind):
            await self._demand_gone(await self._group(group_of(api_version)), api_version, kind)

    async def list_if_served(
        self, resource: Resource, selection: Selection | None = None, *, form: Form = Form.WHOLE
    ) -> list[Object]:
        """All objects of a kind; none if there is no such kind."""
        try:
            return await self._client.list(resource, selection, form=form)
        except KindNotServed:
            await self.require_gone(resource.api_version, resource.kind)
            return []

    async def find_if_served(self, resource: Resource, name: Key | str) -> Object | None:
        """Object in this version or, if that is not served any more, in another one; None also if the kind is gone."""
        with contextlib.suppress(KindNotServed):
            return await self._client.find(resource, name)
        try:
            resource = await self.find_any_version(resource.api_version, resource.kind)
        except KindGone:
            return None
        return await self._client.find(resource, name)

    async def kind_if_served(self, api_version: str, kind: str) -> Resource | None:
        """Resource of a kind; None if the API server does not serve it in this version (or did not a moment ago)."""
        try:
            return await self.find(api_version, kind)
        except KindNotServed:
            return None

    async def is_served(self, resource: Resource) -> bool:
        """Whether the kind is served in this version."""
        return await self.kind_if_served(resource.api_version, resource.kind) is not None

    async def _group(self, name: str) -> _Group:
        if len(self._groups) >= _MOST_GROUP_VERSIONS:
            self._groups.clear()
        group = self._groups.setdefault(name, _Group())
        async with group.lock:
            now = self._clock()
            if now - group.asked_at >= _GROUP_SECONDS:
                group.kinds, group.defined = await self._kinds_of_group(name), None
                group.asked_at = now
        return group

    async def _demand_gone(self, group: _Group, api_version: str, kind: str) -> None:
        async with group.lock:
            if group.defined is None:
                try:
                    known = group.kinds.values()
                    group.defined = await defined_kinds(self._client, group_of(api_version), known=list(known))
                except KubeError as error:
                    group.defined = error
        if isinstance(group.defined, KubeError):
            raise group.defined.with_traceback(None)
        require_not_among(group.defined, api_version, kind)

    async def _kinds_of_group(self, group: str) -> Mapping[str, Resource]:
        found: dict[str, Resource] = {}
        for version in await discovery_documents.versions(self._client.read, group):
            found = {**await discovery_documents.kinds(self._client.read, version), **found}
        return found

    def known(self, api_version: str, kind: str) -> Resource | None:
        """Resource of a kind, if it is in memory."""
        known = self._group_versions.get(api_version)
        return known.kinds.get(kind) if known is not None else None

    async def schema(self, resource: Resource) -> str:
        """Text that changes with the fields that the API server knows of a kind, from memory if possible.

        For a built-in kind its version, else the generation of the CustomResourceDefinition. Empty if that can't be
        read, such as where another API server serves the kind.
        """
        async with self._schema_lock:
            known = self.known_schema(resource)
            if known is None:
                known = await self._read_schema(resource)
            return known

    async def _read_schema(self, resource: Resource) -> str:
        try:
            if resource.group in BUILT_IN_GROUPS:
                self._version = str((await self._client.read("/version")).get("gitVersion") or "")
                return self._version
            # They are watched, so the right to list them exists; the right to get them is another one.
            named = Selection(field_selector=f"metadata.name={resource.plural}.{resource.group}")
            found = await self._client.list(CUSTOM_RESOURCE_DEFINITIONS, named, form=Form.METADATA)
            schema = "".join(f"{metadata(each).get('uid')}/{metadata(each).get('generation')}" for each in found)
        except Forbidden:
            schema = ""
        except KubeError:
            return ""
        if len(self._schemas) >= _MOST_GROUP_VERSIONS:
            self._schemas.clear()
        self._schemas[resource] = schema
        return schema

    def known_schema(self, resource: Resource) -> str | None:
        """Schema of a kind, if it is in memory."""
        if resource.group in BUILT_IN_GROUPS:
            return self._version or None
        return self._schemas.get(resource)

    async def served(self) -> Sequence[Resource]:
        """All kinds, preferred versions first, perhaps ten minutes old; none if the API server can't be reached.

        For suggestions in errors about a kind that is not served.
        """
        async with self._catalog.lock:
            now = self._clock()
            if now >= self._catalog.stale_at:
                with contextlib.suppress(KubeError):
                    answers = [
                        await self._client.read(path, accept=discovery_documents.AGGREGATED)
                        for path in ("/api", "/apis")
                    ]
                    self._catalog.resources = [
                        each for answer in answers for each in discovery_documents.resources_in(answer)
                    ]
                self._catalog.stale_at = now + self._catalog.patience
                self._catalog.patience = min(self._catalog.patience * 2, _LONGEST_REFRESH_SECONDS)
            return self._catalog.resources

    def forget(self) -> None:
        self._group_versions.clear()
        self._groups.clear()
        self._schemas.clear()
        self._catalog = _Catalog()
        self._version = ""
        self._all, self._all_at = None, float("-inf")
        self._changes += 1

    def invalidate(self, group: str) -> None:
        """Forget all versions of a group."""
        self._changes += 1
        self._groups.pop(group, None)
        for resource in [each for each in self._schemas if each.group == group]:
            del self._schemas[resource]
        self._all_at = float("-inf")
        known = self._all or {}
        for api_version in known:
            if group_of(api_version) == group:
                known[api_version] = None
        for api_version in [v for v in self._group_versions if group_of(v) == group]:
            del self._group_versions[api_version]


Explain = Callable[[KindNotServed, Sequence[Resource]], KindNotServed]
"""Turns the error of a kind that is not served, with all served kinds, into one with advice."""


async def find_all(
    discovery: Discovery, kinds: Iterable[tuple[str, str]], *, explain: Explain, awaited: Container[str] = ()
) -> dict[tuple[str, str], Resource | KubeError]:
    """Find many kinds: resource or error by apiVersion and kind. Only the first errors are explained: it takes time.

    Args:
        discovery: of the cluster.
        kinds: apiVersion and kind of each.
        explain: see there.
        awaited: groups of which more kinds will be served soon; errors of these are not explained.
    """
    found: dict[tuple[str, str], Resource | KubeError] = {}
    explained = 0
    for api_version, kind in kinds:
        try:
            found[api_version, kind] = await discovery.find(api_version, kind)
        except KindNotServed as error:
            if group_of(api_version) not in awaited and explained < _MOST_EXPLAINED:
                explained += 1
                error = explain(error, await discovery.served())
            found[api_version, kind] = error
        except KubeError as error:
            found[api_version, kind] = error
    return found


def _may_be_defined(api_version: str, kind: str) -> bool:
    return bool(kind) and _can_be_served(api_version)


def _can_be_served(api_version: str) -> bool:
    """Whether an apiVersion is valid: manifests may name anything, so others are kept out of paths."""
    group, slash, version = api_version.rpartition("/")
    return not dns_label_problems(version) and not (slash and dns_subdomain_problems(group))
