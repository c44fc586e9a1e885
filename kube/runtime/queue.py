"""The work queue of a controller: what has to be looked at, each key once.

A key is in up to three places at once, and every rule is a move between them:

    delayed   its time has not come; one time a key, the earliest wins
    ready     waits for a worker; once a key, the higher priority wins
    running   a worker holds it; if it becomes due meanwhile, it is remembered and is ready again on `done`

What is only looked at again because it is time is asked for first (`put_off`): most of it goes straight back to the
delayed, and together with what else is due in that second, so that a quiet process seldom wakes up.

So a key is never worked on twice at a time, and however often it is added, no more than one further run
follows. A change of a key that waits with low priority lifts it, up to the priority that `highest` allows it as things
are now. All of this happens on one event loop and without locks; one timer serves all delays.

No key waits long because other namespaces have many. Changes go before what comes in bulk: deletions, and what is
merely looked at again (the initial list, resyncs). These never take all workers, so one is always about to be free
for a change; and each of them gets a turn after a few of the others. What is put off on purpose comes when nothing
else is left. Within a priority flows take turns (a flow is what `flow` says, such as the namespace of a key), and
within a flow it is first in, first out.
"""

import asyncio
import heapq
import itertools
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, Literal, Protocol, TypeVar

from kube.runtime.metrics import QueueMetrics

Priority = Literal[0, -50, -100, -200]
CHANGE: Final = 0
"""Something happened to the object."""
REMOVAL: Final = -50
"""The object is being deleted, perhaps with thousands of others."""
RESYNC: Final = -100
"""The object is looked at because it is time: the initial list, resyncs."""
LAST: Final = -200
"""The object is looked at when nothing else is left."""

_PRIORITIES: tuple[Priority, ...] = (CHANGE, REMOVAL, RESYNC, LAST)
_TURNS = 4
"""How often keys to remove, or to look at again, are passed over in favour of a higher priority while they wait."""
_FREE_WORKERS = 4
"""One in so many workers is kept free for changes."""
_FIRST_BACKOFF = 0.005
_TIMER_RESOLUTION = 0.001
_LONGEST_STEP, _STEP_SHARE = 1.0, 0.1
"""Times to which keys are put off are multiples of a step: seconds, and the part of the delay that it is at most."""
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


class _Lane(Generic[K]):
    """The ready keys of a priority: of each flow one, in turn."""

    def __init__(self, flow: Callable[[K], Hashable]) -> None:
        self._flow = flow
        # Ordered, since plain ones get slow when much is taken from their front.
        self._flows: OrderedDict[Hashable, OrderedDict[K, _Waiting]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def get(self, key: K) -> _Waiting | None:
        keys = self._flows.get(self._flow(key))
        return None if keys is None else keys.get(key)

    def put(self, key: K, waiting: _Waiting) -> None:
        """It must not be in it."""
        self._flows.setdefault(self._flow(key), OrderedDict())[key] = waiting
        self._count += 1

    def remove(self, key: K) -> None:
        """It must be in it."""
        flow = self._flow(key)
        del self._flows[flow][key]
        self._count -= 1
        if not self._flows[flow]:
            del self._flows[flow]

    def pop(self) -> tuple[K, _Waiting]:
        """The next one; there must be one."""
        flow, keys = next(iter(self._flows.items()))
        key, waiting = keys.popitem(last=False)
        self._count -= 1
        if keys:
            self._flows.move_to_end(flow)
        else:
            del self._flows[flow]
        return key, waiting

    def clear(self) -> None:
        self._flows.clear()
        self._count = 0


def _one_flow(_key: object) -> None:
    """All keys are of one flow."""


def any_priority(_key: object) -> Priority:
    """A key may have any."""
    return CHANGE


def never_put_off(_key: object) -> None:
    """All that is due is worked on."""


class WorkQueue(Generic[K]):
    """Keys to work on. To be used on one event loop.

    Args:
        name: the label of its metrics, the controller's name.
        workers: how many call `get`.
        flow: whose work a key is; all get their turn.
        highest: the priority that a key has at most as things are now, however it was added, and when.
        put_off: asked when a delayed RESYNC is due: for how many seconds it is delayed again; None: it is worked on.
        max_backoff: seconds, upper bound of the delay after repeated failures.
        now: monotonic seconds.
        call_later: calls a function once after so many seconds; the running event loop's by default.
    """

    def __init__(
        self,
        name: str,
        *,
        workers: int = 1,
        flow: Callable[[K], Hashable] = _one_flow,
        highest: Callable[[K], Priority] = any_priority,
        put_off: Callable[[K], float | None] = never_put_off,
        max_backoff: float = 1000.0,
        now: Callable[[], float] = time.monotonic,
        call_later: CallLater | None = None,
    ) -> None:
        self.name = name
        self._highest = highest
        self._put_off = put_off
        self._max_backoff = max_backoff
        self._now = now
        self._call_later = call_later or _call_later
        self._ready: dict[Priority, _Lane[K]] = {priority: _Lane(flow) for priority in _PRIORITIES}
        self._passed_over: dict[Priority, int] = dict.fromkeys(_PRIORITIES, 0)
        self._running: dict[K, _Running] = {}
        self._bulk_running = 0
        self._most_bulk = max(workers - max(workers // _FREE_WORKERS, 1), 1)
        self._delayed: dict[K, _Delayed] = {}
        # Entries of the heap that `_delayed` no longer backs are skipped; the count keeps keys from being compared.
        self._heap: list[tuple[float, int, K]] = []
        self._count = itertools.count()
        self._timer: Timer | None = None
        self._timer_due = 0.0
        self._failures: dict[K, int] = {}
        self._available = asyncio.Semaphore(0)
        """Lets through as many workers as keys are offered; more if keys were lowered, who then wait on."""
        self._offered = 0
        """How many keys may be handed out."""
        self._shut_down = False
        self._metrics = QueueMetrics(
            name,
            depth_by_priority={priority: partial(self._depth, priority) for priority in _PRIORITIES},
            unfinished=lambda: sum(self._running_seconds()),
            longest_running=lambda: max(self._running_seconds(), default=0.0),
        )

    def __len__(self) -> int:
        """How many keys are due: those that wait for a worker, and those in work that became due again."""
        return sum(map(self._depth, _PRIORITIES))

    @property
    def waiting(self) -> int:
        """How many keys wait for a worker."""
        return sum(map(len, self._ready.values()))

    @property
    def is_idle(self) -> bool:
        """Whether no key is due, and none is in work."""
        return not self._running and not len(self)

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
        waiting = self._waiting(key)
        if waiting is None:
            self._put(key, _Waiting(self._now(), priority))
            self._metrics.adds.inc()
        elif (changed := min(max(priority, waiting.priority), self._highest(key))) != waiting.priority:
            self._ready[waiting.priority].remove(key)
            waiting.priority = changed
            self._put(key, waiting)
        self._offer()

    def _waiting(self, key: K) -> _Waiting | None:
        return next((found for lane in self._ready.values() if (found := lane.get(key)) is not None), None)

    def _put(self, key: K, waiting: _Waiting) -> None:
        waiting.priority = min(waiting.priority, self._highest(key))
        self._ready[waiting.priority].put(key, waiting)

    def _offer(self) -> None:
        """Let workers through for all keys that may be handed out by now."""
        changes = len(self._ready[CHANGE])
        bulk = sum(map(len, self._ready.values())) - changes
        offered = changes + min(bulk, self._most_bulk - self._bulk_running)
        for _ in range(offered - self._offered):
            self._available.release()
        self._offered = offered

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
        return self._waiting(key) is not None

    def add_rate_limited(self, key: K) -> None:
        """Add the key after a delay that doubles with every call, from 5 ms, until `forget`."""
        failures = self._failures.get(key, 0)
        if not self._shut_down:
            self._failures[key] = failures + 1
        # The exponent is bounded, as a float is not for long.
        self.add_after(key, min(_FIRST_BACKOFF * 2.0 ** min(failures, 64), self._max_backoff))

    def forget(self, key: K) -> None:
        """Start the delays of the key anew."""
        self._failures.pop(key, None)

    # --- working

    async def get(self) -> K:
        """The next key, which is then in work until `done`.

        Raises: QueueShutDownError: the queue is shut down; keys that waited are not handed out any more.
        """
        await self._available.acquire()
        while not (self._offered or self._shut_down):
            await self._available.acquire()
        if self._shut_down:
            self._available.release()  # wakes the next in line
            raise QueueShutDownError
        key, waiting = self._ready[self._next_priority()].pop()
        now = self._now()
        self._running[key] = _Running(now, waiting.priority)
        self._bulk_running += waiting.priority != CHANGE
        self._offered -= 1
        self._metrics.queue_seconds.observe(now - waiting.since)
        return key

    def _next_priority(self) -> Priority:
        """The highest of which a key may be handed out, unless a lower one was passed over too often."""
        bulk_may_run = self._bulk_running < self._most_bulk
        waiting = [each for each in _PRIORITIES if self._ready[each] and (each == CHANGE or bulk_may_run)]
        in_turn = (each for each in waiting[1:] if each != LAST and self._passed_over[each] >= _TURNS)
        chosen = next(in_turn, waiting[0])
        for each in waiting:
            self._passed_over[each] = 0 if each == chosen else self._passed_over[each] + 1
        return chosen

    def priority(self, key: K) -> Priority:
        """With which a key in work was taken."""
        return self._running[key].priority

    def done(self, key: K) -> None:
        """The worker is through with the key; if it was added meanwhile, it is ready again."""
        running = self._running.pop(key)
        self._bulk_running -= running.priority != CHANGE
        self._metrics.work_seconds.observe(self._now() - running.since)
        if self._shut_down:
            return
        if running.again is not None:
            self._put(key, running.again)
        self._offer()

    def shut_down(self) -> None:
        """Hand out no more keys and take none; `get` raises QueueShutDownError from now on."""
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
                self._on_due(entry[2], now)
        self._set_timer()

    def _on_due(self, key: K, now: float) -> None:
        delayed = self._delayed[key]
        seconds = self._put_off(key) if delayed.priority == RESYNC and key not in self._running else None
        if not seconds:
            self.add(key, delayed.priority)
            return
        self._metrics.retries.inc()
        step = min(_LONGEST_STEP, seconds * _STEP_SHARE)
        delayed.until = math.ceil((now + seconds) / step) * step
        heapq.heappush(self._heap, (delayed.until, next(self._count), key))

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
