"""Which ManagedResource wants which object, as far as their plans are known, and whether it can have it.

An object may move from one ManagedResource to another. The one that drops it must not delete it then, and the one that
gets it takes over its stamp. And if two want the same object for good, the one that holds it (whose origin the live
object carries) keeps it and the other says so, instead of both writing it for ever.

To want an object takes no rights, so it prevents no deletion for long. A claim on an object that was given up
counts until the claimant's next pass. What that pass applied is the claimant's; what it could not apply, and all if it
came to apply nothing, is claimed no more.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum, auto

from kube.objects import Key


class Standing(Enum):
    """Of a claim."""

    UNTRIED = auto()
    """No pass has shown yet whether the object can be had, or an error that may pass kept it from that."""
    REFUSED = auto()
    APPLIED = auto()


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Of a pass; by object keys, without what was applied."""

    refused: Collection[str] | None
    """None: all."""
    untried: Collection[str] = ()


class Claims:
    """Objects are named by their object keys."""

    def __init__(self) -> None:
        self._wanted: dict[Key, frozenset[str]] = {}
        self._claimants: dict[str, tuple[Key, ...]] = {}
        """Nearly always one, for which a set would be large."""
        self._outcomes: dict[Key, _Outcome] = {}

    def replace(self, claimant: Key, wanted: Iterable[str]) -> set[Key]:
        """Set what a ManagedResource wants; returns who else wants what it does not want any more.

        Their claims on that are untried then, whatever came of their last pass.
        """
        after, before = frozenset(wanted), self._wanted.get(claimant, frozenset())
        for name in after - before:
            self._claimants[name] = (*self._claimants.get(name, ()), claimant)
        waiting: set[Key] = set()
        for name in before - after:
            others = tuple(each for each in self._claimants[name] if each != claimant)
            waiting.update(others)
            if others:
                self._claimants[name] = others
            else:
                del self._claimants[name]
        if after:
            self._wanted[claimant] = after
        else:
            self._wanted.pop(claimant, None)
        for each in (waiting | {claimant}) if after != before else ():
            self._outcomes.pop(each, None)
        return waiting

    def claimants(self, name: str) -> tuple[Key, ...]:
        """Who wants an object."""
        return self._claimants.get(name, ())

    def others(self, claimant: Key, name: str) -> set[Key]:
        """Who else wants an object."""
        return {each for each in self.claimants(name) if each != claimant}

    def claims(self, claimant: Key, name: str) -> bool:
        return name in self._wanted.get(claimant, ())

    def tried(self, claimant: Key, *, refused: Collection[str], untried: Collection[str]) -> None:
        """A pass over a ManagedResource has applied all but these."""
        self._outcomes[claimant] = _Outcome(frozenset(refused), frozenset(untried))

    def refused(self, claimant: Key) -> None:
        """A pass over a ManagedResource came to apply nothing."""
        self._outcomes[claimant] = _Outcome(None)

    def forget(self, claimant: Key) -> None:
        """A ManagedResource is gone; what it has claimed must have been given up before."""
        self._outcomes.pop(claimant, None)

    def was_tried(self, claimant: Key) -> bool:
        """Whether there was a pass over a ManagedResource since what it wants, or may have, has changed."""
        return claimant in self._outcomes

    def standing(self, claimant: Key, name: str) -> Standing:
        """Of the claim on an object that a ManagedResource wants."""
        outcome = self._outcomes.get(claimant)
        if outcome is None or name in outcome.untried:
            return Standing.UNTRIED
        return Standing.REFUSED if outcome.refused is None or name in outcome.refused else Standing.APPLIED
