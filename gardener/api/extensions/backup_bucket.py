"""BackupBucket: a bucket of an object store, for backups of etcd."""

from gardener.api.extensions import BACKUP_BUCKETS
from gardener.api.extensions.common import REGION_COLUMN, definition, region, secret_reference
from gardener.api.schema import immutable

BACKUP_BUCKET = definition(
    BACKUP_BUCKETS,
    "A bucket of an object store, for the backups of a Seed's Shoots.",
    spec={
        "region*": region("the bucket"),
        "secretRef*": secret_reference("Secret with the credentials for the object store."),
    },
    status={"generatedSecretRef": secret_reference("Secret with credentials for this bucket alone, if there is one.")},
    columns=(REGION_COLUMN,),
    rules=[immutable("region")],
)
