"""BackupBucket: the backup store for the etcds of a Seed's Shoots."""

from gardener.api.definition import AGE, Column, Definition
from gardener.api.garden import BACKUP_BUCKETS
from gardener.api.garden.common import (
    DNS_LABEL,
    LAST_ERROR,
    LAST_OPERATION,
    OBSERVED_GENERATION,
    SECRET_REFERENCE,
    provider_type,
    secret_reference,
)
from gardener.api.schema import but, immutable, name, raw, string, struct

BACKUP_BUCKET = Definition(
    resource=BACKUP_BUCKETS,
    name=DNS_LABEL,
    description="A bucket of an object store with backups of etcd. gardenlet makes one for its Seed.",
    fields={
        "spec*": struct(
            "Desired bucket and credentials.",
            {
                "provider*": struct(
                    "The object store. Immutable.",
                    {
                        "type*": provider_type("Type of the object store."),
                        "region*": string("Region of the object store.", at_least=1, at_most=128),
                    },
                ),
                "providerConfig": raw("Settings that the provider's extension knows."),
                "secretRef*": secret_reference("Secret with its credentials."),
                "seedName*": name("Seed that the backups come from. Immutable."),
            },
            rules=[immutable("provider"), immutable("seedName")],
        ),
        "status": struct(
            "State that gardenlet reports.",
            {
                "providerStatus": raw("State that the provider's extension reports."),
                "lastOperation": LAST_OPERATION,
                "lastError": LAST_ERROR,
                "observedGeneration": OBSERVED_GENERATION,
                "generatedSecretRef": but(
                    SECRET_REFERENCE, "Secret with credentials for this bucket alone, if there is one."
                ),
            },
        ),
    },
    has_operation=True,
    selectable=("spec.seedName",),
    columns=(
        Column("Provider", ".spec.provider.type"),
        Column("Seed", ".spec.seedName"),
        Column("Operation", ".status.lastOperation.state"),
        Column("Progress", ".status.lastOperation.progress", "integer", description="Percent."),
        AGE,
    ),
)
