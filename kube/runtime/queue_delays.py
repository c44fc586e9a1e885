"""Delayed keys of a work queue: one time per key, the earliest wins, and one timer for all."""

import asyncio
import heapq
import itertools
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from kube.runtime.priorities import Priority

_TIMER_RESOLUTION = 0.001
_FEWEST_HEAP_ENTRIES_TO_COMPACT = 64

K = TypeVar("K", bound=Hashable)


class Timer(Protocol):
    def cancel(self) -> object: ...


CallLater = Callable[[float, Callable[[], object]], Timer]


@dataclass(slots=True)
class Delayed:
    until: float
    priority: Priority


class Delays(Generic[K]):
    """Args:
    on_due: called with a key that is due; it takes the key or puts it again.
    now: monotonic seconds.
    call_later: calls a function once after some seconds.
    """

    def __init__(
        self, on_due: Callable[[K, Delayed], object], *, now: Callable[[], float], call_later: CallLater
    ) -> None:
        self._on_due = on_due
        self._now = now
        self._call_later = call_later
        self._delayed: dict[K, Delayed] = {}
        # Heap entries that `_delayed` no longer backs are skipped; the count keeps keys from being compared.
        self.heap: list[tuple[float, int, K]] = []
        self._count = itertools.count()
        self._timer: Timer | None = None
        self._timer_due = 0.0

    def take(self, key: K) -> Delayed | None:
        return self._delayed.pop(key, None)

    def put(self, key: K, until: float, priority: Priority) -> None:
        """Delay a key; if it is delayed already, with the earlier time and the higher priority."""
        delayed = self._delayed.get(key)
        if delayed is not None:
            priority = max(delayed.priority, priority)
            if delayed.until <= until:
                delayed.priority = priority
                return
        self._delayed[key] = Delayed(until, priority)
        heapq.heappush(self.heap, (until, next(self._count), key))
        self._compact()
        self._set_timer()

    def clear(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._delayed.clear()
        self.heap.clear()

    def _set_timer(self) -> None:
        """Set the timer to the earliest delayed key."""
        while self.heap and not self._is_backed(self.heap[0]):
            heapq.heappop(self.heap)
        if not self.heap:
            return
        due = self.heap[0][0]
        if self._timer is not None:
            if self._timer_due <= due:
                return
            self._timer.cancel()
        self._timer_due = due
        # Loops round delays, and may round down to 0.
        self._timer = self._call_later(max(due - self._now(), _TIMER_RESOLUTION), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now, due = self._now(), list[tuple[K, Delayed]]()
        while self.heap and self.heap[0][0] <= now:
            entry = heapq.heappop(self.heap)
            if self._is_backed(entry):
                due.append((entry[2], self._delayed.pop(entry[2])))
        for key, delayed in due:
            self._on_due(key, delayed)
        self._set_timer()

    def _is_backed(self, entry: tuple[float, int, K]) -> bool:
        until, _, key = entry
        delayed = self._delayed.get(key)
        return delayed is not None and delayed.until == until

    def _compact(self) -> None:
        """Keep the heap from growing with superseded entries."""
        if len(self.heap) > max(2 * len(self._delayed), _FEWEST_HEAP_ENTRIES_TO_COMPACT):
            self.heap = [(delayed.until, next(self._count), key) for key, delayed in self._delayed.items()]
            heapq.heapify(self.heap)


def call_later_on_loop(delay: float, callback: Callable[[], object]) -> Timer:
    return asyncio.get_running_loop().call_later(delay, callback)
