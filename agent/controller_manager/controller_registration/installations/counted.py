"""Which different values the objects of a group have.

The Shoots of a Seed may be thousands, and most of them need the same extensions. What matters is which are needed at
all, and that changes with few of them; so it is counted with each change, instead of being computed from all of them.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable
from functools import lru_cache
from typing import Generic, TypeVar

from kube.objects import Key

V = TypeVar("V", bound=Hashable)


@lru_cache(maxsize=4096)
def _interned(value: V) -> V:
    """The first one of those that are equal."""
    return value


class Counted(Generic[V]):
    def __init__(self) -> None:
        self._groups: dict[str, Counter[V]] = {}
        self._known: dict[Key, tuple[frozenset[str], V]] = {}

    def of(self, group: str) -> Collection[V]:
        """The different values in a group."""
        return self._groups.get(group, Counter()).keys()

    def groups_with(self, value: V) -> set[str]:
        return {group for group, counter in self._groups.items() if value in counter}

    def put(self, key: Key, groups: Iterable[str], value: V) -> set[str]:
        """An object is in these groups and in no others. Returns the groups that have other values than before."""
        wanted = frozenset(groups), _interned(value)
        if self._known.get(key) == wanted:
            return set()
        gone = self._forget(key)
        come: set[tuple[str, V]] = set()
        if wanted[0]:
            self._known[key] = wanted
        for group in wanted[0]:
            counter = self._groups.setdefault(group, Counter())
            counter[value] += 1
            if counter[value] == 1:
                come.add((group, value))
        return {group for group, _ in gone ^ come}

    def remove(self, key: Key) -> set[str]:
        """The object is gone."""
        return {group for group, _ in self._forget(key)}

    def _forget(self, key: Key) -> set[tuple[str, V]]:
        """What ends with it."""
        gone: set[tuple[str, V]] = set()
        if key not in self._known:
            return gone
        groups, value = self._known.pop(key)
        for group in groups:
            counter = self._groups[group]
            counter[value] -= 1
            if not counter[value]:
                del counter[value]
                gone.add((group, value))
            if not counter:
                del self._groups[group]
        return gone
