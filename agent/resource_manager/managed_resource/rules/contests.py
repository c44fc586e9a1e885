"""Objects that were taken over from a ManagedResource that is not known here, such as one of another source cluster.

It may be gone, as when a control plane has moved. But if the object gets its former origin back, an agent is at work
that still has it. Then it is left alone, instead of both agents writing it for ever; after a while it is tried again.
Whoever had it before always puts it right: else a single annotation would keep changes from being undone.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from kube.objects import Key

SECONDS = 3600.0
"""For which an object that was taken back is left alone."""


@dataclass(eq=False, slots=True)
class Contests:
    """Objects are named by their object keys; times are monotonic."""

    _taken: dict[Key, dict[str, tuple[str, float]]] = field(default_factory=dict)
    """Former origins, and when they were replaced."""

    def begin(self, own: Key, name: str, former: str, *, now: float) -> None:
        """A ManagedResource has taken an object over from this origin, or is known to have lost it again."""
        self._taken.setdefault(own, {})[name] = former, now

    def is_lost(self, own: Key, name: str, origin: str, *, now: float) -> bool:
        """Whether the object, which has this origin, was taken back."""
        former, since = self._taken.get(own, {}).get(name, ("", now))
        return former == origin and now - since < SECONDS

    def is_known(self, own: Key, name: str) -> bool:
        return name in self._taken.get(own, {})

    def keep(self, own: Key, wanted: Collection[str]) -> None:
        """Forget all others: a ManagedResource does not want them any more."""
        if own in self._taken:
            kept = {name: taken for name, taken in self._taken[own].items() if name in wanted}
            self._taken[own] = kept
            if not kept:
                del self._taken[own]
