from gardener.api.extensions import BACKUP_ENTRIES
from webhooks.handlers.extension_validation.kind import DefaultSpec, Kind, Resource, SecretReference
from webhooks.handlers.extension_validation.rules.typed import Raw


class BackupEntrySpec(DefaultSpec):
    backup_bucket_provider_status: Raw = None
    region: str = ""
    bucket_name: str = ""
    secret_ref: SecretReference = SecretReference()


class BackupEntry(Resource):
    spec: BackupEntrySpec = BackupEntrySpec()


BACKUP_ENTRY = Kind(
    typed=BackupEntry,
    resource=BACKUP_ENTRIES,
    noun="backup entry",
    required=("spec.type", "spec.bucketName", "spec.region", "spec.secretRef.name"),
    immutable=("spec.type",),
)
