"""One reconciliation of a BackupEntry.

As with buckets, credentials are copied, the extension object is written, and the response triggers the next pass.
Nothing is done before the bucket is ready. Entries of deleted Shoots are kept for a grace period. When a Shoot moves,
the source Seed migrates the extension object, and then the destination Seed is responsible.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from agent.gardenlet.common.extension_objects.kinds import BACKUP_ENTRY
from agent.gardenlet.common.extension_objects.mirroring import MirroredObjects, awaited, manifest
from agent.gardenlet.common.extension_objects.questions import Question
from agent.gardenlet.common.shoot_states.rules.contents import NOTHING, left_for
from agent.gardenlet.common.shoot_states.saving import saved
from agent.gardenlet.extensions.backup_entry import rules
from agent.gardenlet.extensions.backups import Credentials, OperationStatus, error_of
from config.gardenlet.controllers import BackupEntry as Settings
from gardener import operations
from gardener.api.garden import BACKUP_BUCKETS, BACKUP_ENTRIES
from gardener.extension_contract import (
    Answer,
    Pending,
    Trouble,
    is_migrated,
    last_error,
    last_operation,
    standing_of,
)
from gardener.keys import (
    GARDENER_FINALIZER,
    OPERATION,
    OPERATION_MIGRATE,
    OPERATION_RESTORE,
    OPERATION_WAIT_FOR_STATE,
    SEED_LABEL_PREFIX,
)
from kube.errors import Forbidden, KubeError, NotFound
from kube.objects import Key, Object, annotations, finalizers, is_deleting, key, labels, spec, string_map, text
from kube.resources import SECRETS
from kube.runtime.cache import Store
from kube.runtime.client import JSON_PATCH, Client
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result
from kube.runtime.events import EventRecorder
from kube.runtime.finalizers import ensure_finalizer, remove_finalizer

_GOES_SECONDS = 5.0
_OPERATION_PATH = f"/metadata/annotations/{OPERATION.replace('/', '~1')}"
_TEXTS = {
    operations.RESTORE: ("Restoration of BackupEntry state initialized.", "Restoration of BackupEntry succeeded."),
    operations.DELETE: ("Deletion of BackupEntry state initialized.", "Deletion of BackupEntry succeeded."),
    operations.MIGRATE: ("Migration of BackupEntry state initialized.", "Migration of BackupEntry succeeded."),
}
_OTHERS = ("Reconciliation of BackupEntry state initialized.", "Reconciliation of BackupEntry succeeded.")


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    garden: Client
    seed: Client
    extensions: MirroredObjects
    credentials: Credentials
    seed_name: str
    settings: Settings
    entries: Store[Object]
    buckets: Store[Object]
    status: OperationStatus
    recorder: EventRecorder
    clock: Callable[[], datetime]

    async def reconcile(self, name: Key) -> Result:
        entry = self.entries.get(name)
        kind = rules.operation_on(entry, seed=self.seed_name) if entry is not None else ""
        if entry is not None and rules.has_left(entry, seed=self.seed_name):
            await self._forget_seed(entry)
        if entry is None or not kind:
            self.extensions.forget(name)
            return Done()
        match kind:
            case operations.DELETE:
                return await self._delete(entry)
            case operations.MIGRATE:
                return await self._migrate(entry)
            case _:
                return await self._reconcile(entry, kind)

    async def _reconcile(self, entry: Object, kind: str) -> Result:
        started, succeeded = _TEXTS.get(kind, _OTHERS)
        entry = await ensure_finalizer(self.garden, BACKUP_ENTRIES, entry, GARDENER_FINALIZER)
        self.entries.observe(entry)
        bucket = await self._usable_bucket(entry, kind, event="ReconcileError")
        if bucket is None:
            return Done()
        secret = await self._credentials(bucket)
        place = _extension_name(entry)
        extension = await self._extension(place)
        wanted = manifest(place, rules.desired(entry, bucket, _copy_name(entry)))
        copy = await self.credentials.copy(_copy_name(entry), string_map(secret.get("data")), extension)
        standing = standing_of(extension) if extension is not None else Pending("it does not exist yet")
        if extension is not None and is_deleting(extension):
            await self.status.processing(entry, kind, started, seedName=self.seed_name)
            return RequeueAfter(_GOES_SECONDS)  # recreated by the next pass
        if kind == operations.RESTORE and not _is_being_restored(extension):
            entry = await self.status.processing(entry, kind, started, seedName=self.seed_name)
            await self._restore(entry, wanted, extension)
            return awaited(BACKUP_ENTRY)
        question = Question(
            kind=BACKUP_ENTRY, manifest=wanted, is_demanded=copy.is_written, data_changed=copy.timestamp
        )
        is_open = extension is None or question.is_open(extension)
        has_answered = rules.has_answered(entry, extension or {}, kind) and not is_open
        if isinstance(standing, Trouble):
            self.recorder.event(entry, "Warning", "ReconcileError", standing.reason)
        if not has_answered:
            await self._report(entry, kind, standing)
            return await self.extensions.request(key(entry), question, extension) if is_open else awaited(BACKUP_ENTRY)
        self.extensions.forget(key(entry))
        entry = await self.status.succeeded(entry, kind, succeeded, seedName=self.seed_name)
        await self._restored(entry)
        return Done()

    async def _extension(self, name: Key) -> Object | None:
        return await self.seed.find(BACKUP_ENTRY.resource, name)

    async def _report(self, entry: Object, kind: str, standing: Answer) -> None:
        if isinstance(standing, Trouble):
            await self.status.failed(entry, kind, standing.reason, error=error_of(standing))
        else:
            await self.status.processing(entry, kind, _TEXTS.get(kind, _OTHERS)[0], seedName=self.seed_name)

    # --- requirements of an entry

    async def _usable_bucket(self, entry: Object, kind: str, *, event: str) -> Object | None:
        """Return the bucket; None if it is unusable, and its next change triggers a pass.

        Raises:
            ReconcileError: it is unusable and belongs to another Seed, whose changes are not observed here.
        """
        name = text(spec(entry).get("bucketName"))
        bucket, is_seen = self.buckets.get(Key("", name)), True
        try:
            if bucket is None:
                bucket = await self.garden.get(BACKUP_BUCKETS, name)
                is_seen = text(spec(bucket).get("seedName")) == self.seed_name
            trouble = rules.bucket_trouble(bucket)
        except KubeError as error:
            trouble = Trouble(f'failed getting associated BackupBucket "{name}": {error}')
            is_seen = isinstance(error, NotFound)
        if trouble is None:
            return bucket
        self.recorder.event(entry, "Warning", event, trouble.reason)
        await self.status.failed(entry, kind, trouble.reason, error=error_of(trouble), seedName=self.seed_name)
        if not is_seen or rules.is_source(entry):
            raise ReconcileError(trouble.reason)
        return None

    async def _credentials(self, bucket: Object) -> Object:
        """Return the Secret with the credentials for the bucket.

        Raises:
            ReconcileError: it can't be read.
        """
        where = rules.credentials_of(bucket)
        try:
            return await self.garden.get(SECRETS, where)
        except KubeError as error:
            raise ReconcileError(f"could not get backup secret {where}: {error}") from error

    # --- restoration

    async def _restore(self, entry: Object, wanted: Object, extension: Object | None) -> None:
        """Restore the extension from the state that the source Seed saved; can be interrupted and repeated."""
        is_new = extension is None or annotations(extension).get(OPERATION) == OPERATION_WAIT_FOR_STATE
        left = left_for(await self._state(entry), {**BACKUP_ENTRY.resource.type_meta, **wanted}) if is_new else NOTHING
        namespace = rules.technical_id(key(entry).name)
        await self.extensions.restore(BACKUP_ENTRY, wanted, left, namespace=namespace, live=extension)

    async def _state(self, entry: Object) -> Object:
        """Return the `spec` of the ShootState.

        Raises:
            ReconcileError: there is no ShootState.
            KubeError: it can't be read.
        """
        shoot = Key(key(entry).namespace, rules.shoot_of(entry))
        if not shoot.name:
            return {}
        found = await saved(self.garden, shoot)
        if not found.parts:
            raise ReconcileError(f"ShootState {shoot}, from which BackupEntry {key(entry)} is restored, does not exist")
        return found.whole

    async def _restored(self, entry: Object) -> None:
        if annotations(entry).get(OPERATION) != OPERATION_RESTORE:
            return
        name = key(entry)
        patch = [
            {"op": "test", "path": _OPERATION_PATH, "value": OPERATION_RESTORE},
            {"op": "remove", "path": _OPERATION_PATH},
        ]
        self.entries.observe(await self.garden.patch(BACKUP_ENTRIES, name, patch, content_type=JSON_PATCH))

    # --- migration

    async def _migrate(self, entry: Object) -> Result:
        if GARDENER_FINALIZER not in finalizers(entry):
            return Done()
        started, succeeded = _TEXTS[operations.MIGRATE]
        place = _extension_name(entry)
        extension = await self._extension(place)
        if extension is None:
            await self.credentials.delete(_copy_name(entry))
            entry = await self.status.succeeded(entry, operations.MIGRATE, succeeded, seedName=None)
            await self._forget_seed(entry)
            return Done()
        last = last_operation(extension)
        if last.get("type") == operations.MIGRATE and last.get("state") in {operations.ERROR, operations.FAILED}:
            return await self._has_not_left(entry, extension)
        entry = await self.status.processing(entry, operations.MIGRATE, started)
        if not last:
            raise ReconcileError(f"extension BackupEntry {key(extension)} did not record a last operation yet")
        if is_migrated(extension):
            await self.extensions.delete(BACKUP_ENTRY, place, live=extension)
            return RequeueAfter(_GOES_SECONDS)
        if last.get("type") == operations.DELETE:
            if error := text(last_error(extension).get("description")):
                raise ReconcileError(error)
            return RequeueAfter(_GOES_SECONDS)
        is_asked = annotations(extension).get(OPERATION) == OPERATION_MIGRATE or last.get("type") == operations.MIGRATE
        if not is_asked:
            await self.extensions.migrate(BACKUP_ENTRY, place, live=extension)
        return awaited(BACKUP_ENTRY)

    async def _forget_seed(self, entry: Object) -> None:
        """Remove the label of this Seed, by which gardenlets select their entries; status writes don't change labels.

        The garden may refuse the write because the entry belongs to another Seed by now. Then the label goes with the
        next write of the program that moves the Shoot.
        """
        if (label := f"{SEED_LABEL_PREFIX}{self.seed_name}") in labels(entry):
            name = key(entry)
            body: Object = {"metadata": {"labels": {label: None}}}
            with suppress(Forbidden):
                await self.garden.patch(BACKUP_ENTRIES, name, body)

    async def _has_not_left(self, entry: Object, extension: Object) -> Result:
        standing = standing_of(extension)
        trouble = standing if isinstance(standing, Trouble) else Trouble("the migration has failed")
        self.recorder.event(entry, "Warning", "MigrateError", trouble.reason)
        await self.status.failed(entry, operations.MIGRATE, trouble.reason, error=error_of(trouble))
        if last_operation(extension).get("state") == operations.FAILED:
            raise ReconcileError(trouble.reason)
        return Done()

    # --- deletion

    async def _delete(self, entry: Object) -> Result:
        if GARDENER_FINALIZER not in finalizers(entry):
            return Done()
        due = rules.deletion_time(entry, self.settings)
        if (left := (due - self.clock()).total_seconds()) > 0:
            await self.status.pending(entry, operations.DELETE, rules.scheduled(due))
            return RequeueAfter(left)
        started, succeeded = _TEXTS[operations.DELETE]
        bucket = await self._usable_bucket(entry, operations.DELETE, event="DeleteError")
        if bucket is None:
            return Done()
        place = _extension_name(entry)
        extension = await self._extension(place)
        if extension is not None:
            await self.credentials.refresh(entry, rules.credentials_of(bucket), _copy_name(entry))
            await self.extensions.delete(BACKUP_ENTRY, place, live=extension)
            extension = await self._extension(place)
        if extension is not None and (error := last_error(extension)):
            reported = text(error.get("description"))
            self.recorder.event(entry, "Warning", "DeleteError", reported)
            await self.status.failed(entry, operations.DELETE, reported, error=error)
            raise ReconcileError(reported)
        if extension is not None:
            await self.status.processing(entry, operations.DELETE, started)
            return RequeueAfter(_GOES_SECONDS)
        await self.credentials.delete(_copy_name(entry))
        entry = await self.status.succeeded(entry, operations.DELETE, succeeded)
        await remove_finalizer(self.garden, BACKUP_ENTRIES, entry, GARDENER_FINALIZER)
        return Done()


def _copy_name(entry: Object) -> str:
    return f"entry-{key(entry).name}"


def _extension_name(entry: Object) -> Key:
    return Key("", key(entry).name)


def _is_being_restored(extension: Object | None) -> bool:
    """Whether a restoration is the latest operation requested from the extension."""
    if extension is None:
        return False
    requested = annotations(extension).get(OPERATION)
    return requested == OPERATION_RESTORE or (
        not requested and last_operation(extension).get("type") == operations.RESTORE
    )
