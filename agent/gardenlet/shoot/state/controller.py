"""The controller `shoot-state`: saves the state of each Shoot in the garden, every few hours.

Shoots    of the own Seed that come, or are given to it; then a timer

Of a Seed that is itself a Shoot nothing is saved: it is not lost alone. The state holds keys, so it is never logged.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from agent.gardenlet.context import Context
from agent.gardenlet.secrets_manager.rules.labels import PERSISTED
from agent.gardenlet.shoot.state import rules
from agent.gardenlet.views import shoots_view
from gardener.api import extensions
from gardener.api.garden import MANAGED_SEEDS, SHOOT_STATES, SHOOTS
from gardener.api.kinds import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from gardener.garden.shoots import responsible_seed, workers
from gardener.keys import TIMESTAMP
from gardener.network_policies import GARDEN_NAMESPACE
from kube.clock import format_time
from kube.errors import KindNotServed
from kube.objects import Key, Object, annotations, key, metadata, spec, text
from kube.paths import at
from kube.resources import CONFIG_MAPS, SECRETS, Resource
from kube.runtime.cache import Store
from kube.runtime.client import Client, Selection
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result
from kube.runtime.loop import ControlLoop, enqueue
from kube.runtime.predicates import any_of, changed, listed

NAME = "shoot-state"
_NOT_YET_SECONDS = 600.0
_EARLIER, _SPREAD = 900.0, 1800.0
"""Seconds by which the next time is earlier than the period says, and over which it is spread from there."""
_KINDS = (
    extensions.CONTAINER_RUNTIMES,
    extensions.CONTROL_PLANES,
    extensions.DNS_RECORDS,
    extensions.EXTENSIONS,
    extensions.INFRASTRUCTURES,
    extensions.NETWORKS,
    extensions.OPERATING_SYSTEM_CONFIGS,
    extensions.WORKERS,
)
_REFERRED = {each.kind: each for each in (CONFIG_MAPS, SECRETS)}


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.shoot_state, context.garden
    loop = ControlLoop(NAME, kind=SHOOTS, workers=settings.concurrent_syncs)
    is_given = any_of(listed, changed("metadata.uid", "spec.seedName"))
    shoots = loop.watch(garden.caches, shoots_view(context.seed_name), enqueue(when=is_given))
    return loop.reconciled_by(
        Reconciler(
            seed_name=context.seed_name,
            seed=context.seed.client,
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
    seed: Client
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
        if await self.garden.find(MANAGED_SEEDS, self.seed_name, namespace=GARDEN_NAMESPACE) is not None:
            return RequeueAfter(self.period)
        live = await self.garden.find(SHOOT_STATES, name.name, namespace=name.namespace)
        if wait := rules.due_in(live, self.period, now=self.clock()):
            return RequeueAfter(wait)
        try:
            await self._save(shoot, live)
        except rules.TooLarge as error:
            raise ReconcileError(str(error)) from error
        return RequeueAfter(max(self.period - _EARLIER + random.uniform(0, _SPREAD), 1.0))  # noqa: S311 - only spreads

    async def _save(self, shoot: Object, live: Object | None) -> None:
        """Raises TooLarge, KubeError."""
        wanted = await self._state(shoot, text(at(shoot, "status", "technicalID")))
        notes = {**annotations(live or {}), TIMESTAMP: format_time(self.clock())}
        if live is not None:
            obj = {**live, "metadata": {**metadata(live), "annotations": notes}, "spec": wanted}
            await self.garden.replace(SHOOT_STATES, obj)
            return
        meta = {"namespace": key(shoot).namespace, "name": key(shoot).name, "annotations": notes}
        await self.garden.create(SHOOT_STATES, {**SHOOT_STATES.type_meta, "metadata": meta, "spec": wanted})

    async def _state(self, shoot: Object, namespace: str) -> Object:
        secrets = await self.seed.list(SECRETS, Selection(namespace=namespace, label_selector=PERSISTED))
        found = [each for kind in _KINDS for each in await self._all(kind, namespace)]
        data = {}
        for extension in found:
            for _, reference in rules.references(extension):
                if (obj := await self._referred(reference, namespace)) is not None:
                    data[f"{obj['kind']}/{key(obj).name}"] = rules.referenced(obj)
        machines = None
        if workers(spec(shoot)):
            kinds = (MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES)
            machines = rules.machines(*[await self._all(each, namespace) for each in kinds])
        return rules.state(secrets=secrets, extensions=found, data=data, machines=machines)

    async def _all(self, kind: Resource, namespace: str) -> list[Object]:
        try:
            return await self.seed.list(kind, Selection(namespace=namespace))
        except KindNotServed:
            return []

    async def _referred(self, reference: Object, namespace: str) -> Object | None:
        kind = _REFERRED.get(text(reference.get("kind")))
        if kind is None:
            return None
        return await self.seed.find(kind, text(reference.get("name")), namespace=namespace)
