"""Reads and writes of a pass in the garden.

Decisions depend on caches; irreversible ones are repeated with the state in the API server.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from agent.controller_manager.common.api import BY_NAMESPACE, BY_SEED
from agent.controller_manager.common.confirmed_deletion import delete_confirmed
from agent.controller_manager.common.seeds import is_used
from agent.controller_manager.managed_seed_set.rules.objects import owner_reference
from agent.controller_manager.managed_seed_set.rules.steps import Scheduled
from gardenapi.api import GardenApi
from gardener import keys
from gardener.api.garden import MANAGED_SEEDS, SEEDS, SHOOTS
from gardener.garden.managed_seed_sets import REVISION_LABEL, Membership, Replica, ShootHealth, health_of, membership_of
from kube.errors import Conflict
from kube.objects import (
    Key,
    Object,
    annotations,
    controller_of,
    is_truthy,
    key,
    labels,
    metadata,
    selector_text,
    spec,
    uid,
)
from kube.resources import Resource
from kube.runtime.cache import Store
from kube.runtime.client import Client, Form, Selection
from kube.runtime.status import StatusWriter
from kube.write_mode import WriteMode


class SetIsGone(Exception):
    """The set is gone, even if it had a finalizer: nothing is done for it any more."""


@dataclass(eq=False, kw_only=True, slots=True)
class SetObjects:
    client: Client
    status: StatusWriter
    """Writer of the status of sets."""
    api: GardenApi
    sets: Store[Object]
    shoots: Store[Object]
    managed_seeds: Store[Object]
    seeds: Store[Object]
    clock: Callable[[], datetime]

    # --- reading

    def membership(self, seed_set: Object) -> Membership:
        """Return the members of a set.

        Raises:
            ValueError: the selector can't be evaluated.
        """
        namespace = key(seed_set).namespace
        return membership_of(seed_set, self.shoots.values_by_index(BY_NAMESPACE, namespace))

    def replica(self, shoot: Object) -> Replica:
        own = key(shoot)
        return Replica(shoot=shoot, managed_seed=self.managed_seeds.get(own), seed=self.seeds.get(Key("", own.name)))

    def is_known_to_be_used(self, seed: str) -> bool:
        return self.shoots.count(BY_SEED, seed) > 0

    def scheduled(self, seed: str) -> Scheduled:
        """Count the Shoots on a Seed, without those that leave it."""
        there = [shoot for shoot in self.shoots.values_by_index(BY_SEED, seed) if spec(shoot).get("seedName") == seed]
        unhealthy = sum(health_of(shoot) is not ShootHealth.HEALTHY for shoot in there)
        return Scheduled(total=len(there), unhealthy=unhealthy)

    async def is_used(self, seed: str) -> bool:
        return await is_used(self.client, seed)

    async def knows_all(self, seed_set: Object, membership: Membership) -> bool:
        """Whether the caches hold exactly the Shoots of the set in the API server."""
        selection = Selection(key(seed_set).namespace, selector_text(spec(seed_set).get("selector") or {}))
        there = {
            uid(shoot)
            async for page in self.client.pages(SHOOTS, selection, form=Form.METADATA)
            for shoot in page
            if (controller_of(shoot) or {}).get("uid") == uid(seed_set)
        }
        return there == {uid(shoot) for shoot in membership.owned}

    # --- writing

    async def adopt(self, seed_set: Object, shoot: Object) -> None:
        owners = [*(metadata(shoot).get("ownerReferences") or []), owner_reference(seed_set)]
        await self._patch(SHOOTS, shoot, {"ownerReferences": owners})

    async def mark(self, replica: Replica, revision: str) -> bool:
        """Label objects without a revision, and return whether there were any."""
        unmarked = [
            (resource, obj)
            for resource, obj in ((SHOOTS, replica.shoot), (MANAGED_SEEDS, replica.managed_seed))
            if obj is not None and not labels(obj).get(REVISION_LABEL)
        ]
        for resource, obj in unmarked:
            await self._patch(resource, obj, {"labels": {REVISION_LABEL: revision}})
        return bool(unmarked)

    async def retry(self, shoot: Object) -> None:
        own = key(shoot)
        self.shoots.observe(await self.api.operate(SHOOTS, own, keys.OPERATION_RETRY))

    async def try_to_create(self, shoot: Object) -> None:
        """Create the Shoot in a dry run.

        Raises:
            KubeError: the API server rejects it.
        """
        await self.client.create(SHOOTS, shoot, mode=WriteMode(dry_run=True))

    async def create_shoot(self, shoot: Object) -> None:
        self.shoots.observe(await self.client.create(SHOOTS, shoot))

    async def create_managed_seed(self, managed_seed: Object) -> None:
        # An earlier pass may have created it, unobserved by the cache.
        if created := await self.client.create_if_missing(MANAGED_SEEDS, managed_seed):
            self.managed_seeds.observe(created)

    async def cordon(self, seed_set: Object, name: str) -> bool:
        """Keep new Shoots off the Seed, and return whether it was not cordoned yet."""
        seed = self.seeds.get(Key("", name))
        if seed is None or is_truthy(annotations(seed).get(keys.CORDONED)):
            return False
        await self._annotate_seed(seed, {keys.CORDONED: "true", keys.CORDONED_BY: uid(seed_set)})
        return True

    async def uncordon(self, seed_set: Object, name: str) -> None:
        """Uncordon the Seed if this set has cordoned it."""
        seed = self.seeds.get(Key("", name))
        if seed is not None and annotations(seed).get(keys.CORDONED_BY) == uid(seed_set):
            await self._annotate_seed(seed, {keys.CORDONED: None, keys.CORDONED_BY: None})

    async def _annotate_seed(self, seed: Object, changed: Mapping[str, str | None]) -> None:
        meta: Object = {"resourceVersion": metadata(seed)["resourceVersion"], "uid": uid(seed), "annotations": changed}
        if written := await self.client.patch_if_exists(SEEDS, key(seed).name, {"metadata": meta}):
            self.seeds.observe(written)

    async def delete_managed_seed(self, managed_seed: Object) -> None:
        own, version = key(managed_seed), metadata(managed_seed)["resourceVersion"]
        await self.client.delete_if_exists(MANAGED_SEEDS, own, uid=uid(managed_seed), resource_version=version)

    async def delete_shoot(self, shoot: Object) -> None:
        """Delete the Shoot after a confirmation.

        Raises:
            Conflict: it has a ManagedSeed, a Seed, or another controller meanwhile.
        """
        own = key(shoot)

        async def is_due(live: Object) -> bool:
            others = (
                await self.client.find(MANAGED_SEEDS, own),
                await self.client.find(SEEDS, own.name),
            )
            if any(others) or controller_of(live) != controller_of(shoot):
                raise Conflict(409, message=f"objects of shoot {own} have changed")
            return True

        await delete_confirmed(self.client, SHOOTS, shoot, now=self.clock(), is_due=is_due)

    async def write_status(self, seed_set: Object, wanted: Object) -> Object:
        """Write fields of the status; None removes one. Nothing is written if nothing changes.

        Raises:
            SetIsGone: the set does not exist any more.
        """
        updated = await self.status.update_if_exists(seed_set, lambda status: {**status, **wanted})
        if updated is None:
            raise SetIsGone
        return updated

    async def replace(self, resource: Resource, obj: Object) -> None:
        """Replace a Shoot or a ManagedSeed."""
        self._store(resource).observe(await self.client.replace(resource, obj))

    async def _patch(self, resource: Resource, obj: Object, meta: Object) -> None:
        own, version = key(obj), metadata(obj)["resourceVersion"]
        body: Object = {"metadata": {**meta, "resourceVersion": version, "uid": uid(obj)}}
        self._store(resource).observe(await self.client.patch(resource, own, body))

    def _store(self, resource: Resource) -> Store[Object]:
        return self.shoots if resource == SHOOTS else self.managed_seeds
