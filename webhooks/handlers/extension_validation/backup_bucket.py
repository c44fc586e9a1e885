from collections.abc import Iterator

from kube.validation import FieldError
from webhooks.handlers.extension_validation.rules import DefaultSpec, Kind, Resource, SecretReference, immutable, need


class BackupBucketSpec(DefaultSpec):
    region: str = ""
    secret_ref: SecretReference = SecretReference()


class BackupBucket(Resource):
    spec: BackupBucketSpec = BackupBucketSpec()


def _errors(bucket: BackupBucket) -> Iterator[FieldError]:
    yield from need("spec.type", bucket.spec.type)
    yield from need("spec.region", bucket.spec.region)
    yield from need("spec.secretRef.name", bucket.spec.secret_ref.name)


def _changes(new: BackupBucket, old: BackupBucket) -> Iterator[FieldError]:
    yield from immutable("spec.type", new.spec.type, old.spec.type)
    yield from immutable("spec.region", new.spec.region, old.spec.region)


BACKUP_BUCKET = Kind(
    typed=BackupBucket,
    resource="backupbuckets",
    noun="backup bucket",
    errors=_errors,
    changes=_changes,
    namespaced=False,
)
