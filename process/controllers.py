"""Work of the leader: following the kinds of clusters, and the control loops."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence

import structlog

from kube.objects import resource_version
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS
from kube.runtime.cache import Change, View
from kube.runtime.client import Form
from kube.runtime.loop import ControlLoop
from process.caches import fill
from process.clusters import Cluster, Clusters, distinct
from process.configuration.blocks import Configuration
from process.runner import cancelled

CRDS_VIEW = View(CUSTOM_RESOURCE_DEFINITIONS, resource_version, form=Form.METADATA, is_optional=True)
_KINDS_SECONDS = 10.0
_FINISHING_SHARE = 0.4

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class Controllers:
    """Control loops of a leader; a component in the sense of `process.runner`.

    After the restore of a cluster from a backup, the memory of the control loops may be wrong. So they are recreated,
    as if this process had just begun to lead.

    Args:
        clusters: that the control loops work on.
        kinds_of: names of clusters whose CustomResourceDefinitions are followed while they are connected, so that
            control loops learn of kinds.
        compose: creates the control loops; called when this process leads.
    """

    name = "controllers"

    def __init__(
        self,
        clusters: Clusters,
        *,
        config: Configuration,
        kinds_of: Collection[str],
        compose: Callable[[], Awaitable[Sequence[ControlLoop]]],
    ) -> None:
        self._config = config
        self._clusters = clusters
        self._unsubscribe: Callable[[], None] | None = None
        self._compose = compose
        self._kinds_of = kinds_of
        self._kinds: list[KindsFollower] = []
        self._loops: Sequence[ControlLoop] = ()
        self._running: list[asyncio.Task[None]] = []
        self._restarting: asyncio.Task[None] | None = None

    async def start(self) -> None:
        # No state here yet.
        self._clusters.history_rewound.clear()
        for cluster in distinct(self._clusters).values():
            cluster.caches.history_rewound.clear()
        # Before the controllers: changes correct the kinds that they learn from now on.
        self._unsubscribe = self._clusters.subscribe(self._connections_changed)
        self._connections_changed()
        await asyncio.gather(*(kinds.tried(timeout=_KINDS_SECONDS) for kinds in self._kinds))
        self._loops = await self._compose()
        timeout, path = self._config.cache_sync_timeout, self._config.cache_sync_timeout_path
        await fill(self._start_loops(), self._clusters, timeout=timeout, path=path)
        self._running = [asyncio.create_task(loop.controller.run(), name=loop.controller.name) for loop in self._loops]

    async def wait(self) -> None:
        while await self._history_rewound():
            self._restarting = asyncio.create_task(self._restart(), name="restart of controllers")
            await self._restarting

    async def _history_rewound(self) -> bool:
        """Wait for a reason to recreate the control loops; False if all have ended by themselves."""
        news = asyncio.create_task(self._clusters.history_rewound.wait())
        running = set(self._running)
        try:
            while running:
                ended, _ = await asyncio.wait({*running, news}, return_when=asyncio.FIRST_COMPLETED)
                for loop in ended & running:
                    if not loop.cancelled():
                        loop.result()
                if news.done():
                    return True
                running -= ended
            return False
        finally:
            news.cancel()

    async def _restart(self) -> None:
        log.info("Restarting the controllers, since a cluster may have been restored from a backup")
        await self._end()
        for cluster in distinct(self._clusters).values():
            cluster.discovery.forget()
        await self.start()

    async def stop(self) -> None:
        """Take no further keys, and let running passes finish for a while, so that they can report their result."""
        if self._restarting is not None:
            await cancelled(self._restarting)
        for loop in self._loops:
            loop.controller.queue.shut_down()
        if self._running:
            await asyncio.wait(self._running, timeout=self._config.graceful_shutdown_timeout * _FINISHING_SHARE)
        await self._end()

    async def _end(self) -> None:
        for loop in self._loops:
            loop.controller.queue.shut_down()
        await cancelled(*self._running)
        for loop in self._loops:
            await loop.close()
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        while self._kinds:
            await self._kinds.pop().close()

    async def _start_loops(self) -> None:
        async with asyncio.TaskGroup() as starting:
            for loop in self._loops:
                starting.create_task(loop.start(), name=f"start {loop.controller.name}")

    def _connections_changed(self) -> None:
        """Follow the kinds of the connected clusters, and stop following those of others."""
        found = [self._clusters[name] for name in self._kinds_of if name in self._clusters]
        followed = [kinds for kinds in self._kinds if kinds.cluster in found]
        for cluster in found:
            if cluster not in [kinds.cluster for kinds in followed]:
                followed.append(KindsFollower(cluster, on_change=self._kinds_changed))
        self._kinds = followed

    def _kinds_changed(self, group: str) -> None:
        for loop in self._loops:
            loop.kinds_changed(group)


def group_of_crd(name: str) -> str:
    """Return the group in the name of a CustomResourceDefinition: `example.com` for `widgets.example.com`."""
    return name.partition(".")[2]


class KindsFollower:
    """Follows new, changed and deleted kinds of a cluster by its CustomResourceDefinitions.

    Only their metadata are watched: a change suffices, since the name ends in the group. Discovery of the group is
    discarded, watches that wait for one of its kinds retry at once, and control loops are notified.

    If CustomResourceDefinitions may not be read, they are not requested again. Everything still works, only later:
    unknown kinds are requested now and then.

    Args: on_change: called with a group whose kinds changed.
    """

    def __init__(self, cluster: Cluster, *, on_change: Callable[[str], None]) -> None:
        self.cluster = cluster
        self._on_change = on_change
        self._unsubscribe = cluster.caches.acquire(CRDS_VIEW).subscribe(self._changed)

    async def tried(self, *, timeout: float) -> None:
        """Return when the present ones are known, or could not be read, at most after so many seconds."""
        await self.cluster.caches.tried(CRDS_VIEW, timeout=timeout)

    async def close(self) -> None:
        self._unsubscribe()
        await self.cluster.caches.release(CRDS_VIEW)

    def _changed(self, change: Change[int]) -> None:
        if change.old == change.new:
            return  # a resync
        group = group_of_crd(change.key.name)
        self.cluster.discovery.invalidate(group)
        self.cluster.caches.wake(group)
        self._on_change(group)
