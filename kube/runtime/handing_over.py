"""Passes that wait for others' programs: they give their workers to keys without one.

An object may wait for ever, as its owner decides. So passes that wait, however many, hold no worker that another
namespace needs: they are ended, which has the same effect as the end of the process, and run again later.

    with waits():           # in the pass, or in a task of it
        await change

A request without an answer is waited for, too (`kind_shares`). But a pass that ends there may have written something
that it reports only later: an Event, the end of an operation. So only passes of controllers that declare it are ended
there.

`to_give_way`, a pure function, selects the passes.
"""

import asyncio
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

from kube.runtime.priorities import CHANGE, Priority

LOOK_SECONDS = 0.3
"""Time that a change waits for a worker before passes give way to it."""
HELD_SECONDS = 0.25
"""Time that a pass keeps its worker: less than between two looks, so that each finds the passes of the last."""
BULK_SECONDS = 60.0
"""Time that a pass keeps its worker while only bulk keys of others have none."""

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class Pass:
    """Args:
    limit: its time limit, which expires when it gives way.
    is_repeatable: whether nothing is lost if it ends while a request has no answer.
    """

    limit: asyncio.Timeout
    is_repeatable: bool
    gives_way: bool = field(default=False, init=False)
    _waits: int = field(default=0, init=False)

    def give_way(self) -> bool:
        """End the pass if something in it waits; return whether it ends."""
        if self._waits and not self.limit.expired():
            self.gives_way = True
            self.limit.reschedule(asyncio.get_running_loop().time())
        return self.gives_way

    @contextmanager
    def waiting(self) -> Iterator[None]:
        self._waits += 1
        try:
            yield
        finally:
            self._waits -= 1


_present: ContextVar[Pass | None] = ContextVar("pass", default=None)


def begin(limit: asyncio.Timeout, *, is_repeatable: bool) -> Pass:
    """Begin the pass of the current worker."""
    made = Pass(limit, is_repeatable)
    _present.set(made)
    return made


def waits() -> AbstractContextManager[None]:
    """Mark a wait for others; outside of passes without effect."""
    present = _present.get()
    return nullcontext() if present is None else present.waiting()


def waits_for_answer() -> AbstractContextManager[None]:
    """Mark a wait for the answer to a request; without effect in passes that may not end there."""
    present = _present.get()
    return waits() if present is not None and present.is_repeatable else nullcontext()


@dataclass(frozen=True, slots=True)
class Holder:
    """Key in work. Args: flow: its flow. since: monotonic seconds."""

    flow: Hashable
    priority: Priority
    since: float


def to_give_way(holders: Mapping[K, Holder], *, now: float, to_change: bool, bulk_only: bool = False) -> list[K]:
    """Keys that may give way, in this order: bulk, then flows that hold most workers, then the oldest.

    Args:
        holders: all keys in work.
        now: monotonic seconds.
        to_change: whether they give way to a change.
        bulk_only: whether only keys that came in bulk give way.
    """
    held = Counter(each.flow for each in holders.values())
    least = HELD_SECONDS if to_change else BULK_SECONDS
    found = [
        key
        for key, each in holders.items()
        if now - each.since >= least and not (bulk_only and each.priority == CHANGE)
    ]
    return sorted(found, key=lambda key: _rank(holders[key], held))


def _rank(holder: Holder, held: Counter[Hashable]) -> tuple[bool, int, float]:
    return holder.priority == CHANGE, -held[holder.flow], holder.since
