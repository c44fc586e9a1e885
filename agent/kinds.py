"""Kinds that come, change and go in the target cluster, followed by way of its CustomResourceDefinitions.

Only their metadata is watched: that one changed is enough to know, since its name ends in the group. What was known of
the group is forgotten, watches that wait for one of its kinds try again at once, and control loops are told.

Where CustomResourceDefinitions may not be read, everything still works, only later: unknown kinds are asked for again
now and then.
"""

from collections.abc import Callable

from kube.cache import Change, Store, View
from kube.client import Form
from kube.objects import resource_version
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS
from process.clusters import Cluster

CRDS_VIEW = View(CUSTOM_RESOURCE_DEFINITIONS, resource_version, form=Form.METADATA)


def group_of_crd(name: str) -> str:
    """`widgets.example.com` is a kind of the group `example.com`."""
    return name.partition(".")[2]


class KindsFollower:
    """Args: tell: called with a group whose kinds changed."""

    def __init__(self, cluster: Cluster, *, tell: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._tell = tell
        self._store: Store[int] | None = None

    async def start(self, *, patience: float) -> None:
        """Returns when the present ones are known, or could not be read, at most after so many seconds."""
        self._store = self._cluster.caches.acquire(CRDS_VIEW)
        self._store.subscribe(self._changed)
        await self._cluster.caches.tried(CRDS_VIEW, timeout=patience)

    async def close(self) -> None:
        if self._store is not None:
            self._store = None
            await self._cluster.caches.release(CRDS_VIEW)

    def _changed(self, change: Change[int]) -> None:
        if change.old == change.new:
            return  # a resync
        group = group_of_crd(change.key.name)
        self._cluster.discovery.invalidate(group)
        self._cluster.caches.wake(group)
        self._tell(group)
