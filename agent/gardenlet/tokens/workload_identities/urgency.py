"""Order of due tokens: by expiry."""

import heapq

from kube.objects import Key


class Due:
    """Secrets with due tokens."""

    def __init__(self) -> None:
        self._expiries: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []
        """May contain outdated entries: a key with another time, or one that is not due any more."""

    def add(self, key: Key, expires: float) -> None:
        if self._expiries.get(key) != expires:
            self._expiries[key] = expires
            heapq.heappush(self._heap, (expires, key))

    def discard(self, key: Key) -> None:
        self._expiries.pop(key, None)

    def take(self) -> Key | None:
        """Remove and return the most urgent Secret; None if there is none."""
        while self._heap:
            expires, key = heapq.heappop(self._heap)
            if self._expiries.get(key) == expires:
                del self._expiries[key]
                return key
        return None

    def __contains__(self, key: Key) -> bool:
        return key in self._expiries
