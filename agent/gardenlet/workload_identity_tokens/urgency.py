"""Which token comes first of those that are due: the one that ends first."""

import heapq

from kube.objects import Key


class Due:
    """Secrets whose tokens are due."""

    def __init__(self) -> None:
        self._expiries: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []
        """May hold a key again, with another time, or one that is not due any more."""

    def add(self, key: Key, expires: float) -> None:
        if self._expiries.get(key) != expires:
            self._expiries[key] = expires
            heapq.heappush(self._heap, (expires, key))

    def discard(self, key: Key) -> None:
        self._expiries.pop(key, None)

    def take(self) -> Key | None:
        """The most urgent one, which is taken out; None: there is none."""
        while self._heap:
            expires, key = heapq.heappop(self._heap)
            if self._expiries.get(key) == expires:
                del self._expiries[key]
                return key
        return None

    def __contains__(self, key: Key) -> bool:
        return key in self._expiries
