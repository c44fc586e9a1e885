"""Which ManagedResource wants which object, as far as their plans are known.

An object may move from one ManagedResource to another. The one that drops it must not delete it then, and the one that
gets it takes over its stamp. And if two want the same object for good, the one that holds it (whose origin the live
object carries) keeps it and the other says so, instead of both writing it for ever.
"""

from collections.abc import Iterable

from kube.objects import Key


class Claims:
    """Objects are named by their object keys."""

    def __init__(self) -> None:
        self._wanted: dict[Key, frozenset[str]] = {}
        self._claimants: dict[str, tuple[Key, ...]] = {}
        """Nearly always one, for which a set would be large."""

    def replace(self, claimant: Key, wanted: Iterable[str]) -> frozenset[str]:
        """Set what a ManagedResource wants; returns what it wanted before and does not any more."""
        after, before = frozenset(wanted), self._wanted.get(claimant, frozenset())
        for name in after - before:
            self._claimants[name] = (*self._claimants.get(name, ()), claimant)
        for name in before - after:
            others = tuple(each for each in self._claimants[name] if each != claimant)
            if others:
                self._claimants[name] = others
            else:
                del self._claimants[name]
        if after:
            self._wanted[claimant] = after
        else:
            self._wanted.pop(claimant, None)
        return before - after

    def others(self, claimant: Key, name: str) -> set[Key]:
        """Who else wants an object."""
        return {each for each in self._claimants.get(name, ()) if each != claimant}

    def claims(self, claimant: Key, name: str) -> bool:
        return name in self._wanted.get(claimant, ())
