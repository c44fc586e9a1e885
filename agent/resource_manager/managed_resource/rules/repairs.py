"""Number of recent repairs of a ManagedResource's objects, and the delay of the next repair.

If another client changes an object again and again, repairs slow down.
"""

from dataclasses import dataclass

from kube.objects import Key

_DEBOUNCE = 0.1
_FREE_REPAIRS = 5
_SHORT_SUCCESSION = 60.0
_MOST_DOUBLINGS = 15


@dataclass(slots=True)
class _Succession:
    count: int
    last: float

    @property
    def delay(self) -> float:
        return float(_DEBOUNCE * 2 ** min(max(self.count - _FREE_REPAIRS, 0), _MOST_DOUBLINGS))


class Repairs:
    """Repairs of all ManagedResources. Times are monotonic.

    Args: longest: maximum seconds that a repair waits.
    """

    def __init__(self, *, longest: float) -> None:
        self._longest = longest
        self._successions: dict[Key, _Succession] = {}

    def add(self, name: Key, now: float) -> None:
        found = self._recent(name, now)
        self._successions[name] = _Succession(found.count + 1 if found is not None else 1, now)

    def lately(self, name: Key, now: float) -> int:
        """Return the number of repairs in the current succession."""
        found = self._successions.get(name)
        if found is None:
            return 0
        awaited = 2 * min(found.delay, self._longest)
        return found.count if now - found.last < max(_SHORT_SUCCESSION, awaited) else 0

    def delay(self, name: Key, now: float) -> float:
        """Seconds until drift is corrected: more and more if another client persists."""
        found = self._recent(name, now)
        return min(found.delay if found is not None else _DEBOUNCE, self._longest)

    def forget(self, name: Key) -> None:
        self._successions.pop(name, None)

    def _recent(self, name: Key, now: float) -> _Succession | None:
        found = self._successions.get(name)
        if found is None or now - found.last >= max(_SHORT_SUCCESSION, 2 * found.delay):
            return None
        return found
