"""What only a leader runs: following the kinds of a cluster, and the control loops."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog

from config.blocks import Configuration
from kube.cache import Change, Store, View
from kube.client import Form
from kube.loop import ControlLoop
from kube.objects import resource_version
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS
from process.caches import fill
from process.clusters import Cluster, distinct
from process.parts import cancelled

CRDS_VIEW = View(CUSTOM_RESOURCE_DEFINITIONS, resource_version, form=Form.METADATA)
_KINDS_SECONDS = 10.0
_FINISHING_SHARE = 0.4

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class Controllers:
    """The control loops of a leader; a component in the sense of `process.runner`.

    When a cluster was restored from a backup, what the control loops remember may never have been. So
    they are made anew, as if this process had just begun to lead.

    Args:
        clusters: that the control loops work on.
        kinds_of: the cluster whose CustomResourceDefinitions are followed, so that control loops learn of kinds.
        compose: makes the control loops; called when this process leads.
    """

    name = "controllers"

    def __init__(
        self,
        clusters: Mapping[str, Cluster],
        *,
        config: Configuration,
        kinds_of: Cluster,
        compose: Callable[[], Awaitable[Sequence[ControlLoop]]],
    ) -> None:
        self._config = config
        self._clusters = distinct(clusters)
        self._compose = compose
        self._kinds = KindsFollower(kinds_of, on_change=self._kinds_changed)
        self._loops: Sequence[ControlLoop] = ()
        self._running: list[asyncio.Task[None]] = []
        self._restarting: asyncio.Task[None] | None = None

    async def start(self) -> None:
        for cluster in self._clusters.values():
            # Nothing is remembered here yet.
            cluster.caches.other_past.clear()
        # Before the controllers: what they learn of kinds from now on is corrected when it changes.
        await self._kinds.start(patience=_KINDS_SECONDS)
        self._loops = await self._compose()
        await fill(self._start_loops(), self._clusters, timeout=self._config.controllers.cache_sync_timeout)
        self._running = [asyncio.create_task(loop.controller.run(), name=loop.controller.name) for loop in self._loops]

    async def wait(self) -> None:
        while await self._other_past():
            self._restarting = asyncio.create_task(self._restart(), name="controllers anew")
            await self._restarting

    async def _other_past(self) -> bool:
        """Wait until the control loops are to be made anew; False if they have all ended by themselves."""
        news = {asyncio.create_task(cluster.caches.other_past.wait()) for cluster in self._clusters.values()}
        running = set(self._running)
        try:
            while running:
                ended, _ = await asyncio.wait(running | news, return_when=asyncio.FIRST_COMPLETED)
                for loop in ended & running:
                    if not loop.cancelled():
                        loop.result()
                if ended & news:
                    return True
                running -= ended
            return False
        finally:
            for each in news:
                each.cancel()

    async def _restart(self) -> None:
        log.info("Starting the controllers anew, since a cluster may have been restored from a backup")
        await self._end()
        for cluster in self._clusters.values():
            cluster.discovery.forget()
        await self.start()

    async def stop(self) -> None:
        """Takes no key any more, lets running passes finish for a while, so that they can say how it went."""
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
        await self._kinds.close()

    async def _start_loops(self) -> None:
        async with asyncio.TaskGroup() as starting:
            for loop in self._loops:
                starting.create_task(loop.start(), name=f"start {loop.controller.name}")

    def _kinds_changed(self, group: str) -> None:
        for loop in self._loops:
            loop.kinds_changed(group)


def group_of_crd(name: str) -> str:
    """`widgets.example.com` is a kind of the group `example.com`."""
    return name.partition(".")[2]


class KindsFollower:
    """Follows kinds that come, change and go in a cluster, by way of its CustomResourceDefinitions.

    Only their metadata is watched: that one changed is enough to know, since its name ends in the group. What was known
    of the group is forgotten, watches that wait for one of its kinds try again at once, and control loops learn of it.
    Where CustomResourceDefinitions may not be read, everything still works, only later: unknown kinds are asked for
    again now and then.

    Args: on_change: called with a group whose kinds changed.
    """

    def __init__(self, cluster: Cluster, *, on_change: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._on_change = on_change
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
        self._on_change(group)
