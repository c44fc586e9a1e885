"""From apiVersion and kind to a path and a scope, as the API server tells.

One GET a group version, when a kind of it is first asked for, then from memory. A kind that is missing is looked
up again, since it may have come meanwhile: at once, then less and less often. `invalidate` makes the next
question go to the API server at once (called when a CRD comes, changes or goes, and when a path turned out to be
gone).

The answer 'not served' may be ten minutes old. A caller that concludes from it that all objects of a kind are gone
asks `find_any_version`, which never says so from memory.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kube import served
from kube.client import Client
from kube.errors import KindNotServed, KubeError
from kube.names import dns_label_problems, dns_subdomain_problems
from kube.objects import group_of
from kube.resources import Resource

_FIRST_REFRESH_SECONDS = 0.1
_LONGEST_REFRESH_SECONDS = 600.0
_MOST_GROUP_VERSIONS = 1000
_GROUP_SECONDS = 1.0
"""How long the answers for all versions of a group are good: many objects of many kinds are asked for at once."""


@dataclass(slots=True)
class _GroupVersion:
    kinds: Mapping[str, Resource] = field(default_factory=dict)
    stale_at: float = float("-inf")
    """When a kind that is not among them is worth another question."""
    patience: float = _FIRST_REFRESH_SECONDS
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class _Group:
    """The kinds of a group, each in the first version that has it."""

    asked_at: float = float("-inf")
    kinds: Mapping[str, Resource] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Discovery:
    def __init__(self, client: Client, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._group_versions: dict[str, _GroupVersion] = {}
        self._groups: dict[str, _Group] = {}

    async def find(self, api_version: str, kind: str) -> Resource:
        """The resource of a kind in exactly this version.

        Raises:
            KindNotServed: the API server does not serve it (or did not a moment ago).
            ApiError, Unreachable: it could not be asked.
        """
        if not kind or not _can_be_served(api_version):
            raise KindNotServed(api_version, kind)
        known = self._group_versions.get(api_version)
        if known is None:
            if len(self._group_versions) >= _MOST_GROUP_VERSIONS:
                # Manifests may name anything; what is really served is read again soon enough.
                self._group_versions.clear()
            known = self._group_versions[api_version] = _GroupVersion()
        if found := known.kinds.get(kind):
            return found
        async with known.lock:
            # The time is taken before asking: what changes while the answer travels is asked for again.
            now = self._clock()
            if kind not in known.kinds and now >= known.stale_at:
                known.kinds = await served.kinds(self._client.read, api_version)
                known.stale_at = now + known.patience
                known.patience = min(known.patience * 2, _LONGEST_REFRESH_SECONDS)
        if found := known.kinds.get(kind):
            return found
        raise KindNotServed(api_version, kind)

    async def find_any_version(self, api_version: str, kind: str) -> Resource:
        """The resource of a kind in this version or, if that is not served any more, in another one of its group.

        Raises:
            KindNotServed: it is served in none, as the API server has said just now.
            ApiError, Unreachable: it could not be asked.
        """
        try:
            return await self.find(api_version, kind)
        except KindNotServed:
            if not kind or not _can_be_served(api_version):
                raise
        name = group_of(api_version)
        if len(self._groups) >= _MOST_GROUP_VERSIONS:
            self._groups.clear()
        group = self._groups.setdefault(name, _Group())
        async with group.lock:
            now = self._clock()
            if now - group.asked_at >= _GROUP_SECONDS:
                group.kinds = await self._kinds_of_group(name)
                group.asked_at = now
        if found := group.kinds.get(kind):
            return found
        raise KindNotServed(api_version, kind)

    async def _kinds_of_group(self, group: str) -> Mapping[str, Resource]:
        found: dict[str, Resource] = {}
        for version in await served.versions(self._client.read, group):
            found = {**await served.kinds(self._client.read, version), **found}
        return found

    def known(self, api_version: str, kind: str) -> Resource | None:
        """The resource of a kind as far as it is in memory."""
        known = self._group_versions.get(api_version)
        return known.kinds.get(kind) if known is not None else None

    def forget(self) -> None:
        self._group_versions.clear()
        self._groups.clear()

    def invalidate(self, group: str) -> None:
        """Forget all versions of a group."""
        self._groups.pop(group, None)
        for api_version in [v for v in self._group_versions if group_of(v) == group]:
            del self._group_versions[api_version]


async def find_all(
    discovery: Discovery, kinds: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], Resource | KubeError]:
    """By apiVersion and kind: the resource, or why it is not known."""
    found: dict[tuple[str, str], Resource | KubeError] = {}
    for api_version, kind in kinds:
        try:
            found[api_version, kind] = await discovery.find(api_version, kind)
        except KubeError as error:
            found[api_version, kind] = error
    return found


def _can_be_served(api_version: str) -> bool:
    """Manifests may name anything: what is no group and version is kept out of paths."""
    group, slash, version = api_version.rpartition("/")
    return not dns_label_problems(version) and not (slash and dns_subdomain_problems(group))
