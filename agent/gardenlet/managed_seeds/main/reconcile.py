"""One reconciliation of a ManagedSeed.

Its Shoot must be reconciled first. Then its gardenlet is deployed, and the next pass comes after the sync period, or
earlier to check the rollout of a changed gardenlet. `SeedRegistered` means that the gardenlet has been deployed.

Changed gardenlets are restarted a few at a time (`rollouts`); a new one, or one with a requested operation, does not
wait for others.
"""

from dataclasses import dataclass, field
from typing import Literal

from agent.gardenlet.context import Context
from agent.gardenlet.managed_seeds.installation.target import NotAdmitted, is_rolled_out
from agent.gardenlet.managed_seeds.main.deploy import Deployer
from agent.gardenlet.managed_seeds.main.remove import Remover
from agent.gardenlet.managed_seeds.main.rollouts import Rollouts
from agent.gardenlet.managed_seeds.main.rules.gardenlet import is_reconciled, is_reconciled_again
from agent.gardenlet.managed_seeds.main.rules.timing import is_renewing
from config.gardenlet.controllers import ManagedSeed as Settings
from gardener import conditions, keys, operations
from gardener.api.garden import MANAGED_SEEDS, SHOOTS
from gardener.garden.shoots import responsible_seed
from kube.conditions import Condition, conditions_of, with_conditions
from kube.errors import KubeError
from kube.objects import Key, Object, finalizers, is_deleting, key, metadata, text
from kube.paths import at
from kube.runtime.cache import Store
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result, is_conflict
from kube.runtime.edits import take_annotation
from kube.runtime.finalizers import ensure_finalizer, remove_finalizer
from kube.runtime.status import StatusWriter

_RECONCILED, _RECONCILING, _FAILED = "Reconciled", "Reconciling", "ReconcileError"
_DELETING, _DELETION_FAILED = "Deleting", "DeleteError"
_WAITING = "RolloutPending"


def shoot_of(managed_seed: Object) -> Key:
    return Key(key(managed_seed).namespace, text(at(managed_seed, "spec", "shoot", "name")))


@dataclass(eq=False, slots=True, kw_only=True)
class Reconciler:
    context: Context
    settings: Settings
    managed_seeds: Store[Object]
    shoots: Store[Object]
    statuses: StatusWriter
    deployer: Deployer
    remover: Remover
    rollouts: Rollouts
    requested: set[Key] = field(default_factory=set)
    """ManagedSeeds for which a user has requested a reconciliation."""
    _hosts: dict[Key, str] = field(default_factory=dict)
    """Uids of ManagedSeeds that belonged to this seed while their Shoots existed."""

    def is_own(self, managed_seed: Object) -> bool:
        """Whether this gardenlet is responsible for it, as far as is known."""
        shoot = self.shoots.get(shoot_of(managed_seed))
        if shoot is not None:
            return responsible_seed(shoot) == self.context.seed_name
        return self._hosts.get(key(managed_seed)) == metadata(managed_seed).get("uid")

    def forget_host(self, name: Key) -> None:
        """Forget a ManagedSeed whose Shoot is on another seed now."""
        self._hosts.pop(name, None)

    async def reconcile(self, name: Key) -> Result:
        managed_seed = self.managed_seeds.get(name)
        if managed_seed is None or not self.is_own(managed_seed):
            self.rollouts.end(name)
            self._hosts.pop(name, None)
            return Done()
        self._hosts[name] = metadata(managed_seed)["uid"]
        return await (self._delete(managed_seed) if is_deleting(managed_seed) else self._reconcile(managed_seed))

    async def _reconcile(self, managed_seed: Object) -> Result:
        garden, name = self.context.garden.client, shoot_of(managed_seed)
        try:
            shoot = await garden.get(SHOOTS, name)
        except KubeError as error:
            raise ReconcileError(f"could not get shoot {name}: {error}") from error
        managed_seed = await ensure_finalizer(garden, MANAGED_SEEDS, managed_seed, keys.GARDENER_FINALIZER)
        self.managed_seeds.observe(managed_seed)
        if is_reconciled_again(managed_seed, shoot):
            return RequeueAfter(self.settings.wait_sync_period)
        if not is_reconciled(shoot):
            message = f'Waiting for shoot "{name}" to be reconciled'
            self._event(managed_seed, _RECONCILING, message)
            await self._write(managed_seed, Condition(conditions.SHOOT_RECONCILED, "False", _RECONCILING, message))
            return RequeueAfter(self.settings.wait_sync_period)
        ready = Condition(conditions.SHOOT_RECONCILED, "True", _RECONCILED, f'Shoot "{name}" has been reconciled')
        return await self._deploy(managed_seed, shoot, ready)

    async def _deploy(self, managed_seed: Object, shoot: Object, ready: Condition) -> Result:
        name = key(managed_seed)
        goes_ahead = name in self.requested or is_renewing(managed_seed)
        try:
            deployed = await self.deployer.deploy(
                managed_seed,
                shoot,
                admit=lambda: goes_ahead or self.rollouts.admit(name),
                say=lambda message: self._event(managed_seed, _RECONCILING, message),
            )
        except NotAdmitted:
            waiting = self.rollouts.waiting
            message = (
                f"Seed {name.name} has been registered; {waiting} changed gardenlets wait until others are rolled out"
            )
            registered = Condition(conditions.SEED_REGISTERED, "True", _WAITING, message)
            await self._write(managed_seed, ready, registered)
            return RequeueAfter(self.settings.wait_sync_period)
        except (ReconcileError, KubeError) as error:
            if not is_conflict(error):
                self._event(managed_seed, _FAILED, str(error), kind="Warning")
                await self._write(
                    managed_seed, ready, Condition(conditions.SEED_REGISTERED, "False", _FAILED, str(error))
                )
            raise
        self.requested.discard(name)
        if is_renewing(managed_seed):
            await self._forget_operation(managed_seed)
        message = f"Seed {name.name} has been registered"
        await self._write(managed_seed, ready, Condition(conditions.SEED_REGISTERED, "True", _RECONCILED, message))
        return self._followed(name, deployed)

    def _followed(self, name: Key, deployment: Object | None) -> Result:
        if name in self.rollouts:
            if deployment is not None and not is_rolled_out(deployment):
                return RequeueAfter(self.settings.wait_sync_period)
            self.rollouts.end(name)
        return RequeueAfter(self.settings.sync_period)

    async def _forget_operation(self, managed_seed: Object) -> None:
        client = self.context.garden.client
        self.managed_seeds.observe(await take_annotation(client, MANAGED_SEEDS, managed_seed, keys.OPERATION))

    # --- deletion

    async def _delete(self, managed_seed: Object) -> Result:
        if keys.GARDENER_FINALIZER not in finalizers(managed_seed):
            return Done()
        garden, where = self.context.garden.client, shoot_of(managed_seed)
        self.rollouts.end(key(managed_seed))
        try:
            shoot = await garden.find(SHOOTS, where)
            step = await self.remover.remove(managed_seed, shoot)
        except (ReconcileError, KubeError) as error:
            if not is_conflict(error):
                self._event(managed_seed, _DELETION_FAILED, str(error), kind="Warning")
                failed = Condition(conditions.SEED_REGISTERED, "False", _DELETION_FAILED, str(error))
                await self._write(managed_seed, failed)
            raise
        if step is None:
            live = self.managed_seeds.get(key(managed_seed)) or managed_seed
            await remove_finalizer(garden, MANAGED_SEEDS, live, keys.GARDENER_FINALIZER)
            return Done()
        self._event(managed_seed, _DELETING, step.event)
        await self._write(managed_seed, Condition(conditions.SEED_REGISTERED, "False", _DELETING, step.message))
        return RequeueAfter(self.settings.sync_period if step.is_followed else self.settings.wait_sync_period)

    # --- Events and status

    def _event(
        self, managed_seed: Object, reason: str, message: str, *, kind: Literal["Normal", "Warning"] = "Normal"
    ) -> None:
        self.context.garden_recorder.event(managed_seed, kind, reason, message)

    async def _write(self, managed_seed: Object, *reported: Condition) -> None:
        now, generation = self.context.clock(), operations.generation(managed_seed)

        def compute(status: Object) -> Object:
            written = with_conditions(conditions_of({"status": status}), reported, now=now)
            return {**status, "observedGeneration": generation, "conditions": written}

        await self.statuses.update_if_exists(managed_seed, compute)
