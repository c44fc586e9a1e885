"""Objects that were taken over from a ManagedResource that is unknown here, such as one of another source cluster.

It may be gone, as after the move of a control plane. But if the object gets its previous origin back, another agent is
running that still has it. Then it is left alone, instead of both agents writing it forever; after a while it is tried
again. A ManagedResource that held the object first always corrects it: else an annotation could prevent that.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from kube.objects import Key

SECONDS = 3600.0
"""Seconds for which an object that was taken back is left alone."""


@dataclass(eq=False, slots=True)
class Contests:
    """Contests of objects by their object keys; times are monotonic."""

    _taken: dict[Key, dict[str, tuple[str, float]]] = field(default_factory=dict)
    """Previous origins, and the times of their replacement."""

    def begin(self, own: Key, name: str, former: str, *, now: float) -> None:
        """Note that a ManagedResource has taken an object over from this origin, or has lost it again."""
        self._taken.setdefault(own, {})[name] = former, now

    def is_lost(self, own: Key, name: str, origin: str, *, now: float) -> bool:
        """Whether the object with this origin was taken back."""
        former, since = self._taken.get(own, {}).get(name, ("", now))
        return former == origin and now - since < SECONDS

    def is_known(self, own: Key, name: str) -> bool:
        return name in self._taken.get(own, {})

    def keep(self, own: Key, wanted: Collection[str]) -> None:
        """Forget all objects that a ManagedResource no longer wants."""
        if own in self._taken:
            kept = {name: taken for name, taken in self._taken[own].items() if name in wanted}
            self._taken[own] = kept
            if not kept:
                del self._taken[own]
