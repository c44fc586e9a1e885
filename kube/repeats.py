"""What was reported of an object, so that no Event repeats what the pass before has reported.

    for message in repeats.news(name, messages):
        recorder.event(obj, "Warning", "NotReady", message)

A pass that reports one thing after another calls `begin`, and `is_new` for each of them. It is all kept in memory: a
new leader reports once more.
"""

import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from kube.objects import Key

T = TypeVar("T", bound=Hashable)


class Repeats(Generic[T]):
    def __init__(self) -> None:
        self._before: dict[Key, set[T]] = {}
        self._reported: dict[Key, set[T]] = {}

    def begin(self, name: Key) -> None:
        """A pass over the object begins. What it does not report is new again in the next one."""
        self._before[name] = self._reported.pop(name, set())

    def suspend(self, name: Key) -> None:
        """The pass ended early: what the pass before has reported is no news in the next one, either."""
        self._reported.setdefault(name, set()).update(self._before.get(name, ()))

    def is_new(self, name: Key, item: T) -> bool:
        """Whether neither this pass nor the one before has reported it. It counts as reported from now on."""
        reported = self._reported.setdefault(name, set())
        known = item in reported or item in self._before.get(name, ())
        reported.add(item)
        return not known

    def news(self, name: Key, items: Iterable[T]) -> list[T]:
        """All that a pass reports: what of it is new, in its order."""
        self.begin(name)
        found = [item for item in items if self.is_new(name, item)]
        self._before.pop(name)
        return found

    def reported(self, name: Key) -> Collection[T]:
        return self._reported.get(name, ())

    def all(self) -> Iterator[Collection[T]]:
        """What was reported last, by object."""
        return iter(self._reported.values())

    def forget(self, name: Key) -> None:
        """The object is gone, or as it should be."""
        self._before.pop(name, None)
        self._reported.pop(name, None)


class Reminders:
    """Which texts are logged of those that come again and again: each at once, and then once in a period.

    Args:
        period: seconds.
        now: monotonic seconds.
    """

    def __init__(self, period: float, *, now: Callable[[], float] = time.monotonic) -> None:
        self._period, self._now = period, now
        self._logged: dict[str, float] = {}

    def is_due(self, text: str) -> bool:
        """It counts as logged from now on if so."""
        now = self._now()
        self._logged = {each: at for each, at in self._logged.items() if now - at < self._period}
        is_due = text not in self._logged
        self._logged.setdefault(text, now)
        return is_due
