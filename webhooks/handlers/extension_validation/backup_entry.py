from collections.abc import Iterator

from kube.validation import FieldError
from webhooks.handlers.extension_validation.rules import DefaultSpec, Kind, Resource, SecretReference, immutable, need
from webhooks.handlers.extension_validation.typed import Raw


class BackupEntrySpec(DefaultSpec):
    backup_bucket_provider_status: Raw = None
    region: str = ""
    bucket_name: str = ""
    secret_ref: SecretReference = SecretReference()


class BackupEntry(Resource):
    spec: BackupEntrySpec = BackupEntrySpec()


def _errors(entry: BackupEntry) -> Iterator[FieldError]:
    yield from need("spec.type", entry.spec.type)
    yield from need("spec.bucketName", entry.spec.bucket_name)
    yield from need("spec.region", entry.spec.region)
    yield from need("spec.secretRef.name", entry.spec.secret_ref.name)


def _changes(new: BackupEntry, old: BackupEntry) -> Iterator[FieldError]:
    yield from immutable("spec.type", new.spec.type, old.spec.type)


BACKUP_ENTRY = Kind(
    typed=BackupEntry,
    resource="backupentries",
    noun="backup entry",
    errors=_errors,
    changes=_changes,
    namespaced=False,
)
