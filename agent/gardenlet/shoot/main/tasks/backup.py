"""The BackupEntries of a Shoot, in the garden: their own controller does the work.

A Shoot that has moved has its backups in the bucket of the previous Seed. A second entry refers to those until they are
copied and etcd has started with them.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from agent.gardenlet.flow.graph import ONCE, Task
from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.flow.unit import Unit, Wait, any_of
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.skipping import no_backup, no_copy, no_waiting, not_restored
from components import etcd, shoot_backup_entry
from components.etcd_copies import Values, task, unfinished
from gardener import keys, operations
from gardener.api.druid import ETCD_COPY_BACKUPS_TASKS, ETCDS
from gardener.api.garden import BACKUP_BUCKETS, BACKUP_ENTRIES
from kube.errors import NotFound
from kube.objects import Key, Object, annotations, integer, is_deleting, key, mapping, metadata, spec, text, uid
from kube.paths import at
from kube.resources import SECRETS, Resource
from kube.runtime.client import Client
from kube.runtime.controller import ReconcileError
from kube.runtime.waiting import NotInTimeError

_SECONDS, _COPY_SECONDS, _GONE_SECONDS, _SOURCE_SECONDS = 600.0, 900.0, 120.0, 30.0


async def copies(garden: Client, seed: Client, shoot: Object, *, bucket: str) -> bool:
    """Whether a moved Shoot still has backups to copy. Args: bucket: of the own Seed."""
    namespace, technical_id = key(shoot).namespace, text(at(shoot, "status", "technicalID"))
    if await seed.find(ETCDS, Key(technical_id, etcd.name(etcd.MAIN))) is not None:
        return False
    own = await garden.find(BACKUP_ENTRIES, Key(namespace, shoot_backup_entry.name(shoot)))
    if own is None:
        return False
    return spec(own).get("bucketName") != bucket or await _source(garden, shoot) is not None


async def _source(garden: Client, shoot: Object) -> Object | None:
    name = shoot_backup_entry.source_name(shoot)
    return await garden.find(BACKUP_ENTRIES, Key(key(shoot).namespace, name))


# --- the entry


async def entry(operation: ShootOperation) -> None:
    """Create or update the BackupEntry."""
    wanted = shoot_backup_entry.entry(operation.shoot, bucket=uid(operation.seed_object), seed=_own_seed(operation))
    if operation.is_restored:
        await _take_from_lost_seed(operation, key(wanted))
    await _have(operation, wanted, restores=operation.is_restored)


async def _take_from_lost_seed(operation: ShootOperation, name: Key) -> None:
    """Clear the status' Seed if it is another one: that Seed has not released the entry, so it must be lost."""
    client = operation.garden.client
    live = await client.find(BACKUP_ENTRIES, name)
    if live is not None and text(at(live, "status", "seedName")) not in {"", _own_seed(operation)}:
        body = {"metadata": {"uid": uid(live)}, "status": {"seedName": None}}
        await client.patch(BACKUP_ENTRIES, name, body, subresource="status")


def _own_seed(operation: ShootOperation) -> str:
    return text(metadata(operation.seed_object)["name"])


async def _have(operation: ShootOperation, wanted: Object, *, restores: bool = False) -> None:
    """Create or update an entry, and request its operation. Args: restores: to continue with another Seed's state."""
    client, name = operation.garden.client, key(wanted)
    live = await client.find(BACKUP_ENTRIES, name)
    if live is None:
        await client.create(BACKUP_ENTRIES, wanted)
        return
    is_same = spec(live) == spec(wanted) and annotations(wanted).items() <= annotations(live).items()
    is_there = not restores or await _is_here(operation, live)
    if is_same and is_there and at(live, "status", "lastOperation", "state") == operations.SUCCEEDED:
        return
    requested = keys.OPERATION_RESTORE if restores else keys.OPERATION_RECONCILE
    notes = {**annotations(wanted), keys.OPERATION: requested}
    body = {"metadata": {"uid": uid(live), "annotations": notes}, "spec": spec(wanted)}
    await client.patch(BACKUP_ENTRIES, name, body)


async def _is_here(operation: ShootOperation, live: Object) -> bool:
    """Whether this Seed has the entry and its Secret; a recreated cluster of the Seed lacks the Secret."""
    client, namespace = operation.seed.client, operation.technical_id
    if text(at(live, "status", "seedName")) != _own_seed(operation):
        return False
    return await client.find(SECRETS, Key(namespace, etcd.BACKUP_SECRET)) is not None


async def _wait(operation: ShootOperation, name: Callable[[Object], str]) -> None:
    """Wait until a BackupEntry has been reconciled.

    Raises:
        NotInTimeError: the wait timed out.
    """
    place = Key(operation.name.namespace, name(operation.shoot))
    await operation.garden_waiting.until_ready(BACKUP_ENTRIES, place, _unready, seconds=_SECONDS, report=waits_for)


def _unready(entry: Object | None) -> str:
    if entry is None:
        return "it does not exist"
    observed, generation = integer(at(entry, "status", "observedGeneration")), integer(metadata(entry)["generation"])
    if observed != generation:
        return f"observed generation outdated ({observed}/{generation})"
    if requested := annotations(entry).get(keys.OPERATION):
        return f'gardener operation "{requested}" has not finished yet'
    last = mapping(at(entry, "status", "lastOperation"))
    if last.get("state") != operations.SUCCEEDED:
        return text(at(entry, "status", "lastError", "description")) or f"its state is {last.get('state')}"
    return ""


# --- backups in the bucket of the previous Seed


async def source_entry(operation: ShootOperation) -> None:
    """Create or take over the source entry, which refers to the previous bucket.

    Raises: ReconcileError, NotInTimeError, KubeError.
    """
    garden, shoot = operation.garden.client, operation.shoot
    source = await _source(garden, shoot)
    if source is not None and is_deleting(source):
        await _until_source_is_gone(operation, source)
        source = None
    own = await garden.get(BACKUP_ENTRIES, Key(operation.name.namespace, shoot_backup_entry.name(shoot)))
    bucket = text(spec(own).get("bucketName"))
    if bucket == uid(operation.seed_object):
        if source is None:
            raise ReconcileError(f"the previous bucket of BackupEntry {key(own)} is unknown")
        bucket = text(spec(source).get("bucketName"))
    wanted = shoot_backup_entry.source(shoot, bucket=bucket, seed=_own_seed(operation))
    await _have(operation, wanted)


async def copy(operation: ShootOperation) -> None:
    """Start copying backups, replacing a failed or outdated task.

    Raises:
        NotInTimeError: the previous task was not deleted in time.
    """
    garden, shoot = operation.garden.client, operation.shoot
    source = await garden.get(BACKUP_ENTRIES, Key(operation.name.namespace, shoot_backup_entry.source_name(shoot)))
    from_bucket = text(spec(source).get("bucketName"))
    bucket = await garden.get(BACKUP_BUCKETS, from_bucket)
    values = Values(
        namespace=operation.technical_id,
        shoot=operation.name.name,
        entry=shoot_backup_entry.name(shoot),
        from_bucket=from_bucket,
        from_provider=text(at(spec(bucket), "provider", "type")),
        to_bucket=uid(operation.seed_object),
        to_provider=text(at(spec(operation.seed_object), "backup", "provider")),
    )
    wanted, client = task(values), operation.seed.client
    place = key(wanted)
    live = await client.find(ETCD_COPY_BACKUPS_TASKS, place)
    if live is not None and (is_deleting(live) or spec(live) != spec(wanted) or _has_failed(live)):
        await destroy_copy(operation)
        live = None
    if live is None:
        await client.create(ETCD_COPY_BACKUPS_TASKS, wanted)


def _has_failed(live: Object) -> bool:
    return any(
        each.get("type") == "Failed" and each.get("status") == "True" for each in at(live, "status", "conditions") or []
    )


async def wait_for_copy(operation: ShootOperation) -> None:
    """Wait until the backups are copied.

    Raises:
        NotInTimeError: the wait timed out.
        ReconcileError: the copy failed.
    """
    await operation.waiting.until_ready(
        ETCD_COPY_BACKUPS_TASKS, _copy(operation), unfinished, seconds=_COPY_SECONDS, report=waits_for
    )


async def destroy_copy(operation: ShootOperation) -> None:
    """Delete the copy task, and wait until it is gone.

    Raises:
        NotInTimeError: the wait timed out.
    """
    place = _copy(operation)
    live = await operation.waiting.find(ETCD_COPY_BACKUPS_TASKS, place)
    if live is None:
        return
    await _confirm_and_delete(operation.seed.client, ETCD_COPY_BACKUPS_TASKS, live)
    await operation.waiting.until_gone(
        ETCD_COPY_BACKUPS_TASKS, place, seconds=_GONE_SECONDS, expected_uid=uid(live), report=waits_for
    )


def _copy(operation: ShootOperation) -> Key:
    return Key(operation.technical_id, operation.name.name)


async def destroy_source_entry(operation: ShootOperation) -> None:
    """Delete the source entry with the backups in the previous bucket, once etcd runs with the copy.

    A bucket may keep its objects for a time. The Shoot does not wait for that: the controller of BackupEntries
    completes the deletion.

    Raises: KubeError.
    """
    source = await _source(operation.garden.client, operation.shoot)
    if source is None:
        return
    await _confirm_and_delete(operation.garden.client, BACKUP_ENTRIES, source)
    with suppress(NotInTimeError):
        await _until_source_is_gone(operation, source, seconds=_SOURCE_SECONDS)
    secret = f"source-{etcd.BACKUP_SECRET}"
    await operation.seed.client.delete_if_exists(SECRETS, Key(operation.technical_id, secret))


async def _until_source_is_gone(operation: ShootOperation, source: Object, *, seconds: float = _SECONDS) -> None:
    await operation.garden_waiting.until_gone(
        BACKUP_ENTRIES, key(source), seconds=seconds, expected_uid=uid(source), report=waits_for
    )


async def _confirm_and_delete(client: Client, resource: Resource, live: Object) -> None:
    if is_deleting(live):
        return
    with suppress(NotFound):
        await client.annotate(resource, key(live), {keys.CONFIRM_DELETION: "true"}, uid=uid(live))
        await client.delete(resource, key(live), uid=uid(live))


# --- units

SOURCE_ENTRY = Unit(
    id="source-entry",
    title="source backup entry",
    deploy=source_entry,
    after=["namespace"],
    skips=no_copy,
    retry=ONCE,
    wait=Wait(
        "the source backup entry has been reconciled",
        partial(_wait, name=shoot_backup_entry.source_name),
        unless=no_waiting,
    ),
)
ENTRY = Unit(
    id="backup-entry",
    title="backup entry",
    deploy=entry,
    after=["namespace", "source-entry-ready"],
    skips=no_backup,
    retry=ONCE,
    wait=Wait("the backup entry has been reconciled", partial(_wait, name=shoot_backup_entry.name), unless=no_waiting),
)
COPY = Unit(
    id="copy",
    verb="Copying",
    title="etcd backups to new seed's backup bucket",
    deploy=copy,
    after=["secrets", "backup-entry-ready", "source-entry-ready"],
    skips=no_copy,
    retry=ONCE,
    wait=Wait("etcd backups are copied", wait_for_copy, id="copied"),
    destroy=destroy_copy,
    destroyed="copy etcd backups task resource",
)
SOURCE_ENTRY_GONE = Task(
    "source-entry-gone",
    "Destroying source backup entry",
    destroy_source_entry,
    after=["etcd-ready"],
    unless=any_of(not_restored, no_backup),
    retry=ONCE,
)
