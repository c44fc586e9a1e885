"""Places that Shoots are about to take, so that no Seed gets more than it has room for.

A place is taken before the binding is written, together with the decision. It is given back if the binding is refused,
and is no assumption any more when the cache shows the Shoot on the Seed, so that it is counted there. If the outcome of
a write is unknown, the place stays taken for a while, in which the cache either shows it or never will.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable

from kube.objects import Object, uid

SECONDS = 60.0


class Assumed:
    """Assumed places by Seed; `on_free` is called when a place is given back unused."""

    def __init__(self, *, on_free: Callable[[], None], seconds: float = SECONDS) -> None:
        self._on_free, self._seconds = on_free, seconds
        self._places: defaultdict[str, dict[str, asyncio.TimerHandle]] = defaultdict(dict)
        """Timers by Seed, then by uid of the Shoot."""

    def count(self, seed: str) -> int:
        return len(self._places[seed]) if seed in self._places else 0

    def take(self, shoot: Object, seed: str) -> None:
        self._drop(uid(shoot), seed)
        timer = asyncio.get_running_loop().call_later(self._seconds, self.give_back, shoot, seed)
        self._places[seed][uid(shoot)] = timer

    def give_back(self, shoot: Object, seed: str) -> None:
        self._drop(uid(shoot), seed)
        self._on_free()

    def seen(self, shoot: Object, seeds: Iterable[str]) -> None:
        """Drop the places of a Shoot that the cache shows on these Seeds."""
        for seed in seeds:
            self._drop(uid(shoot), seed)

    async def close(self) -> None:
        for places in self._places.values():
            for timer in places.values():
                timer.cancel()
        self._places.clear()

    def _drop(self, shoot: str, seed: str) -> None:
        timer = self._places[seed].pop(shoot, None) if seed in self._places else None
        if timer is not None:
            timer.cancel()
            if not self._places[seed]:
                del self._places[seed]
