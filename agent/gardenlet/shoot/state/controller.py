"""The controller `shoot-state`: saves the state of each Shoot in the garden, every few hours.

Shoots    new, placed or restored ones of the own Seed; then a timer

Shoots on a Seed that is itself a Shoot are not saved: it is not lost alone. States hold keys, and are never logged.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from agent.gardenlet.common.shoot_states.rules.parts import TooLarge, divided
from agent.gardenlet.common.shoot_states.saving import demand_any_key, living, save, saved
from agent.gardenlet.common.views import shoots_view
from agent.gardenlet.context import Context
from agent.gardenlet.shoot.state import rules
from gardener.api.garden import MANAGED_SEEDS, SHOOTS
from gardener.garden.shoots import is_on, responsible_seed
from gardener.network_policies import GARDEN_NAMESPACE
from kube.objects import Key, Object, text
from kube.paths import at
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result
from kube.runtime.loop import ControlLoop, enqueue_own
from kube.runtime.predicates import any_of, changed, listed
from process.clusters import Cluster

NAME = "shoot-state"
_NOT_YET_SECONDS = 600.0
_EARLIER, _SPREAD = 900.0, 1800.0
"""Seconds by which a save precedes the end of the period, and over which it is spread from there."""


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.shoot_state, context.garden
    loop = ControlLoop(NAME, kind=SHOOTS, workers=settings.concurrent_syncs)
    is_other = any_of(listed, changed("metadata.uid", "spec.seedName"))
    given = enqueue_own(is_on(context.seed_name), when=is_other)
    shoots = loop.watch(garden.caches, shoots_view(context.seed_name), given)
    return loop.reconciled_by(
        Reconciler(
            seed_name=context.seed_name,
            seed=context.seed,
            garden=garden.client,
            shoots=shoots,
            period=settings.sync_period,
            clock=context.clock,
        )
    )


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    """Args: period: seconds between two saves of a Shoot."""

    seed_name: str
    seed: Cluster
    garden: Client
    shoots: Store[Object]
    period: float
    clock: Callable[[], datetime]

    async def reconcile(self, name: Key) -> Result:
        shoot = self.shoots.get(name)
        if shoot is None or responsible_seed(shoot) != self.seed_name:
            return Done()
        if not rules.is_savable(shoot):
            return RequeueAfter(_NOT_YET_SECONDS)
        if await self.garden.find(MANAGED_SEEDS, Key(GARDEN_NAMESPACE, self.seed_name)) is not None:
            return RequeueAfter(self.period)
        before = await saved(self.garden, name)
        if wait := rules.due_in(before.time, self.period, now=self.clock()):
            return RequeueAfter(wait)
        found = await living(self.seed, shoot, before)
        demand_any_key(name, before, found, namespace=text(at(shoot, "status", "technicalID")))
        if not await self._is_still_here(name):
            return RequeueAfter(_NOT_YET_SECONDS)
        try:
            wanted = divided(found, before.specs)
        except TooLarge as error:
            raise ReconcileError(str(error)) from error
        await save(self.garden, name, wanted, before, now=self.clock())
        return RequeueAfter(max(self.period - _EARLIER + random.uniform(0, _SPREAD), 1.0))  # noqa: S311 - only spreads

    async def _is_still_here(self, name: Key) -> bool:
        """Whether the live Shoot is still on this Seed: a stale cache would overwrite the state of a moved Shoot."""
        shoot = await self.garden.find(SHOOTS, name)
        return shoot is not None and responsible_seed(shoot) == self.seed_name and rules.is_savable(shoot)
