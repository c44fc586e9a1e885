"""Claims of ManagedResources on objects, as far as their plans are known, and whether these can be met.

An object may move from one ManagedResource to another. The previous one must not delete it then, and the new one takes
over its stamp. And if two want the same object permanently, the one that holds it (whose origin the live object
carries) keeps it and the other reports that, instead of both writing it forever.

A claim takes no rights, so it prevents no deletion for long. A claim on an object that was given up counts until the
claimant's next pass. Objects applied by that pass belong to the claimant; its claims on the others end, and all its
claims if it applied nothing.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum, auto

from kube.objects import Key


class Standing(Enum):
    """Standing of a claim."""

    UNTRIED = auto()
    """No pass has applied the object yet, or a transient error prevented that."""
    REFUSED = auto()
    APPLIED = auto()


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Result of a pass; by object keys, without the applied ones."""

    refused: Collection[str] | None
    """Refused objects; None for all."""
    untried: Collection[str] = ()


class Claims:
    """Claims on objects by their object keys."""

    def __init__(self) -> None:
        self._wanted: dict[Key, frozenset[str]] = {}
        self._claimants: dict[str, tuple[Key, ...]] = {}
        """Nearly always one, for which a set would be large."""
        self._outcomes: dict[Key, _Outcome] = {}

    def replace(self, claimant: Key, wanted: Iterable[str]) -> set[Key]:
        """Set the claims of a ManagedResource; return the other claimants of objects that it gives up.

        Their claims on these become untried, regardless of their last pass.
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
        """Return the claimants of an object."""
        return self._claimants.get(name, ())

    def others(self, claimant: Key, name: str) -> set[Key]:
        """Return the other claimants of an object."""
        return {each for each in self.claimants(name) if each != claimant}

    def claims(self, claimant: Key, name: str) -> bool:
        return name in self._wanted.get(claimant, ())

    def tried(self, claimant: Key, *, refused: Collection[str], untried: Collection[str]) -> None:
        """Note that a pass over a ManagedResource has applied all objects but these."""
        self._outcomes[claimant] = _Outcome(frozenset(refused), frozenset(untried))

    def refused(self, claimant: Key) -> None:
        """Note that a pass over a ManagedResource applied nothing."""
        self._outcomes[claimant] = _Outcome(None)

    def forget(self, claimant: Key) -> None:
        """Forget a deleted ManagedResource; its claims must have been given up before."""
        self._outcomes.pop(claimant, None)

    def was_tried(self, claimant: Key) -> bool:
        """Whether there was a pass since the last change of the claims, or of objects available to them."""
        return claimant in self._outcomes

    def standing(self, claimant: Key, name: str) -> Standing:
        """Return the standing of the claim of a ManagedResource on an object."""
        outcome = self._outcomes.get(claimant)
        if outcome is None or name in outcome.untried:
            return Standing.UNTRIED
        return Standing.REFUSED if outcome.refused is None or name in outcome.refused else Standing.APPLIED
