"""Stand-ins for gardenlets, for demo and tests: in the garden they behave like gardenlets.

    gardenlets = Gardenlets(client, "set-")
    await gardenlets.work()

Requests to them are done at once, without effect elsewhere: no machine, no control plane.
"""

import asyncio
from collections import Counter
from datetime import UTC, datetime

from gardener.api.garden import CONTROLLER_INSTALLATIONS, MANAGED_SEEDS, SEEDS, SHOOTS
from gardener.conditions import (
    GARDENLET_READY,
    HEALTHY,
    INSTALLED,
    PROGRESSING,
    SEED_REGISTERED,
    SEED_SYSTEM_COMPONENTS_HEALTHY,
    VALID,
)
from gardener.garden.domains import NAMESPACE
from gardener.garden.managed_seeds import seed_template_path
from gardener.garden.seeds import LEASE_NAMESPACE
from gardener.garden.shoots import is_current
from kube.clock import format_micro_time, format_time
from kube.errors import Conflict, NotFound
from kube.objects import Key, Object, condition, finalizers, is_deleting, key, labels, mapping, metadata, spec, uid
from kube.paths import at, mapping_at
from kube.resources import LEASES, Resource
from kube.runtime.client import Client, Selection

_FINALIZER = "gardener"
_NO_CLUSTER = "A stand-in for a gardenlet reports it: there is no cluster behind it."


class Gardenlets:
    """Simulated gardenlets of Shoots and ManagedSeeds in the namespace `garden` and of Seeds, by the prefix of their
    names.

    Attributes:
        failures: number of the next operations of a Shoot that fail, by its name.
        idle: names of objects that are left alone.
    """

    def __init__(self, client: Client, prefix: str = "") -> None:
        self._client = client
        self._prefix = prefix
        self.failures: Counter[str] = Counter()
        self.idle: set[str] = set()

    async def work(self) -> None:
        """Do all work that is due now."""
        shoots, managed_seeds, seeds = [await self._own(each) for each in (SHOOTS, MANAGED_SEEDS, SEEDS)]
        installations = await self._installations({key(each).name for each in seeds})
        capacities = {key(each).name: _capacity(each) for each in managed_seeds}
        await asyncio.gather(
            *map(self._shoot, shoots),
            *map(self._managed_seed, managed_seeds),
            *(self._seed(each, capacities.get(key(each).name, {})) for each in seeds),
            *map(self._installation, installations),
        )

    async def renew_leases(self) -> None:
        """Renew the Leases, so that their Seeds don't count as lost."""
        await asyncio.gather(*map(self._renew_lease, await self._own(SEEDS)))

    async def _own(self, resource: Resource) -> list[Object]:
        listed = await self._all(resource)
        return [each for each in listed if key(each).name.startswith(self._prefix) and key(each).name not in self.idle]

    async def _installations(self, seeds: set[str]) -> list[Object]:
        """Installations of extensions on these Seeds."""
        listed = await self._all(CONTROLLER_INSTALLATIONS)
        return [each for each in listed if at(spec(each), "seedRef", "name") in seeds]

    async def _all(self, resource: Resource) -> list[Object]:
        selection = Selection(NAMESPACE if resource.namespaced else "")
        return [each async for page in self._client.pages(resource, selection) for each in page]

    async def _shoot(self, shoot: Object) -> None:
        is_going = is_deleting(shoot)
        if not is_going and _FINALIZER not in finalizers(shoot):
            await self._patch(SHOOTS, shoot, {"metadata": {"finalizers": [*finalizers(shoot), _FINALIZER]}})
            return
        began = mapping_at(shoot, "status", "lastOperation")
        if is_current(shoot) and (not is_going or began.get("type") == "Delete"):
            return
        name = key(shoot).name
        fails = self.failures[name] > 0
        self.failures[name] -= fails
        if is_going and not fails:
            await self._release(SHOOTS, shoot)
            return
        kind = "Delete" if is_going else "Reconcile" if began else "Create"
        operation = _operation(kind, "Failed" if fails else "Succeeded")
        # The label comes first: the end of the operation means that everything is done.
        health = "unhealthy" if fails else "healthy"
        if labels(shoot).get("shoot.gardener.cloud/status") != health:
            await self._patch(SHOOTS, shoot, {"metadata": {"labels": {"shoot.gardener.cloud/status": health}}})
        await self._report(SHOOTS, shoot, {"lastOperation": operation})

    async def _managed_seed(self, managed_seed: Object) -> None:
        name = key(managed_seed).name
        seed = await self._client.find(SEEDS, name)
        if is_deleting(managed_seed):
            if seed is not None:
                await self._client.delete(SEEDS, name)
            else:
                await self._release(MANAGED_SEEDS, managed_seed)
            return
        if _FINALIZER not in finalizers(managed_seed):
            await self._patch(MANAGED_SEEDS, managed_seed, {"metadata": {"finalizers": [_FINALIZER]}})
            return
        if not is_current(managed_seed):
            await self._report(MANAGED_SEEDS, managed_seed, {"conditions": [_true(SEED_REGISTERED)]})
        elif seed is None:
            await self._register(managed_seed)

    async def _seed(self, seed: Object, capacity: Object) -> None:
        if is_deleting(seed) or (
            is_current(seed) and mapping(condition(seed, GARDENLET_READY)).get("status") == "True"
        ):
            return
        await self._renew_lease(seed)
        conditions = [_true(GARDENLET_READY), _true(SEED_SYSTEM_COMPONENTS_HEALTHY)]
        found = {"conditions": conditions, "lastOperation": _operation("Reconcile", "Succeeded")}
        await self._report(SEEDS, seed, {**found, "capacity": capacity, "allocatable": capacity})

    async def _installation(self, installation: Object) -> None:
        if condition(installation, INSTALLED) is None:
            good = [*map(_true, (VALID, INSTALLED, HEALTHY)), {**_true(PROGRESSING), "status": "False"}]
            await self._patch(
                CONTROLLER_INSTALLATIONS, installation, {"status": {"conditions": good}}, subresource="status"
            )

    async def _renew_lease(self, seed: Object) -> None:
        name = key(seed).name
        lease: Object = {"metadata": {"name": name}, "spec": {"renewTime": format_micro_time(datetime.now(UTC))}}
        if await self._client.find(LEASES, Key(LEASE_NAMESPACE, name)) is not None:
            await self._client.patch(LEASES, Key(LEASE_NAMESPACE, name), lease)
            return
        owner = {**SEEDS.type_meta, "name": name, "uid": uid(seed)}
        lease["metadata"] |= {"namespace": LEASE_NAMESPACE, "ownerReferences": [owner]}
        await self._client.create(LEASES, lease)

    async def _register(self, managed_seed: Object) -> None:
        template = mapping_at(spec(managed_seed), *seed_template_path(spec(managed_seed)))
        seed = {
            **SEEDS.type_meta,
            "metadata": {**mapping(template.get("metadata")), "name": key(managed_seed).name},
            "spec": template["spec"],
        }
        await self._client.create_if_missing(SEEDS, seed)

    # --- writing: after a conflict, the next round does it

    async def _report(self, resource: Resource, obj: Object, status: Object) -> None:
        status["observedGeneration"] = metadata(obj)["generation"]
        await self._patch(resource, obj, {"status": status}, subresource="status")

    async def _release(self, resource: Resource, obj: Object) -> None:
        left = [each for each in finalizers(obj) if each != _FINALIZER]
        await self._patch(resource, obj, {"metadata": {"finalizers": left or None}})

    async def _patch(self, resource: Resource, obj: Object, body: Object, *, subresource: str = "") -> None:
        own = key(obj)
        try:
            await self._client.patch(resource, own, body, subresource=subresource)
        except (Conflict, NotFound):
            return


def _operation(kind: str, state: str) -> Object:
    return {
        "type": kind,
        "state": state,
        "progress": 100,
        "description": f"{kind} has {state.lower()}. {_NO_CLUSTER}",
        "lastUpdateTime": format_time(datetime.now(UTC)),
    }


def _capacity(managed_seed: Object) -> Object:
    return mapping(at(spec(managed_seed), "gardenlet", "config", "resources", "capacity"))


def _true(condition_type: str) -> Object:
    moment = format_time(datetime.now(UTC))
    why = {
        "reason": "GardenletOfThisComputer",
        "message": _NO_CLUSTER,
    }
    return {"type": condition_type, "status": "True", **why, "lastTransitionTime": moment, "lastUpdateTime": moment}
