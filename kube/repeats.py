"""Reports per object, so that no Event repeats a report of the previous pass.

    for message in repeats.news(name, messages):
        recorder.event(obj, "Warning", "NotReady", message)

A pass that reports one thing after another calls `begin`, and `is_new` for each of them. All state is in memory: a new
leader reports once more.
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
        """Begin a pass over the object. Items that it does not report are new again in the next one."""
        self._before[name] = self._reported.pop(name, set())

    def suspend(self, name: Key) -> None:
        """End the pass early: reports of the previous pass do not count as new in the next one, either."""
        self._reported.setdefault(name, set()).update(self._before.get(name, ()))

    def is_new(self, name: Key, item: T) -> bool:
        """Whether neither this pass nor the previous one has reported it. It counts as reported from now on."""
        reported = self._reported.setdefault(name, set())
        known = item in reported or item in self._before.get(name, ())
        reported.add(item)
        return not known

    def news(self, name: Key, items: Iterable[T]) -> list[T]:
        """Filter all reports of a pass: the new ones, in their order."""
        self.begin(name)
        found = [item for item in items if self.is_new(name, item)]
        self._before.pop(name)
        return found

    def reported(self, name: Key) -> Collection[T]:
        return self._reported.get(name, ())

    def all(self) -> Iterator[Collection[T]]:
        """Last reports, by object."""
        return iter(self._reported.values())

    def forget(self, name: Key) -> None:
        """Forget an object that is gone, or as desired."""
        self._before.pop(name, None)
        self._reported.pop(name, None)


class Reminders:
    """Texts that recur are logged at once, and then once per period.

    Args:
        period: seconds.
        now: monotonic seconds.
    """

    def __init__(self, period: float, *, now: Callable[[], float] = time.monotonic) -> None:
        self._period, self._now = period, now
        self._logged: dict[str, float] = {}

    def is_due(self, text: str) -> bool:
        """Whether to log the text now; if so, it counts as logged."""
        now = self._now()
        self._logged = {each: at for each, at in self._logged.items() if now - at < self._period}
        is_due = text not in self._logged
        self._logged.setdefault(text, now)
        return is_due
