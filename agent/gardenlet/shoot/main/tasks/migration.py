"""Migration: a Shoot leaves its seed. Its state is saved first, and deletion here starts only after it was read back.

Objects in its own cluster stay: ManagedResources release them.
"""

import asyncio
from contextlib import suppress
from datetime import datetime

from agent.gardenlet.common.extension_objects import kinds
from agent.gardenlet.common.extension_objects.kinds import Kind
from agent.gardenlet.common.shoot_states.rules.contents import holds, merged, without_gone, without_machines
from agent.gardenlet.common.shoot_states.rules.parts import TooLarge, divided, together
from agent.gardenlet.common.shoot_states.saving import Saved, demand_all_keys, living, save, saved
from agent.gardenlet.flow.graph import ONCE, Task
from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.flow.unit import Unit, Wait
from agent.gardenlet.shoot.main import cluster_objects
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.rules.extensions import Stage, wanted
from agent.gardenlet.shoot.main.rules.moving import Progress, destination
from agent.gardenlet.shoot.main.skipping import workerless
from agent.gardenlet.shoot.main.tasks import destruction, requests, snapshots
from agent.gardenlet.shoot.main.tasks.foundation import had_keys
from components import shoot_backup_entry
from gardener import keys, operations
from gardener.api.garden import BACKUP_ENTRIES, SHOOTS
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.extension_contract import is_migrated, last_error, last_operation
from gardener.garden.shoots import is_settled
from kube.errors import Forbidden, NotFound
from kube.objects import (
    Key,
    Object,
    annotations,
    is_deleting,
    key,
    metadata,
    resource_version,
    spec,
    text,
    uid,
)
from kube.paths import at
from kube.resources import NAMESPACES
from kube.runtime.client import Client, Selection
from kube.runtime.controller import ReconcileError
from kube.runtime.status import Overtaken
from process.clusters import Cluster

_ENTRY_SECONDS = 600.0
_MOVED = [each for each in kinds.OF_SHOOTS.values() if each is not kinds.DNS_RECORD]
"""Kinds that migrate before the API server is deleted; DNS records follow after it."""


# --- progress


async def progress_of(seed: Cluster, shoot: Object) -> Progress:
    """Progress of a migration. Another gardenlet, which records nothing, may have begun it. Raises KubeError."""
    namespace = text(at(shoot, "status", "technicalID"))
    place = await seed.client.find(NAMESPACES, namespace)
    if place is None or is_deleting(place):
        return Progress.OBJECTS
    try:
        recorded = Progress(annotations(place).get(keys.SHOOT_LEAVING, ""))
    except ValueError:
        recorded = Progress.NOTHING
    if recorded is not Progress.NOTHING:
        return recorded
    for kind in _MOVED:
        found = await seed.discovery.list_if_served(kind.resource, Selection(namespace=namespace))
        if any(is_migrated(each) or annotations(each).get(keys.OPERATION) == keys.OPERATION_MIGRATE for each in found):
            return Progress.OBJECTS
    return Progress.NOTHING


async def forget_progress(seed: Client, shoot: Object) -> None:
    """Remove the record of a migration that was taken back. Raises KubeError."""
    namespace = text(at(shoot, "status", "technicalID"))
    place = await seed.find(NAMESPACES, namespace)
    if place is not None and keys.SHOOT_LEAVING in annotations(place):
        await seed.annotate(NAMESPACES, namespace, {keys.SHOOT_LEAVING: None})


# --- objects in its cluster


async def keep_objects(operation: ShootOperation) -> None:
    """Set all ManagedResources of the Shoot's cluster to keep their objects."""
    await operation.record_leaving(Progress.OBJECTS.value)
    client = operation.seed.client
    for each in await _managed(operation):
        if spec(each).get("keepObjects") is not True:
            name = key(each)
            await client.patch_if_exists(MANAGED_RESOURCES, name, {"spec": {"keepObjects": True}})


async def delete_managed_resources(operation: ShootOperation) -> None:
    """Delete all ManagedResources of the Shoot's cluster."""
    for each in await _managed(operation):
        if not is_deleting(each):
            name = key(each)
            await operation.seed.client.delete_if_exists(MANAGED_RESOURCES, name, uid=uid(each))


async def _managed(operation: ShootOperation) -> list[Object]:
    selection = Selection(namespace=operation.technical_id)
    found = await operation.seed.discovery.list_if_served(MANAGED_RESOURCES, selection)
    return [each for each in found if not spec(each).get("class")]


# --- state


async def problem_of_state(seed: Cluster, garden: Client, shoot: Object, *, now: datetime) -> str:
    """Reason why the state can't be saved; empty if it can, or was.

    Saved states of deleted extension objects are dropped before the move begins. From then on all saved states are
    kept, since the objects are deleted one by one.

    Raises: KubeError.
    """
    try:
        before, wanted = await _to_save(seed, garden, shoot)
    except (TooLarge, ReconcileError) as error:
        return str(error)
    if not holds(together(wanted), before.whole):
        await _demand_that_it_is_so(garden, shoot)
        await save(garden, key(shoot), wanted, before, now=now)
    return ""


async def _demand_that_it_is_so(garden: Client, shoot: Object) -> None:
    """Check that the Shoot is unchanged: a stale cache would overwrite a newer state. Raises Overtaken, KubeError."""
    name = key(shoot)
    live = await garden.find(SHOOTS, name)
    if live is None or resource_version(live) != resource_version(shoot):
        raise Overtaken(shoot)


async def _to_save(seed: Cluster, garden: Client, shoot: Object) -> tuple[Saved, list[Object]]:
    """Return the saved state, and the desired `spec`s of its parts.

    Raises: TooLarge, ReconcileError, KubeError.
    """
    name, namespace = key(shoot), text(at(shoot, "status", "technicalID"))
    before = await saved(garden, name)
    place = await seed.client.find(NAMESPACES, namespace)
    if place is None or is_deleting(place):
        if not before.parts and await had_keys(garden, name):
            raise ReconcileError(
                f"namespace {namespace} is deleted, and ShootState {name} does not exist, so the keys of the Shoot are "
                "lost; restore the ShootState from a backup of the garden"
            )
        return before, before.specs
    found = await living(seed, shoot, before)
    if annotations(place).get(keys.SHOOT_LEAVING) == Progress.OBJECTS.value:
        found = without_machines(found)  # they were saved, and are deleted one by one
    demand_all_keys(name, before, found, namespace=namespace)
    kept = without_gone(before.whole, found) if is_settled(shoot) else before.whole
    return before, divided(merged(kept, found), before.specs)


async def persist(operation: ShootOperation) -> None:
    """Save the state, and read it back. Raises ReconcileError, KubeError."""
    garden, name = operation.garden.client, operation.name
    try:
        before, wanted = await _to_save(operation.seed, garden, operation.shoot)
    except TooLarge as error:
        raise ReconcileError(str(error)) from error
    if before.specs != wanted:
        await save(garden, name, wanted, before, now=operation.garden.clock())
        before = await saved(garden, name)
    if before.specs != wanted:
        raise ReconcileError(f"ShootState {name} was modified by another writer; find and stop it")


# --- extensions


async def migrate_extensions(operation: ShootOperation) -> None:
    """Migrate all extension objects except for DNSRecords, and wait.

    Raises:
        ExtensionError: the extension failed, or did not finish in time.
    """
    if (
        await progress_of(operation.seed, operation.shoot) is Progress.NOTHING
    ):  # an earlier attempt may have got further
        await operation.record_leaving(Progress.EXTENSIONS.value)
    await asyncio.gather(*(_migrate(operation, kind) for kind in _MOVED))


async def _migrate(operation: ShootOperation, kind: Kind) -> None:
    await asyncio.gather(*(_migrate_one(operation, kind, each) for each in await requests.existing(operation, kind)))


async def _migrate_one(operation: ShootOperation, kind: Kind, name: Key) -> None:
    if requested := await operation.extensions.migrate(kind, name):
        await operation.extensions.wait_until_migrated(requested)


async def delete_extensions_before(operation: ShootOperation) -> None:
    """Delete all that need not stay until the API server is gone. Raises ExtensionError, KubeError."""
    registered = wanted(operation.shoot, operation.registrations.values()).values()
    later = {each.key(operation.technical_id) for each in registered if each.migrated is not Stage.BEFORE_API_SERVER}
    for kind in _MOVED:
        if kind is not kinds.INFRASTRUCTURE:
            kept = later if kind is kinds.EXTENSION else ()
            left = [each for each in await requests.existing(operation, kind) if each not in kept]
            await requests.remove_named(operation, kind, left)


async def delete_extensions_after(operation: ShootOperation) -> None:
    """Delete the remaining Extensions and Infrastructures. Raises ExtensionError, KubeError."""
    for kind in (kinds.EXTENSION, kinds.INFRASTRUCTURE):
        await requests.remove_named(operation, kind, await requests.existing(operation, kind))


async def move_names(operation: ShootOperation) -> None:
    """Migrate and delete the DNSRecords.

    Raises:
        ExtensionError: the extension failed, or did not finish in time.
    """
    kind = kinds.DNS_RECORD
    await _migrate(operation, kind)
    await requests.remove_named(operation, kind, await requests.existing(operation, kind))


# --- backups


async def move_backup_entry(operation: ShootOperation) -> None:
    """Assign the BackupEntry to the destination Seed."""
    name, client = _entry(operation), operation.garden.client
    live = await client.find(BACKUP_ENTRIES, name)
    own, to = text(metadata(operation.seed_object)["name"]), destination(operation.shoot)
    if live is not None and text(spec(live).get("seedName")) == own != to:
        body = {"metadata": {"uid": uid(live)}, "spec": {"seedName": to}}
        await client.patch(BACKUP_ENTRIES, name, body)


async def wait_for_backup_entry(operation: ShootOperation) -> None:
    """Wait until this Seed has released the BackupEntry.

    Raises:
        NotInTimeError: the wait timed out.
    """
    own = text(metadata(operation.seed_object)["name"])

    def held(live: Object | None) -> str:
        if live is None or text(spec(live).get("seedName")) == own or at(live, "status", "seedName") != own:
            return ""
        last = last_operation(live)
        reported = text(last_error(live).get("description")) if last.get("type") == operations.MIGRATE else ""
        return reported or f"the Seed {own} has not handed it over yet"

    await operation.garden_waiting.until_ready(
        BACKUP_ENTRIES, _entry(operation), held, seconds=_ENTRY_SECONDS, report=waits_for, or_gone=True
    )


def _entry(operation: ShootOperation) -> Key:
    return Key(operation.name.namespace, shoot_backup_entry.name(operation.shoot))


# --- the end


async def forget(operation: ShootOperation) -> None:
    """Delete the Cluster object and the requested tasks, which applied to this Seed."""
    await cluster_objects.delete(operation.seed.client, operation.technical_id)
    if keys.TASKS in annotations(operation.shoot):
        await operation.garden.client.annotate(SHOOTS, operation.name, {keys.TASKS: None})


# --- tasks

MACHINES = Task(
    "machines-saved",
    "Persisting machines in garden cluster",
    persist,
    after=["machine-controller-manager-gone"],
    unless=workerless,
)
"""If the move is taken back, the extension of the Worker may read them as if they came from another Seed."""
EXTENSIONS = Task(
    "extensions-migrated",
    "Migrating extension resources, and waiting until they have been migrated",
    migrate_extensions,
    after=["resource-manager-ready", "machines-saved"],
    retry=ONCE,
)
STATE = Task("state", "Persisting ShootState in garden cluster", persist, after=["extensions-migrated"])
KEPT_OBJECTS = Task(
    "keep-objects",
    "Configuring Managed Resources objects to be kept in the Shoot",
    keep_objects,
    after=["state"],
)
OBJECTS_GO = Unit(
    id="managed-resources",
    verb="Deleting",
    title="all Managed Resources from the Shoot's namespace",
    deploy=delete_managed_resources,
    after=["keep-objects"],
    wait=Wait("ManagedResources are deleted", destruction.wait_for_all_of_shoot, id="managed-resources-gone"),
)
EXTENSIONS_BEFORE = Task(
    "extensions-before",
    "Deleting extension resources before kube-apiserver",
    delete_extensions_before,
    after=["managed-resources-gone"],
    retry=ONCE,
)
EXTENSIONS_AFTER = Task(
    "extensions-after",
    "Deleting extension resources after kube-apiserver",
    delete_extensions_after,
    after=["api-server-gone"],
    retry=ONCE,
)
NAMES = Task("names", "Migrating domain DNS records", move_names, after=["api-server-gone"], retry=ONCE)
SNAPSHOT = Task("snapshot", "Creating ETCD Snapshot", snapshots.last, after=["api-server-gone"], retry=ONCE)
BACKUP_ENTRY = Unit(
    id="backup-entry",
    verb="Migrating",
    title="BackupEntry to new seed",
    deploy=move_backup_entry,
    after=["snapshot"],
    wait=Wait("BackupEntry has been migrated to new seed", wait_for_backup_entry, id="backup-entry-moved"),
)
CLUSTER = Task("cluster", "Deleting Cluster", forget, after=["namespace-gone"])


# --- after the flow


async def let_go(garden: Client, shoot: Object, *, seed: str) -> None:
    """Remove the label by which this gardenlet finds its Shoots, since it is no longer responsible.

    The garden may refuse the write for that reason, and removes the label with the next write.
    """
    name = key(shoot)
    body: Object = {"metadata": {"labels": {f"{keys.SEED_LABEL_PREFIX}{seed}": None}}}
    with suppress(Forbidden, NotFound):
        await garden.patch(SHOOTS, name, body)
