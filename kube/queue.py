"""The work queue of a controller: what has to be looked at, each key once.

A key is in up to three places at once, and every rule is a move between them:

    delayed   its time has not come; one time a key, the earliest wins
    ready     waits for a worker; once a key, the higher priority wins, first in first out within a priority
    running   a worker holds it; if it becomes due meanwhile, it is remembered and is ready again on `done`

So a key is never worked on twice at a time, and however often it is added, no more than one further run
follows. Changes go before what is merely looked at again (the initial list, resyncs); a change of a key that
waits with low priority lifts it. All of this happens on one event loop and without locks; one timer serves
all delays.
"""

import asyncio
import heapq
import itertools
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, Generic, Literal, Protocol, TypeVar

from kube.metrics import QueueMetrics

Priority = Literal[0, -100]
CHANGE: Final = 0
"""Something happened to the object."""
RESYNC: Final = -100
"""The object is looked at because it is time: the initial list, resyncs."""

_FIRST_BACKOFF = 0.005
_TIMER_RESOLUTION = 0.001
_FEWEST_HEAP_ENTRIES_TO_COMPACT = 64

K = TypeVar("K", bound=Hashable)


class QueueShutDownError(Exception):
    """The queue hands out no more keys."""


class Timer(Protocol):
    def cancel(self) -> object: ...


CallLater = Callable[[float, Callable[[], object]], Timer]


@dataclass(slots=True)
class _Waiting:
    since: float
    priority: Priority


@dataclass(slots=True)
class _Delayed:
    until: float
    priority: Priority


@dataclass(slots=True)
class _Running:
    since: float
    priority: Priority
    again: _Waiting | None = None


class WorkQueue(Generic[K]):
    """Keys to work on. To be used on one event loop.

    Args:
        name: the label of its metrics, the controller's name.
        max_backoff: seconds, upper bound of the delay after repeated failures.
        now: monotonic seconds.
        call_later: calls a function once after so many seconds; the running event loop's by default.
    """

    def __init__(
        self,
        name: str,
        *,
        max_backoff: float = 1000.0,
        now: Callable[[], float] = time.monotonic,
        call_later: CallLater | None = None,
    ) -> None:
        self.name = name
        self._max_backoff = max_backoff
        self._now = now
        self._call_later = call_later or _call_later
        # One ordered dict a priority, highest first: membership, order and removal in constant time.
        self._ready: dict[Priority, OrderedDict[K, _Waiting]] = {CHANGE: OrderedDict(), RESYNC: OrderedDict()}
        self._running: dict[K, _Running] = {}
        self._delayed: dict[K, _Delayed] = {}
        # Entries of the heap that `_delayed` no longer backs are skipped; the count keeps keys from being compared.
        self._heap: list[tuple[float, int, K]] = []
        self._count = itertools.count()
        self._timer: Timer | None = None
        self._timer_due = 0.0
        self._failures: dict[K, int] = {}
        # Its value is the number of ready keys, so that a worker that gets through finds one.
        self._available = asyncio.Semaphore(0)
        self._shut_down = False
        self._metrics = QueueMetrics.of(
            name,
            depth_by_priority={CHANGE: lambda: self._depth(CHANGE), RESYNC: lambda: self._depth(RESYNC)},
            unfinished=lambda: sum(self._running_seconds()),
            longest_running=lambda: max(self._running_seconds(), default=0.0),
        )

    def __len__(self) -> int:
        """How many keys are due: those that wait for a worker, and those in work that became due again."""
        return self._depth(CHANGE) + self._depth(RESYNC)

    # --- adding

    def add(self, key: K, priority: Priority = CHANGE) -> None:
        """Have the key worked on as soon as possible."""
        if self._shut_down:
            return
        delayed = self._delayed.pop(key, None)
        if delayed is not None:
            priority = max(priority, delayed.priority)
        running = self._running.get(key)
        if running is not None:
            self._add_running(running, priority)
        else:
            self._add_idle(key, priority)

    def _add_running(self, running: _Running, priority: Priority) -> None:
        if running.again is None:
            running.again = _Waiting(self._now(), priority)
            self._metrics.adds.inc()
        else:
            running.again.priority = max(running.again.priority, priority)

    def _add_idle(self, key: K, priority: Priority) -> None:
        if key in self._ready[CHANGE]:
            return
        waiting = self._ready[RESYNC].get(key)
        if waiting is None:
            self._push(key, _Waiting(self._now(), priority))
            self._metrics.adds.inc()
        elif priority > waiting.priority:
            del self._ready[RESYNC][key]
            waiting.priority = priority
            self._ready[priority][key] = waiting

    def _push(self, key: K, waiting: _Waiting) -> None:
        self._ready[waiting.priority][key] = waiting
        self._available.release()

    def add_after(self, key: K, delay: float, priority: Priority | None = None) -> None:
        """Add the key after so many seconds, or sooner if it was added for an earlier time already.

        Without a priority the key keeps the one with which it runs.
        """
        if self._shut_down:
            return
        if priority is None:
            running = self._running.get(key)
            priority = running.priority if running is not None else CHANGE
        self._metrics.retries.inc()
        if delay <= 0:
            self.add(key, priority)
            return
        if self._is_due(key):
            return  # it will be worked on before that, which makes a later look needless
        until = self._now() + delay
        delayed = self._delayed.get(key)
        if delayed is not None:
            delayed.priority = max(delayed.priority, priority)
            if delayed.until <= until:
                return
            delayed.until = until
        else:
            self._delayed[key] = _Delayed(until, priority)
        heapq.heappush(self._heap, (until, next(self._count), key))
        self._compact()
        self._set_timer()

    def _is_due(self, key: K) -> bool:
        running = self._running.get(key)
        if running is not None:
            return running.again is not None
        return key in self._ready[CHANGE] or key in self._ready[RESYNC]

    def add_rate_limited(self, key: K, priority: Priority | None = None) -> None:
        """Add the key after a delay that doubles with every call, from 5 ms, until `forget`."""
        failures = self._failures.get(key, 0)
        if not self._shut_down:
            self._failures[key] = failures + 1
        # The exponent is bounded, as a float is not for long.
        self.add_after(key, min(_FIRST_BACKOFF * 2.0 ** min(failures, 64), self._max_backoff), priority)

    def forget(self, key: K) -> None:
        """Start the delays of the key from the beginning."""
        self._failures.pop(key, None)

    # --- working

    async def get(self) -> K:
        """The next key, which is then in work until `done`.

        Raises:
            QueueShutDownError: the queue is shut down; keys that waited are not handed out any more.
        """
        await self._available.acquire()
        if self._shut_down:
            self._available.release()  # wakes the next in line
            raise QueueShutDownError
        waiting_keys = self._ready[CHANGE] or self._ready[RESYNC]
        key, waiting = waiting_keys.popitem(last=False)
        now = self._now()
        self._running[key] = _Running(now, waiting.priority)
        self._metrics.queue_seconds.observe(now - waiting.since)
        return key

    def done(self, key: K) -> None:
        """The worker is through with the key; if it was added meanwhile, it is ready again."""
        running = self._running.pop(key)
        self._metrics.work_seconds.observe(self._now() - running.since)
        if running.again is not None and not self._shut_down:
            self._push(key, running.again)

    def shut_down(self) -> None:
        """Hand out no more keys and take none; whoever waits in `get` is told so."""
        self._shut_down = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for ready in self._ready.values():
            ready.clear()
        self._delayed.clear()
        self._heap.clear()
        self._failures.clear()
        self._available.release()

    # --- delays

    def _set_timer(self) -> None:
        """Have the timer go off when the earliest delayed key is due."""
        while self._heap and not self._is_backed(self._heap[0]):
            heapq.heappop(self._heap)
        if not self._heap:
            return
        due = self._heap[0][0]
        if self._timer is not None:
            if self._timer_due <= due:
                return
            self._timer.cancel()
        self._timer_due = due
        # Loops round delays, and may round down to 0.
        self._timer = self._call_later(max(due - self._now(), _TIMER_RESOLUTION), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now = self._now()
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            if self._is_backed(entry):
                key = entry[2]
                self.add(key, self._delayed[key].priority)
        self._set_timer()

    def _is_backed(self, entry: tuple[float, int, K]) -> bool:
        until, _, key = entry
        delayed = self._delayed.get(key)
        return delayed is not None and delayed.until == until

    def _compact(self) -> None:
        """Keep the heap from growing with entries that were superseded."""
        if len(self._heap) > max(2 * len(self._delayed), _FEWEST_HEAP_ENTRIES_TO_COMPACT):
            self._heap = [(delayed.until, next(self._count), key) for key, delayed in self._delayed.items()]
            heapq.heapify(self._heap)

    # --- what metrics read, maybe from another thread: so over copies

    def _depth(self, priority: Priority) -> int:
        again = (running.again for running in list(self._running.values()))
        return len(self._ready[priority]) + sum(w is not None and w.priority == priority for w in again)

    def _running_seconds(self) -> list[float]:
        now = self._now()
        return [now - running.since for running in list(self._running.values())]


def _call_later(delay: float, callback: Callable[[], object]) -> Timer:
    return asyncio.get_running_loop().call_later(delay, callback)
