"""From apiVersion and kind to a path and a scope, as the API server tells.

One GET a group version, when a kind of it is first asked for, then from memory. A kind that is missing is looked
up again, since it may have come meanwhile: at once, then less and less often. `invalidate` makes the next
question go to the API server at once (called when a CRD comes, changes or goes, and when a path turned out to be
gone).
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kube.client import Client
from kube.errors import KindNotServed, NotFound
from kube.names import dns_label_problems, dns_subdomain_problems
from kube.objects import group_of
from kube.resources import Resource

_FIRST_REFRESH_SECONDS = 0.1
_LONGEST_REFRESH_SECONDS = 600.0
_MOST_GROUP_VERSIONS = 1000


@dataclass(slots=True)
class _GroupVersion:
    kinds: Mapping[str, Resource] = field(default_factory=dict)
    stale_at: float = float("-inf")
    """When a kind that is not among them is worth another question."""
    patience: float = _FIRST_REFRESH_SECONDS
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Discovery:
    """What one API server serves."""

    def __init__(self, client: Client, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._group_versions: dict[str, _GroupVersion] = {}

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
                known.kinds = await self._read(api_version)
                known.stale_at = now + known.patience
                known.patience = min(known.patience * 2, _LONGEST_REFRESH_SECONDS)
        if found := known.kinds.get(kind):
            return found
        raise KindNotServed(api_version, kind)

    def known(self, api_version: str, kind: str) -> Resource | None:
        """The resource of a kind as far as it is in memory."""
        known = self._group_versions.get(api_version)
        return known.kinds.get(kind) if known is not None else None

    def invalidate(self, group: str) -> None:
        """Forget all versions of a group."""
        for api_version in [v for v in self._group_versions if group_of(v) == group]:
            del self._group_versions[api_version]

    async def _read(self, api_version: str) -> dict[str, Resource]:
        group, _, version = api_version.rpartition("/")
        path = f"/apis/{api_version}" if group else f"/api/{api_version}"
        try:
            answer = await self._client.read(path)
        except NotFound:
            return {}
        return {
            entry["kind"]: Resource(group, version, entry["kind"], entry["name"], bool(entry["namespaced"]))
            for entry in answer.get("resources") or []
            if "/" not in entry["name"] and "get" in entry.get("verbs", ())
        }


def _can_be_served(api_version: str) -> bool:
    """Manifests may name anything: what is no group and version is kept out of paths."""
    group, slash, version = api_version.rpartition("/")
    return not dns_label_problems(version) and not (slash and dns_subdomain_problems(group))
