"""BackupEntries: backups of a Shoot."""

from collections.abc import Iterator

from gardener.api.garden import BACKUP_BUCKETS, CONTROLLER_REGISTRATIONS, SEEDS
from gardener.api.garden.backup_entry import BACKUP_ENTRY as DEFINITION
from kube.objects import mapping, spec, text
from webhooks.garden.common import operations
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.extensions import PROVIDER, set_extension_labels, unregistered
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.metadata import seed_labels
from webhooks.garden.common.references import exists
from webhooks.garden.common.write import Write


def provider(write: Write) -> str:
    """Provider of its bucket; empty if there is no bucket yet."""
    bucket = write.garden.need(BACKUP_BUCKETS, text(write.spec.get("bucketName")))
    return "" if bucket is None else text(mapping(spec(bucket).get("provider")).get("type"))


def label(write: Write) -> None:
    set_extension_labels(write.new, [PROVIDER + found] if (found := provider(write)) else [])


def references(write: Write) -> Iterator[Finding]:
    """The BackupBucket and the Seed exist, the provider is registered."""
    yield from exists(write.garden, "spec.bucketName", BACKUP_BUCKETS, text(write.spec.get("bucketName")))
    yield from exists(write.garden, "spec.seedName", SEEDS, text(write.spec.get("seedName")))
    need = ("BackupEntry", provider(write), "provider type", "spec.bucketName")
    yield from unregistered(write.garden, DEFINITION.resource.kind, [need])


BACKUP_ENTRY = Kind(
    definition=DEFINITION,
    mutations=(label, seed_labels(("spec", "seedName"), ("status", "seedName"))),
    asks=operations.backup_entry,
    references=(references,),
    reads=(BACKUP_BUCKETS, SEEDS, CONTROLLER_REGISTRATIONS),
)
