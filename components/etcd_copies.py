"""The task that copies the backups of a Shoot's etcd from the bucket of one Seed to that of another."""

from dataclasses import dataclass

from components import etcd
from components.parts import made
from gardener.api.druid import ETCD_COPY_BACKUPS_TASKS
from kube.objects import Object, condition, integer, metadata, text
from kube.paths import at


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Attributes:
    namespace: of the Shoot in the seed.
    shoot: its name.
    entry: name of its BackupEntry, the prefix of the backups in both buckets.
    """

    namespace: str
    shoot: str
    entry: str
    from_bucket: str
    from_provider: str
    to_bucket: str
    to_provider: str


def task(values: Values) -> Object:
    prefix = f"{values.entry}/{etcd.name(etcd.MAIN)}"

    def store(bucket: str, provider: str, secret: str) -> Object:
        return {"container": bucket, "prefix": prefix, "provider": provider, "secretRef": {"name": secret}}

    stores = {
        "sourceStore": store(values.from_bucket, values.from_provider, f"source-{etcd.BACKUP_SECRET}"),
        "targetStore": store(values.to_bucket, values.to_provider, etcd.BACKUP_SECRET),
    }
    return made(ETCD_COPY_BACKUPS_TASKS, values.shoot, namespace=values.namespace, spec=stores)


def unfinished(live: Object | None) -> str:
    """Reason for waiting until all is copied; empty if there is none."""
    if live is None:
        return "it does not exist"
    observed, generation = integer(at(live, "status", "observedGeneration")), integer(metadata(live).get("generation"))
    if observed != generation:
        return f"observed generation outdated ({observed}/{generation})"
    if (condition(live, "Succeeded") or {}).get("status") == "True":
        return ""
    failed = condition(live, "Failed") or {}
    if failed.get("status") == "True":
        return f"it has failed: {text(failed.get('message'))}"
    return text(at(live, "status", "lastError")) or "the backups are not copied yet"
