"""Shoots for which there was no Seed, so that they are looked at again when something has changed."""

from agent.scheduler.shoot import metrics
from kube.objects import Key
from kube.runtime.queue import CHANGE, WorkQueue


class Waiting:
    """Counts them in the metrics."""

    def __init__(self, queue: WorkQueue[Key]) -> None:
        self._queue = queue
        self._lacks_room: dict[Key, bool] = {}
        metrics.pending_shoots.labels(metrics.NO_ROOM).set_function(lambda: sum(self._lacks_room.values()))
        metrics.pending_shoots.labels(metrics.NO_FIT).set_function(
            lambda: len(self._lacks_room) - sum(self._lacks_room.values())
        )

    def add(self, shoot: Key, *, lacks_room: bool) -> None:
        self._lacks_room[shoot] = lacks_room

    def remove(self, shoot: Key) -> None:
        self._lacks_room.pop(shoot, None)

    def wake(self) -> None:
        """What a decision depends on has changed."""
        for shoot in self._lacks_room:
            self._queue.add(shoot, CHANGE)

    def wake_for_room(self) -> None:
        for shoot, lacks_room in self._lacks_room.items():
            if lacks_room:
                self._queue.add(shoot, CHANGE)

    async def close(self) -> None:
        self._lacks_room.clear()
