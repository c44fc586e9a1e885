"""Work queue of a controller: the keys to reconcile, each once.

A key is in up to three places at once, and every rule is a move between them:

    delayed   its time has not come; one time per key, the earliest wins
    ready     waits for a worker; once per key, the higher priority wins
    running   a worker holds it; if it becomes due meanwhile, it is remembered and is ready again on `done`

Before a regular pass, `put_off` decides whether it is needed: most keys go straight back to delayed, and together with
others that are due in that second, so that a quiet process seldom wakes up.

So a key is never in work twice at a time, and however often it is added, only one further run follows. A change of a
key that waits with low priority lifts it, up to the priority that `highest` currently allows. All of this happens on
one event loop and without locks; one timer serves all delays.

No key waits long because other namespaces have many. Changes precede bulk: deletions, and regular passes (the initial
list, resyncs). Bulk never takes all workers, so one is always about to be free for a change; and each bulk key gets a
turn after a few changes. Keys of priority `LAST` come when nothing else is left, or after many of the others: no stream
of changes starves them. Within a priority flows take turns (`flow` returns the flow of a key, such as its
namespace), and within a flow it is first in, first out. The last free workers go only to flows that have none in work:
passes of one flow that never end stop no other flow. Where many flows hold all workers, passes that only wait give way
to a flow that has none in work.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from kube.runtime.handing_over import LOOK_SECONDS, Holder, to_give_way
from kube.runtime.metrics import QueueMetrics
from kube.runtime.priorities import CHANGE, PRIORITIES, RESYNC, Priority, any_priority
from kube.runtime.queue_delays import CallLater, Delayed, Delays, Timer, call_later_on_loop
from kube.runtime.queue_lanes import Lanes, Waiting

_FREE_WORKERS = 4
"""Denominator of the share of workers that is kept free for changes, and of that for flows without a key in work."""
_FIRST_BACKOFF = 0.005
_LONGEST_STEP, _STEP_SHARE = 1.0, 0.1
"""Delays after `put_off` end at multiples of a step: its maximum in seconds, and as a share of the delay."""

K = TypeVar("K", bound=Hashable)


class QueueShutDownError(Exception):
    """The queue hands out no more keys."""


@dataclass(slots=True)
class _Running:
    since: float
    priority: Priority
    again: Waiting | None = None


def _one_flow(_key: object) -> None:
    """Assign all keys to one flow."""


def never_put_off(_key: object) -> None:
    """Work on all keys that are due."""


class WorkQueue(Generic[K]):
    """Keys to work on. Use it on one event loop only.

    Args:
        name: label of its metrics, the controller's name.
        workers: number of workers that call `get`.
        flow: flow of a key; flows take turns, and one alone does not get all workers. None: no flow.
        highest: current upper limit of a key's priority, however and whenever it was added.
        put_off: called when a delayed RESYNC is due: seconds of another delay; None: it is worked on.
        give_way: called to end the pass of a key for other flows, see `handing_over`; whether it ends. None: never.
        max_backoff: seconds, upper bound of the delay after repeated failures.
        now: monotonic seconds.
        call_later: calls a function once after some seconds; the running event loop's by default.
    """

    def __init__(
        self,
        name: str,
        *,
        workers: int = 1,
        flow: Callable[[K], Hashable] = _one_flow,
        highest: Callable[[K], Priority] = any_priority,
        put_off: Callable[[K], float | None] = never_put_off,
        give_way: Callable[[K], bool] | None = None,
        max_backoff: float = 1000.0,
        now: Callable[[], float] = time.monotonic,
        call_later: CallLater = call_later_on_loop,
    ) -> None:
        self.name = name
        self._flow = flow
        self._put_off = put_off
        self._give_way = give_way
        self._max_backoff = max_backoff
        self._now = now
        self._call_later = call_later
        self._ready = Lanes(flow, highest)
        self._running: dict[K, _Running] = {}
        self._running_flows: Counter[Hashable] = Counter()
        self._bulk_running = 0
        self._workers = workers
        self._most_bulk = max(workers - max(workers // _FREE_WORKERS, 1), 1)
        self._kept_for_others = workers - self._most_bulk
        self._delays: Delays[K] = Delays(self._on_due, now=now, call_later=call_later)
        self._starving: Timer | None = None
        self._failures: dict[K, int] = {}
        self._available = asyncio.Semaphore(0)
        """Admits as many workers as keys are offered; more if keys were lowered; these workers wait on."""
        self._offered = 0
        """Number of keys that may be handed out."""
        self._shut_down = False
        self._metrics = QueueMetrics(
            name,
            depth_by_priority={priority: partial(self._depth, priority) for priority in PRIORITIES},
            unfinished=lambda: sum(self._running_seconds()),
            longest_running=lambda: max(self._running_seconds(), default=0.0),
        )

    def __len__(self) -> int:
        """Number of keys that are due: those that wait for a worker, and those in work that became due again."""
        return sum(map(self._depth, PRIORITIES))

    @property
    def waiting(self) -> int:
        """Number of keys that wait for a worker."""
        return len(self._ready)

    @property
    def is_idle(self) -> bool:
        """Whether no key is due, and none is in work."""
        return not self._running and not len(self)

    # --- adding

    def add(self, key: K, priority: Priority = CHANGE) -> None:
        """Have the key worked on as soon as possible."""
        if self._shut_down:
            return
        delayed = self._delays.take(key)
        if delayed is not None:
            priority = max(priority, delayed.priority)
        running = self._running.get(key)
        if running is not None:
            self._add_running(running, priority)
        else:
            self._add_idle(key, priority)

    def _add_running(self, running: _Running, priority: Priority) -> None:
        if running.again is None:
            running.again = Waiting(self._now(), priority)
            self._metrics.adds.inc()
        else:
            running.again.priority = max(running.again.priority, priority)

    def _add_idle(self, key: K, priority: Priority) -> None:
        waiting = self._ready.find(key)
        if waiting is None:
            self._ready.put(key, Waiting(self._now(), priority))
            self._metrics.adds.inc()
        else:
            self._ready.lift(key, waiting, priority)
        self._offer()

    def _offer(self) -> None:
        """Admit workers for all keys that may be handed out now."""
        held = self._held_flows()
        changes = self._ready[CHANGE].count(held)
        bulk = sum(self._ready[each].count(held) for each in PRIORITIES[1:])
        free = max(self._workers - len(self._running), 1)
        offered = min(changes + min(bulk, self._most_bulk - self._bulk_running), free)
        for _ in range(offered - self._offered):
            self._available.release()
        self._offered = offered
        self._look_for_starving()

    def _held_flows(self) -> Collection[Hashable]:
        """Flows with changes in work, while others get the remaining workers. Bulk leaves one to changes anyway."""
        if not self._kept_for_others or self._workers - len(self._running) > self._kept_for_others:
            return ()
        return self._running_flows.keys()

    def add_after(self, key: K, delay: float, priority: Priority | None = None) -> None:
        """Add the key after `delay` seconds, or sooner if it was added for an earlier time already.

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
            return  # it will be worked on before that, which makes a later pass needless
        self._delays.put(key, self._now() + delay, priority)

    def _is_due(self, key: K) -> bool:
        running = self._running.get(key)
        if running is not None:
            return running.again is not None
        return self._ready.find(key) is not None

    def add_rate_limited(self, key: K) -> None:
        """Add the key after a delay that doubles with every call, from 5 ms, until `forget`."""
        failures = self._failures.get(key, 0)
        if not self._shut_down:
            self._failures[key] = failures + 1
        # The exponent is bounded to avoid an overflow of the float.
        self.add_after(key, min(_FIRST_BACKOFF * 2.0 ** min(failures, 64), self._max_backoff))

    def forget(self, key: K) -> None:
        """Reset the delays of the key."""
        self._failures.pop(key, None)

    # --- working

    async def get(self) -> K:
        """Next key, which is then in work until `done`.

        Raises: QueueShutDownError: the queue is shut down; keys that waited are not handed out any more.
        """
        await self._available.acquire()
        while not (self._offered or self._shut_down):
            await self._available.acquire()
        if self._shut_down:
            self._available.release()  # wakes the next in line
            raise QueueShutDownError
        held = self._held_flows()
        key, waiting = self._ready.pop(held, with_bulk=self._bulk_running < self._most_bulk)
        now = self._now()
        self._running[key] = _Running(now, waiting.priority)
        if waiting.priority == CHANGE and (flow := self._flow(key)) is not None:
            self._running_flows[flow] += 1
        self._bulk_running += waiting.priority != CHANGE
        self._offered -= 1
        self._offer()
        self._metrics.queue_seconds.observe(now - waiting.since)
        return key

    def priority(self, key: K) -> Priority:
        """Priority with which a key in work was taken."""
        return self._running[key].priority

    def done(self, key: K) -> None:
        """Release the key by its worker; if it was added meanwhile, it is ready again."""
        running = self._running.pop(key)
        if running.priority == CHANGE and (flow := self._flow(key)) is not None:
            self._running_flows[flow] -= 1
            if not self._running_flows[flow]:
                del self._running_flows[flow]
        self._bulk_running -= running.priority != CHANGE
        self._metrics.work_seconds.observe(self._now() - running.since)
        if self._shut_down:
            return
        if running.again is not None:
            self._ready.put(key, running.again)
        self._offer()

    def shut_down(self) -> None:
        """Hand out no more keys and take none; `get` raises QueueShutDownError from now on."""
        self._shut_down = True
        if self._starving is not None:
            self._starving.cancel()
        self._ready.clear()
        self._delays.clear()
        self._failures.clear()
        self._available.release()

    def _on_due(self, key: K, delayed: Delayed) -> None:
        seconds = self._put_off(key) if delayed.priority == RESYNC and key not in self._running else None
        if not seconds:
            self.add(key, delayed.priority)
            return
        self._metrics.retries.inc()
        step = min(_LONGEST_STEP, seconds * _STEP_SHARE)
        self._delays.put(key, math.ceil((self._now() + seconds) / step) * step, delayed.priority)

    # --- workers for flows without one

    def _look_for_starving(self) -> None:
        if self._give_way is not None and self._starving is None and any(self._starving_flows()):
            self._starving = self._call_later(LOOK_SECONDS, partial(self._make_room, self._give_way))

    def _starving_flows(self) -> tuple[int, int]:
        """Number of flows without a key in work that have changes, and of others, that get no worker now."""
        is_full = len(self._running) >= self._workers
        if not is_full and self._bulk_running < self._most_bulk:
            return 0, 0
        held = {self._flow(each) for each in self._running}
        changes, *others = (self._ready[each].count_flows(held) for each in PRIORITIES)
        return changes if is_full else 0, max(others)

    def _make_room(self, give_way: Callable[[K], bool]) -> None:
        self._starving = None
        changes, others = self._starving_flows()
        keys = to_give_way(
            {key: Holder(self._flow(key), each.priority, each.since) for key, each in self._running.items()},
            now=self._now(),
            to_change=changes > 0,
            bulk_only=not changes and self._bulk_running >= self._most_bulk,
        )
        left = changes or others
        for key in keys:
            if left and give_way(key):
                left -= 1
        self._look_for_starving()

    # --- read by metrics, maybe from another thread: hence the copies

    def _depth(self, priority: Priority) -> int:
        again = (running.again for running in list(self._running.values()))
        return len(self._ready[priority]) + sum(w is not None and w.priority == priority for w in again)

    def _running_seconds(self) -> list[float]:
        now = self._now()
        return [now - running.since for running in list(self._running.values())]
