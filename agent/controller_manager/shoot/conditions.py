"""The controller `shoot-conditions`: copies the conditions of a Seed to the Shoot that it runs on.

Shoots         that come; a moment later, since their status is written in a second request when they are restored
ManagedSeeds   that come, go or name another Shoot
Seeds          that come, go or get other conditions
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from agent.controller_manager.common.api import BY_SHOOT, MANAGED_SEEDS_VIEW, SEEDS_VIEW, SHOOTS_VIEW
from agent.controller_manager.context import Context
from gardener.api.garden import SHOOTS
from gardener.conditions import SHOOT_CONDITIONS
from gardener.garden import users
from gardener.garden.domains import NAMESPACE
from kube.objects import Key, Object, mappings
from kube.paths import at
from kube.runtime.cache import Change, Store
from kube.runtime.controller import Done, ReconcileError, Result
from kube.runtime.loop import ControlLoop, Queue, enqueue_mapped
from kube.runtime.predicates import changed
from kube.runtime.priorities import CHANGE, RESYNC
from kube.runtime.status import StatusWriter

_SETTLING_SECONDS = 0.5
OWN = frozenset(SHOOT_CONDITIONS)


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.shoot_conditions, context.garden
    loop = ControlLoop("shoot-conditions", kind=SHOOTS, workers=settings.concurrent_syncs)
    shoots = loop.watch(garden.caches, SHOOTS_VIEW, _enqueue_new)
    managed_seeds = loop.watch(garden.caches, MANAGED_SEEDS_VIEW, enqueue_mapped(_shoots_of))
    seeds = loop.watch(
        garden.caches,
        SEEDS_VIEW,
        enqueue_mapped(partial(_shoot_of_seed, managed_seeds), when=changed("status.conditions")),
    )
    return loop.reconciled_by(
        Reconciler(status=StatusWriter(garden.client, shoots), shoots=shoots, managed_seeds=managed_seeds, seeds=seeds)
    )


def _enqueue_new(queue: Queue, change: Change[Object]) -> None:
    if change.initial and change.new is not None:
        queue.add(change.key, RESYNC)
    elif change.old is None:
        queue.add_after(change.key, _SETTLING_SECONDS, CHANGE)


def _shoots_of(change: Change[Object]) -> set[Key]:
    return {shoot for each in (change.old, change.new) if each is not None for shoot in users.shoots(each)}


def _shoot_of_seed(managed_seeds: Store[Object], change: Change[Object]) -> Iterator[Key]:
    managed_seed = managed_seeds.get(Key(NAMESPACE, change.key.name))
    if managed_seed is not None:
        yield from users.shoots(managed_seed)


def _conditions(obj: Object) -> list[Object]:
    return mappings(at(obj, "status", "conditions"))


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    """One pass over a Shoot: its conditions, and those of the Seed that runs on it."""

    status: StatusWriter
    shoots: Store[Object]
    managed_seeds: Store[Object]
    seeds: Store[Object]

    async def reconcile(self, key: Key) -> Result:
        shoot = self.shoots.get(key)
        if shoot is None:
            return Done()
        # The gardenlet writes the same list: a change by it overtakes this one.
        await self.status.write(shoot, {"conditions": merged(_conditions(shoot), self._conditions_of_seed(key))})
        return Done()

    def _conditions_of_seed(self, shoot: Key) -> list[Object]:
        """Conditions of the Seed that runs on the Shoot; empty if there is no such Seed."""
        managed_seeds = self.managed_seeds.keys_by_index(BY_SHOOT, shoot)
        if len(managed_seeds) > 1:
            raise ReconcileError(f"found more than one ManagedSeed objects for shoot {shoot}")
        seeds = (self.seeds.get(Key("", key.name)) for key in managed_seeds)
        return [condition for seed in seeds if seed is not None for condition in _conditions(seed)]


def merged(present: Sequence[Object], of_seed: Sequence[Object]) -> list[Object]:
    """Conditions of a Shoot with those of its Seed: each in its place, new ones at the end, no others."""
    added = {each.get("type"): each for each in of_seed}
    result = [
        added.pop(kind) if kind in added else condition
        for condition in present
        if (kind := condition.get("type")) in OWN or kind in added
    ]
    return [*result, *added.values()]
