"""Saves the state of a Shoot in the garden."""

from contextlib import suppress
from datetime import datetime

from agent.gardenlet.secrets_manager.rules.labels import PERSISTED
from agent.gardenlet.shoot_states.rules import contents
from gardener.api import extensions
from gardener.api.garden import SHOOT_STATES
from gardener.api.kinds import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from gardener.garden.shoots import workers
from gardener.keys import CONFIRM_DELETION, TIMESTAMP
from kube.clock import format_time
from kube.errors import KindNotServed, NotFound
from kube.objects import Key, Object, annotations, key, metadata, spec, text, uid
from kube.paths import at
from kube.resources import CONFIG_MAPS, SECRETS, Resource
from kube.runtime.client import Client, Selection

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


async def living(seed: Client, shoot: Object) -> Object:
    """The `spec` of a ShootState, of what lives in the seed. Raises TooLarge, KubeError."""
    namespace = text(at(shoot, "status", "technicalID"))
    secrets = await seed.list(SECRETS, Selection(namespace=namespace, label_selector=PERSISTED))
    found = [each for kind in _KINDS for each in await _all(seed, kind, namespace)]
    found += await _backup_entry(seed, f"{namespace}--{text(at(shoot, 'status', 'uid'))}")
    data = {}
    for extension in found:
        for _, reference in contents.references(extension):
            if (obj := await _referred(seed, reference, namespace)) is not None:
                data[f"{obj['kind']}/{key(obj).name}"] = contents.referenced(obj)
    machines = None
    if workers(spec(shoot)):
        kinds = (MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES)
        machines = contents.machines(*[await _all(seed, each, namespace) for each in kinds])
    return contents.state(secrets=secrets, extensions=found, data=data, machines=machines)


async def _all(seed: Client, kind: Resource, namespace: str) -> list[Object]:
    try:
        return await seed.list(kind, Selection(namespace=namespace))
    except KindNotServed:
        return []


async def _backup_entry(seed: Client, name: str) -> list[Object]:
    """It is in no namespace."""
    try:
        found = await seed.find(extensions.BACKUP_ENTRIES, name)
    except KindNotServed:
        return []
    return [] if found is None else [found]


async def _referred(seed: Client, reference: Object, namespace: str) -> Object | None:
    kind = _REFERRED.get(text(reference.get("kind")))
    return None if kind is None else await seed.find(kind, text(reference.get("name")), namespace=namespace)


async def save(garden: Client, shoot: Object, wanted: Object, live: Object | None, *, now: datetime) -> None:
    """Args: wanted: the `spec`. live: the ShootState as it was read. Raises KubeError."""
    notes = {**annotations(live or {}), TIMESTAMP: format_time(now)}
    if live is not None:
        await garden.replace(
            SHOOT_STATES, {**live, "metadata": {**metadata(live), "annotations": notes}, "spec": wanted}
        )
        return
    meta = {"namespace": key(shoot).namespace, "name": key(shoot).name, "annotations": notes}
    await garden.create(SHOOT_STATES, {**SHOOT_STATES.type_meta, "metadata": meta, "spec": wanted})


async def forget(garden: Client, shoot: Key) -> None:
    """Raises KubeError."""
    place = shoot.namespace
    live = await garden.find(SHOOT_STATES, shoot.name, namespace=place)
    if live is None:
        return
    body: Object = {"metadata": {"uid": uid(live), "annotations": {CONFIRM_DELETION: "true"}}}
    with suppress(NotFound):
        await garden.patch(SHOOT_STATES, shoot.name, body, namespace=place)
        await garden.delete(SHOOT_STATES, shoot.name, namespace=place, uid=uid(live))
