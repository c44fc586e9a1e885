"""BackupBuckets: storage for backups of etcds."""

from collections.abc import Iterator

from gardener import keys
from gardener.api.garden import BACKUP_ENTRIES, CONTROLLER_REGISTRATIONS, SEEDS
from gardener.api.garden.backup_bucket import BACKUP_BUCKET as DEFINITION
from gardener.garden import users
from gardener.garden.seed_graph import of_backup_bucket
from kube.objects import Key, key, mapping, text
from kube.resources import SECRETS
from webhooks.garden.common import operations
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.extensions import PROVIDER, set_extension_labels, unregistered
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.references import exists
from webhooks.garden.common.seed_references import reading_rights
from webhooks.garden.common.write import Write


def provider(write: Write) -> str:
    return text(mapping(write.spec.get("provider")).get("type"))


def label(write: Write) -> None:
    set_extension_labels(write.new, [PROVIDER + provider(write)])


def references(write: Write) -> Iterator[Finding]:
    """The Seed and the credentials exist, the provider is registered."""
    yield from exists(write.garden, "spec.seedName", SEEDS, text(write.spec.get("seedName")))
    secret = mapping(write.spec.get("secretRef"))
    name, namespace = text(secret.get("name")), text(secret.get("namespace"))
    yield from exists(write.garden, "spec.secretRef", SECRETS, name, namespace)
    need = ("BackupBucket", provider(write), "provider type", "spec.provider.type")
    yield from unregistered(write.garden, DEFINITION.resource.kind, [need])


def unused(write: Write) -> Iterator[Finding]:
    entries = write.garden.by(BACKUP_ENTRIES, users.backup_buckets, Key("", write.name))
    names = ", ".join(str(key(entry)) for entry in entries)
    if names:
        reason = "BackupEntries are still referencing it"
        yield Denial(f"cannot delete BackupBucket because {reason}, backupEntryNames: {names}")


BACKUP_BUCKET = Kind(
    definition=DEFINITION,
    mutations=(label,),
    asks=operations.on(consumed=(keys.OPERATION_RECONCILE,)),
    references=(references,),
    rights=(reading_rights(of_backup_bucket, "spec"),),
    deletions=(unused,),
    reads=(SEEDS, SECRETS, CONTROLLER_REGISTRATIONS, BACKUP_ENTRIES),
)
