from gardener.api.extensions import BACKUP_BUCKETS
from webhooks.handlers.extension_validation.kind import DefaultSpec, Kind, Resource, SecretReference


class BackupBucketSpec(DefaultSpec):
    region: str = ""
    secret_ref: SecretReference = SecretReference()


class BackupBucket(Resource):
    spec: BackupBucketSpec = BackupBucketSpec()


BACKUP_BUCKET = Kind(
    typed=BackupBucket,
    resource=BACKUP_BUCKETS,
    noun="backup bucket",
    required=("spec.type", "spec.region", "spec.secretRef.name"),
    immutable=("spec.type", "spec.region"),
)
