"""The parts of the process that start and stop in order; see `process.runner` for what a component is."""

import asyncio
from collections.abc import Callable, Sequence

from agent.bootstrap import cluster_identity
from agent.changes import RecentChanges
from agent.context import Context, ControlLoop
from agent.kinds import KindsFollower
from config.schema import ResourceManagerConfiguration
from kube.election import LeaderElector
from kube.events import EventRecorder
from process.caches import by_name, fill
from process.clusters import Cluster

Compose = Callable[[Context], Sequence[ControlLoop]]

_DRAIN_SECONDS = 1.0
_KINDS_SECONDS = 10.0
_FINISHING_SHARE = 0.4


class EventWriter:
    """Writes recorded events; what is queued at the end gets a moment."""

    name = "events"

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._writing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._writing = asyncio.create_task(self._recorder.run(), name="event recorder")

    async def wait(self) -> None:
        await _ended(self._writing)

    async def stop(self) -> None:
        if self._writing is not None:
            await self._recorder.drain(_DRAIN_SECONDS)
            await _cancel(self._writing)


class Election:
    """Is started once this process leads; losing the lead is its failure."""

    name = "leader election"

    def __init__(self, elector: LeaderElector) -> None:
        self._elector = elector
        self._leads = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._running = asyncio.create_task(self._elector.run(self._lead), name="leader election")
        leads = asyncio.create_task(self._leads.wait())
        try:
            await asyncio.wait((self._running, leads), return_when=asyncio.FIRST_COMPLETED)
        finally:
            leads.cancel()
        if self._running.done():
            self._running.result()

    async def wait(self) -> None:
        await _ended(self._running)

    async def stop(self) -> None:
        """Gives the lease up; whatever acts in its name has stopped before."""
        if self._running is not None:
            await _cancel(self._running)

    async def _lead(self) -> None:
        self._leads.set()
        await asyncio.Event().wait()


class Controllers:
    """What only a leader runs: the bootstrap step, following the target's kinds, and the control loops.

    Args:
        compose: makes the control loops; called when this process leads.
    """

    name = "controllers"

    def __init__(
        self,
        *,
        config: ResourceManagerConfiguration,
        source: Cluster,
        target: Cluster,
        recorder: EventRecorder,
        target_recorder: EventRecorder,
        compose: Compose,
        changes: RecentChanges | None = None,
    ) -> None:
        self._config = config
        self._source = source
        self._target = target
        self._recorder = recorder
        self._target_recorder = target_recorder
        self._compose = compose
        self._changes = changes or RecentChanges(limit=0)
        self._kinds = KindsFollower(target, tell=self._kinds_changed)
        self._loops: Sequence[ControlLoop] = ()
        self._running: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        settings = self._config.controllers
        context = Context(
            config=self._config,
            source=self._source,
            target=self._target,
            recorder=self._recorder,
            target_recorder=self._target_recorder,
            cluster_id=await cluster_identity(settings.cluster_id, self._source.client),
            changes=self._changes,
        )
        # Before the controllers: what they learn of kinds from now on is corrected when it changes.
        await self._kinds.start(patience=_KINDS_SECONDS)
        self._loops = self._compose(context)
        clusters = by_name(self._source, self._target)
        await fill(self._start_loops(), clusters, timeout=settings.cache_sync_timeout)
        self._running = [asyncio.create_task(loop.controller.run(), name=loop.controller.name) for loop in self._loops]

    async def wait(self) -> None:
        if self._running:
            ended, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_EXCEPTION)
            for running in ended:
                if not running.cancelled():
                    running.result()

    async def stop(self) -> None:
        """Takes no key any more, lets running passes finish for a while, so that they can say how it went."""
        for loop in self._loops:
            loop.controller.queue.shut_down()
        if self._running:
            await asyncio.wait(self._running, timeout=self._config.graceful_shutdown_timeout * _FINISHING_SHARE)
        await _cancel(*self._running)
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


async def _ended(task: asyncio.Task[None] | None) -> None:
    """Returns or raises as the task does, but cancelling this does not cancel the task."""
    if task is not None:
        await asyncio.wait((task,))
        if not task.cancelled():
            task.result()


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    """Ends tasks; their errors belong to whoever waits for them."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
