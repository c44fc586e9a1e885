"""The controller `gardenlet-creation`: creates the Gardenlet that upgrades this process from a ConfigMap of the seed.

The ConfigMap is then deleted. A Gardenlet that exists in the garden is left unchanged. If the content is invalid or the
garden refuses it, the ConfigMap stays, with a Warning Event: nothing else of the seed waits for it.
"""

from dataclasses import dataclass

import structlog

from agent.gardenlet.context import Context
from gardener.api.garden import GARDENLETS
from kube.errors import ApiError
from kube.objects import Key, Object, mapping, metadata, string_map, text, uid
from kube.paths import at
from kube.resources import CONFIG_MAPS
from kube.runtime.cache import Store, View, without_managed_fields
from kube.runtime.controller import Done, ReconcileError, Result
from kube.runtime.loop import ControlLoop, always, enqueue
from kube.yaml import Budget, DialectError, load

CONTROLLER = "gardenlet-creation"
NAMESPACE, NAME, KEY = "garden", "gardenlet-selfupgrade-config", "gardenlet.yaml"
_MOST_VALUES = 100_000
_FAILED = "GardenletCreationFailed"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def declare(context: Context) -> ControlLoop:
    loop = ControlLoop(CONTROLLER, kind=CONFIG_MAPS)
    view = View(CONFIG_MAPS, without_managed_fields, namespace=NAMESPACE, field_selector=f"metadata.name={NAME}")
    return loop.reconciled_by(Reconciler(context, loop.watch(context.seed.caches, view, enqueue(always))))


@dataclass(frozen=True, slots=True)
class Reconciler:
    context: Context
    config_maps: Store[Object]

    async def reconcile(self, name: Key) -> Result:
        found = self.config_maps.get(name)
        if found is None:
            return Done()
        try:
            await self._create(decoded(string_map(found.get("data")).get(KEY, "")))
        except (ValueError, ApiError) as error:
            message = f"no Gardenlet was created from {KEY}: {error}; correct it, or delete the ConfigMap"
            self.context.seed_recorder.event(found, "Warning", _FAILED, message)
            raise ReconcileError(message) from error
        await self.context.seed.client.delete_if_exists(
            CONFIG_MAPS, name, uid=uid(found), resource_version=metadata(found)["resourceVersion"]
        )
        return Done()

    async def _create(self, gardenlet: Object) -> None:
        client, meta = self.context.garden.client, metadata(gardenlet)
        name = Key(meta["namespace"], meta["name"])
        if await client.find(GARDENLETS, name) is None and await client.create_if_missing(GARDENLETS, gardenlet):
            log.info("Created the Gardenlet that upgrades this process", name=str(name))


def decoded(content: str) -> Object:
    """Decode the Gardenlet, with unknown fields.

    The name in `seedConfig` is omitted: the garden forbids it, and it can only be that of the Gardenlet.

    Raises:
        ValueError: it is invalid.
    """
    try:
        found = mapping(load(content, budget=Budget(_MOST_VALUES)))
    except DialectError as error:
        raise ValueError(str(error)) from error
    if (found.get("apiVersion"), found.get("kind")) != (GARDENLETS.api_version, GARDENLETS.kind):
        raise ValueError(f"it is no {GARDENLETS.kind} of {GARDENLETS.api_version}")
    name = text(metadata(found).get("name"))
    if not name:
        raise ValueError("it has no name")
    if at(found, "spec", "config", "seedConfig", "metadata", "name") == name:
        del found["spec"]["config"]["seedConfig"]["metadata"]["name"]
    return {**found, "metadata": {"namespace": NAMESPACE, **metadata(found)}}
