"""Limit of concurrent restarts of ManagedSeeds' gardenlets: their first lists are a burden for the garden.

A rollout counts from the change of its Deployment until all pods are new, or until its time is over: a release that
does not start must not reach all seeds at once, and one broken cluster must not block all others.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from agent.gardenlet.common.metrics import gardenlet_managed_seeds_waiting_for_rollout
from kube.objects import Key


@dataclass(eq=False, slots=True)
class Rollouts:
    """Rollouts in progress.

    Args:
        most: maximum number.
        longest: time for which one counts.
    """

    most: int
    longest: timedelta
    clock: Callable[[], datetime]
    _begun: dict[Key, datetime] = field(default_factory=dict)
    _waiting: set[Key] = field(default_factory=set)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def __contains__(self, name: Key) -> bool:
        return name in self._begun

    def admit(self, name: Key) -> bool:
        """Whether a rollout may start, which starts it; otherwise it waits."""
        now = self.clock()
        for each in [each for each, since in self._begun.items() if now - since >= self.longest]:
            del self._begun[each]
        if name not in self._begun and len(self._begun) >= self.most:
            self._waiting.add(name)
            self._count()
            return False
        self._begun.setdefault(name, now)
        self._waiting.discard(name)
        self._count()
        return True

    def end(self, name: Key) -> None:
        """End a rollout that is complete, or whose gardenlet is gone."""
        self._begun.pop(name, None)
        self._waiting.discard(name)
        self._count()

    def _count(self) -> None:
        gardenlet_managed_seeds_waiting_for_rollout.set(len(self._waiting))
