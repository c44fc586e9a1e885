"""BackupEntry: the backups of a Shoot's etcd."""

from gardener.api.definition import AGE, Column, Definition
from gardener.api.garden import BACKUP_ENTRIES
from gardener.api.garden.common import LAST_ERROR, LAST_OPERATION, OBSERVED_GENERATION
from gardener.api.schema import name, string, struct, time

BACKUP_ENTRY = Definition(
    resource=BACKUP_ENTRIES,
    description="The part of a BackupBucket with the backups of one Shoot, whose technical ID and uid are its name.",
    fields={
        "spec*": struct(
            "Location of the backups.",
            {
                "bucketName*": name("Name of the BackupBucket that it is in."),
                "seedName": name("Seed that the Shoot is on."),
            },
        ),
        "status": struct(
            "State that gardenlet reports.",
            {
                "lastOperation": LAST_OPERATION,
                "lastError": LAST_ERROR,
                "observedGeneration": OBSERVED_GENERATION,
                "seedName": string(
                    "Seed that makes the backups now. Differs from the spec while the Shoot moves.", at_most=253
                ),
                "migrationStartTime": time("Time at which the migration to another Seed began."),
            },
        ),
    },
    has_operation=True,
    selectable=("spec.seedName", "spec.bucketName"),
    columns=(
        Column("Bucket", ".spec.bucketName"),
        Column("Seed", ".spec.seedName"),
        Column("Operation", ".status.lastOperation.state"),
        Column("Progress", ".status.lastOperation.progress", "integer", description="Percent."),
        AGE,
    ),
)
