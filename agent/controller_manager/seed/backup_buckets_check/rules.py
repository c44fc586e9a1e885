"""What the BackupBuckets of a Seed say about it."""

from collections.abc import Sequence

from gardener.conditions import BACKUP_BUCKETS_READY
from kube.conditions import Condition
from kube.objects import Object, metadata, spec, text
from kube.paths import at


def condition_of(buckets: Sequence[Object]) -> Condition:
    erroneous = [bucket for bucket in buckets if error_of(bucket) is not None]
    if erroneous:
        lines = "".join(f"\n* Name: {metadata(each).get('name')}, Error: {error_of(each)}" for each in erroneous)
        message = f"The following BackupBuckets have issues:{lines}"
        return Condition(BACKUP_BUCKETS_READY, "False", "BackupBucketsError", message)
    if not buckets:
        return Condition(BACKUP_BUCKETS_READY, "Unknown", "BackupBucketsGone", "Backup Buckets are gone.")
    return Condition(BACKUP_BUCKETS_READY, "True", "BackupBucketsAvailable", "Backup Buckets are available.")


def error_of(bucket: Object) -> str | None:
    """What went wrong with it last; None: nothing."""
    error = at(bucket, "status", "lastError")
    return text(error.get("description")) if isinstance(error, dict) else None


def seed_of(bucket: Object) -> str:
    return text(spec(bucket).get("seedName"))
