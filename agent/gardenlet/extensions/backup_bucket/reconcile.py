"""One reconciliation of a BackupBucket.

The Secret with the credentials is copied into the seed, and the extension object is written with the desired bucket.
Then the pass ends: the response of the extension triggers the next one, which reports it.

Deletion is the reverse: first the extension object, with current credentials, and the Secrets of its extension only
when the API server no longer has the extension object.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agent.gardenlet.common.extension_objects.kinds import BACKUP_BUCKET
from agent.gardenlet.common.extension_objects.mirroring import MirroredObjects, awaited, manifest
from agent.gardenlet.common.extension_objects.questions import Question
from agent.gardenlet.common.views import BY_BUCKET
from agent.gardenlet.extensions.backups import NAMESPACE, Credentials, OperationStatus, error_of
from gardener import operations
from gardener.api.garden import BACKUP_BUCKETS, SEEDS
from gardener.extension_contract import (
    Answer,
    Pending,
    Trouble,
    has_succeeded,
    last_error,
    standing_of,
    trouble_of,
)
from gardener.keys import CREDENTIALS_FINALIZER, GARDENER_FINALIZER, GENERATED_SECRET_FINALIZER
from kube.errors import Forbidden, KubeError
from kube.objects import (
    Key,
    Object,
    finalizers,
    is_deleting,
    key,
    mapping,
    mappings,
    metadata,
    spec,
    string_map,
    text,
    uid,
)
from kube.paths import at
from kube.resources import SECRETS
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result
from kube.runtime.events import EventRecorder
from kube.runtime.finalizers import ensure_finalizer, remove_finalizer

_GOES_SECONDS = 5.0
_USED_SECONDS = 60.0
_NAMED = 10
_STARTED = "Reconciliation of BackupBucket state initialized."
_SUCCEEDED = "Backup Bucket has been successfully reconciled."
_DELETING = "Deletion of BackupBucket state initialized."
_DELETED = "Backup Bucket has been successfully deleted."


def desired(bucket: Object, secret: str) -> Object:
    """Spec of the extension object."""
    wanted = spec(bucket)
    config = wanted.get("providerConfig")
    return {
        "type": text(at(wanted, "provider", "type")),
        "region": text(at(wanted, "provider", "region")),
        "secretRef": {"name": secret, "namespace": NAMESPACE},
    } | ({"providerConfig": config} if config is not None else {})


def secret_of(bucket: Object) -> Key:
    """Secret with the credentials of a bucket."""
    return _secret(spec(bucket))


def _secret(holder: object) -> Key:
    reference = mapping(mapping(holder).get("secretRef"))
    return Key(text(reference.get("namespace")), text(reference.get("name")))


def generated_name(name: Key) -> Key:
    """Secret in the garden with the credentials for this bucket alone."""
    return Key(NAMESPACE, f"generated-bucket-{name.name}")


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    garden: Client
    seed: Client
    extensions: MirroredObjects
    credentials: Credentials
    buckets: Store[Object]
    entries: Store[Object]
    status: OperationStatus
    recorder: EventRecorder
    clock: Callable[[], datetime]

    async def reconcile(self, name: Key) -> Result:
        bucket = self.buckets.get(name)
        if bucket is None:
            self.extensions.forget(name)
            return Done()
        return await (self._delete(bucket) if is_deleting(bucket) else self._reconcile(bucket))

    async def _reconcile(self, bucket: Object) -> Result:
        name, kind = key(bucket), operations.operation_of(bucket)
        bucket = await ensure_finalizer(self.garden, BACKUP_BUCKETS, bucket, GARDENER_FINALIZER)
        self.buckets.observe(bucket)
        secret = await self._credentials(bucket, kind)
        extension = await self._extension(name)
        copy = await self.credentials.copy(_copy_name(name), string_map(secret.get("data")), extension)
        question = Question(
            kind=BACKUP_BUCKET,
            manifest=manifest(name, desired(bucket, _copy_name(name))),
            is_demanded=copy.is_written,
            data_changed=copy.timestamp,
        )
        if extension is not None and is_deleting(extension):
            await self.status.processing(bucket, kind, _STARTED)
            return RequeueAfter(_GOES_SECONDS)  # recreated by the next pass
        standing = standing_of(extension) if extension is not None else Pending("it does not exist yet")
        if isinstance(standing, Trouble):
            self.recorder.event(bucket, "Warning", "ReconcileError", standing.reason)
        if extension is None or question.is_open(extension):
            await self._report(bucket, kind, standing)
            return await self.extensions.request(name, question, extension)
        if not has_succeeded(extension):
            await self._report(bucket, kind, standing)
            return awaited(BACKUP_BUCKET)
        self.extensions.forget(name)
        await self._succeed(bucket, kind, extension)
        return Done()

    async def _extension(self, name: Key) -> Object | None:
        return await self.seed.find(BACKUP_BUCKET.resource, name)

    async def _credentials(self, bucket: Object, kind: str) -> Object:
        """Return the Secret with the credentials, protected by a finalizer as long as the bucket exists.

        Raises:
            ReconcileError: the Secret can't be read.
        """
        where = secret_of(bucket)
        try:
            secret = await self.garden.get(SECRETS, where)
        except KubeError as error:
            reason = f"Failed to get backup secret {where}: {error}"
            self.recorder.event(bucket, "Warning", "ReconcileError", reason)
            await self.status.failed(bucket, kind, reason, error={"description": reason})
            raise ReconcileError(reason) from error
        return await ensure_finalizer(self.garden, SECRETS, secret, CREDENTIALS_FINALIZER)

    async def _report(self, bucket: Object, kind: str, standing: Answer) -> None:
        if isinstance(standing, Trouble):
            await self.status.failed(bucket, kind, standing.reason, error=error_of(standing))
        else:
            await self.status.processing(bucket, kind, _STARTED)

    async def _succeed(self, bucket: Object, kind: str, extension: Object) -> None:
        """Report success; the reference to a generated Secret is written before the Secret, which shows its owner."""
        fields: Object = {"providerStatus": at(extension, "status", "providerStatus")}
        generated = mapping(at(extension, "status", "generatedSecretRef"))
        if generated:
            own, source = (
                generated_name(key(bucket)),
                Key(text(generated.get("namespace")), text(generated.get("name"))),
            )
            await self._refuse_foreign(bucket, kind, own, source)
            fields["generatedSecretRef"] = {"name": own.name, "namespace": own.namespace}
            if at(bucket, "status", "generatedSecretRef") != fields["generatedSecretRef"]:
                bucket = await self.status.processing(bucket, kind, _STARTED, **fields)
            await self._copy_generated(bucket, source)
        await self.status.succeeded(bucket, kind, _SUCCEEDED, **fields)

    async def _refuse_foreign(self, bucket: Object, kind: str, own: Key, source: Key) -> None:
        """Check that no other object owns the name of the generated Secret.

        Raises:
            ReconcileError: a Secret with another owner has this name.
        """
        live = await self.garden.find(SECRETS, own)
        if live is None or _is_made_for(bucket, live):
            return
        found = await self.seed.find(SECRETS, source)
        if found is not None and uid(found) == uid(live):
            return
        reason = (
            f"Secret {own} belongs to another object, but the generated credentials of this BackupBucket need "
            "its name; delete the Secret"
        )
        self.recorder.event(bucket, "Warning", "ReconcileError", reason)
        await self.status.failed(bucket, kind, reason, error={"description": reason})
        raise ReconcileError(reason)

    async def _copy_generated(self, bucket: Object, source: Key) -> None:
        """Copy a generated Secret from the seed to the garden.

        Raises:
            KubeError: it can't be read or written.
        """
        found = await self.seed.get(SECRETS, source)
        own = generated_name(key(bucket))
        live = await self.garden.find(SECRETS, own)
        if live is not None and uid(live) == uid(found):
            return  # Garden and seed are one cluster: this is the extension's Secret.
        owner = {**BACKUP_BUCKETS.reference(name=key(bucket).name, uid=uid(bucket)), "controller": True}
        meta = {
            "name": own.name,
            "namespace": own.namespace,
            "finalizers": [GENERATED_SECRET_FINALIZER],
            "ownerReferences": [{**owner, "blockOwnerDeletion": True}],
        }
        data = mapping(found.get("data"))
        if live is None:
            body = {**SECRETS.type_meta, "metadata": meta, "type": "Opaque", "data": data}
            await self.garden.create(SECRETS, body)
        elif mapping(live.get("data")) != data or GENERATED_SECRET_FINALIZER not in finalizers(live):
            merged = {**metadata(live), **meta, "finalizers": _with(finalizers(live), GENERATED_SECRET_FINALIZER)}
            await self.garden.replace(SECRETS, {**live, "metadata": merged, "data": data})

    # --- deletion

    async def _delete(self, bucket: Object) -> Result:
        name = key(bucket)
        if GARDENER_FINALIZER not in finalizers(bucket):
            return Done()
        if users := [str(each) for each in self.entries.keys_by_index(BY_BUCKET, name.name)]:
            message = f"BackupEntries still use the bucket: {', '.join(sorted(users)[:_NAMED])}"
            self.recorder.event(bucket, "Warning", "ResourceReferenced", message)
            return RequeueAfter(_USED_SECONDS)
        bucket = await self.status.processing(bucket, operations.DELETE, _DELETING)
        extension = await self._extension(name)
        if extension is not None:
            await self.credentials.refresh(bucket, secret_of(bucket), _copy_name(name))
            await self.extensions.delete(BACKUP_BUCKET, name, live=extension)
            extension = await self._extension(name)
        if extension is not None:
            return await self._wait_for(bucket, extension)
        await self._delete_secrets(bucket)
        await self.status.succeeded(bucket, operations.DELETE, _DELETED)
        await self._release(bucket)
        return Done()

    async def _wait_for(self, bucket: Object, extension: Object) -> Result:
        """Wait for the deletion of the extension object.

        Raises:
            ReconcileError: the extension reports an error.
        """
        if not last_error(extension):
            return RequeueAfter(_GOES_SECONDS)
        trouble = trouble_of(extension)
        assert trouble is not None
        reason = f"{trouble.reason} Operation will be retried."
        self.recorder.event(bucket, "Warning", "DeleteError", trouble.reason)
        await self.status.failed(bucket, operations.DELETE, reason, error=error_of(trouble))
        raise ReconcileError(trouble.reason)

    async def _delete_secrets(self, bucket: Object) -> None:
        """Delete the Secrets that the extension needed."""
        own = generated_name(key(bucket))
        live = await self.garden.find(SECRETS, own)
        if live is not None and _is_made_for(bucket, live):
            left = await remove_finalizer(self.garden, SECRETS, live, GENERATED_SECRET_FINALIZER)
            if left is not None:
                await self.garden.delete_if_exists(SECRETS, own, uid=uid(live))
        await self.credentials.delete(_copy_name(key(bucket)))

    async def _release(self, bucket: Object) -> None:
        """Release the BackupBucket, and the Secret with the credentials unless another bucket needs it."""
        name, where = key(bucket), secret_of(bucket)
        is_shared = where in await self._secrets_of_others(bucket)
        secret = await self.garden.find(SECRETS, where) if not is_shared else None
        if secret is not None:
            await remove_finalizer(self.garden, SECRETS, secret, CREDENTIALS_FINALIZER)
        await remove_finalizer(self.garden, BACKUP_BUCKETS, self.buckets.get(name) or bucket, GARDENER_FINALIZER)

    async def _secrets_of_others(self, bucket: Object) -> set[Key]:
        """Return the Secrets of all other buckets.

        Where a gardenlet may not read buckets of other Seeds, the Secrets in `spec.backup` of these Seeds count.

        Raises:
            KubeError: neither can be listed.
        """
        try:
            buckets: Sequence[Object] = await self.garden.list(BACKUP_BUCKETS)
            seeds: Sequence[Object] = ()
        except Forbidden:
            buckets, seeds = self.buckets.values(), await self.garden.list(SEEDS)
        name = key(bucket).name
        return {
            *(secret_of(each) for each in buckets if key(each).name != name),
            *(_secret(spec(each).get("backup")) for each in seeds if uid(each) != name),
        }


def _is_made_for(bucket: Object, secret: Object) -> bool:
    """Whether this gardenlet made the Secret for the bucket; after its finalizer is gone, the owner proves it."""
    owners = {each.get("uid") for each in mappings(metadata(secret).get("ownerReferences"))}
    return GENERATED_SECRET_FINALIZER in finalizers(secret) or uid(bucket) in owners


def _copy_name(name: Key) -> str:
    return f"bucket-{name.name}"


def _with(present: list[str], wanted: str) -> list[str]:
    return present if wanted in present else [*present, wanted]
