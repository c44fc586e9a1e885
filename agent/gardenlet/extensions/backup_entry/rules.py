"""Rules for BackupEntries: the operation, the desired extension object, and the retention."""

from datetime import datetime, timedelta

from config.gardenlet.controllers import BackupEntry as Settings
from gardener import keys, operations
from gardener.extension_contract import Trouble, has_succeeded, last_error, last_operation
from gardener.garden.shoots import responsible_seed
from kube.clock import parse_time
from kube.objects import (
    Key,
    Object,
    annotations,
    integer,
    is_truthy,
    key,
    mapping,
    mappings,
    metadata,
    spec,
    text,
    texts,
)
from kube.paths import at

SOURCE_PREFIX = "source-"
"""Prefix of entries that hold the source backups while a Shoot moves."""
_NAMESPACE = "garden"


def technical_id(entry: str) -> str:
    """Technical ID of the Shoot after which an entry is named."""
    return entry.removeprefix(SOURCE_PREFIX).rpartition("--")[0]


def is_source(entry: Object) -> bool:
    return key(entry).name.startswith(SOURCE_PREFIX)


def operation_on(entry: Object, *, seed: str) -> str:
    """Operation that the gardenlet of the Seed has to run; empty if none.

    A cancelled migration is a restoration on the Seed that still has the backups. After a migration, the destination
    Seed waits until a restoration is requested.
    """
    if responsible_seed(entry) != seed:
        return ""
    if text(spec(entry).get("seedName")) != seed:
        return operations.MIGRATE
    operation, last = operations.operation_of(entry), last_operation(entry)
    if operation == operations.DELETE:
        return operation
    if operation == operations.MIGRATE:
        return operations.RESTORE
    has_left = (last.get("type"), last.get("state")) == (operations.MIGRATE, operations.SUCCEEDED)
    is_free = has_left and not text(at(entry, "status", "seedName"))
    return "" if is_free and operation != operations.RESTORE else operation


def has_left(entry: Object, *, seed: str) -> bool:
    """Whether neither spec nor status refers to the Seed any more."""
    return seed not in {text(spec(entry).get("seedName")), text(at(entry, "status", "seedName"))}


def has_answered(entry: Object, extension: Object, kind: str) -> bool:
    """Whether the extension has completed the requested operation.

    If a reconciliation of the entry is requested again while the extension is about to reconcile, the previous success
    is reported. The next response is reported when it arrives.
    """
    if has_succeeded(extension):
        return True
    is_asked_again = integer(at(entry, "status", "observedGeneration")) != operations.generation(entry)
    is_about_to = annotations(extension).get(keys.OPERATION) == keys.OPERATION_RECONCILE
    has_been_done = last_operation(extension).get("state") == operations.SUCCEEDED
    return kind == operations.RECONCILE and is_asked_again and is_about_to and has_been_done


def desired(entry: Object, bucket: Object, secret: str) -> Object:
    """Spec of the extension object."""
    config, status = spec(bucket).get("providerConfig"), at(bucket, "status", "providerStatus")
    optional = {"providerConfig": config, "backupBucketProviderStatus": status}
    return {
        "type": text(at(bucket, "spec", "provider", "type")),
        "region": text(at(bucket, "spec", "provider", "region")),
        "bucketName": text(spec(entry).get("bucketName")),
        "secretRef": {"name": secret, "namespace": _NAMESPACE},
    } | {name: value for name, value in optional.items() if value is not None}


def credentials_of(bucket: Object) -> Key:
    """Secret with the credentials for the bucket; generated ones for it alone take precedence."""
    generated = mapping(at(bucket, "status", "generatedSecretRef"))
    reference = generated or mapping(spec(bucket).get("secretRef"))
    return Key(text(reference.get("namespace")), text(reference.get("name")))


def bucket_trouble(bucket: Object) -> Trouble | None:
    """Reason why the bucket of an entry can't be used; None if it can."""
    if error := last_error(bucket):
        reason = f"error during reconciliation of associated BackupBucket: {text(error.get('description'))}"
        return Trouble(reason, tuple(texts(error.get("codes"))))
    reason = _not_ready(bucket)
    return Trouble(reason) if reason else None


def _not_ready(bucket: Object) -> str:
    last = last_operation(bucket)
    observed, generation = integer(at(bucket, "status", "observedGeneration")), operations.generation(bucket)
    if observed != generation:
        return f"observed generation of associated BackupBucket outdated ({observed}/{generation})"
    if requested := annotations(bucket).get(keys.OPERATION):
        return f'gardener operation "{requested}" of associated BackupBucket is not yet picked up by controller'
    if not last:
        return "associated BackupBucket did not record a last operation yet"
    state = text(last.get("state"))
    return "" if state == operations.SUCCEEDED else f"associated BackupBucket state is not Succeeded but {state}"


def deletion_time(entry: Object, settings: Settings) -> datetime:
    """Time at which an entry with a deletionTimestamp is deleted. Entries of copies have no grace period."""
    deleted = parse_time(text(metadata(entry).get("deletionTimestamp")))
    purpose, purposes = annotations(entry).get(keys.SHOOT_PURPOSE), settings.deletion_grace_period_shoot_purposes
    is_forced = is_truthy(annotations(entry).get(keys.FORCE_ENTRY_DELETION))
    is_kept = not purposes or purpose is None or purpose in purposes
    if is_forced or is_source(entry) or not is_kept:
        return deleted
    return deleted + timedelta(hours=max(settings.deletion_grace_period_hours, 0))


def scheduled(moment: datetime) -> str:
    """Status message of a deferred deletion; the time in the format of Go."""
    return f"Deletion of backup entry is scheduled for {moment:%Y-%m-%d %H:%M:%S %z} UTC"


def shoot_of(entry: Object) -> str:
    """Name of the Shoot that owns the entry; empty if none does."""
    owners = mappings(metadata(entry).get("ownerReferences"))
    return next((text(each.get("name")) for each in owners if each.get("kind") == "Shoot"), "")
