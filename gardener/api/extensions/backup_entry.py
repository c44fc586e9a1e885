"""BackupEntry: the backups of one Shoot in a bucket."""

from gardener.api.definition import Column
from gardener.api.extensions import BACKUP_ENTRIES
from gardener.api.extensions.common import REGION_COLUMN, definition, secret_reference
from gardener.api.schema import raw, string

BACKUP_ENTRY = definition(
    BACKUP_ENTRIES,
    "The part of a bucket with the backups of one Shoot, whose technical ID and uid are its name.",
    spec={
        "backupBucketProviderStatus": raw("`status.providerStatus` of the BackupBucket."),
        "region*": string("Region of the bucket.", at_least=1),
        "bucketName*": string("Name of the bucket.", at_least=1),
        "secretRef*": secret_reference("Secret with the credentials for the bucket."),
    },
    columns=(REGION_COLUMN, Column("Bucket", ".spec.bucketName")),
)
"""The bucket is mutable: it changes when a Shoot is restored, which rules of a schema can't detect."""
