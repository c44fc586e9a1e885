"""The BackupBucket of a Seed: reconciled with each reconciliation of the Seed, and so are its entries."""

from typing import Any

from gardener import keys
from gardener.api.garden import BACKUP_BUCKETS, SEEDS
from kube.errors import AlreadyExists, Conflict, NotFound
from kube.objects import Object, annotations, is_deleting, key, mapping, metadata, spec, text, uid
from kube.paths import at
from kube.runtime.client import Client
from kube.runtime.controller import ReconcileError
from kube.runtime.polling import wait_while

_ATTEMPTS = 3
_GONE_SECONDS = 600.0
_LOOK_SECONDS = 5.0


def desired(seed: Object) -> Object | None:
    """Return the desired BackupBucket; None if the Seed has no backups."""
    backup = mapping(at(seed, "spec", "backup"))
    if not backup:
        return None
    name = key(seed).name
    owner = {**SEEDS.reference(name=name, uid=uid(seed)), "controller": True, "blockOwnerDeletion": True}
    wanted: dict[str, Any] = {
        "provider": {
            "type": text(backup.get("provider")),
            "region": text(backup.get("region")) or text(at(seed, "spec", "provider", "region")),
        },
        "secretRef": {field: text(at(backup, "secretRef", field)) for field in ("name", "namespace")},
        "seedName": name,
    }
    if "providerConfig" in backup:
        wanted["providerConfig"] = backup["providerConfig"]
    meta = {
        "name": uid(seed),
        "ownerReferences": [owner],
        "annotations": {keys.OPERATION: keys.OPERATION_RECONCILE},
    }
    return {**BACKUP_BUCKETS.type_meta, "metadata": meta, "spec": wanted}


def updated(live: Object, wanted: Object) -> Object:
    """Merge the desired fields into the live object; other fields stay."""
    meta = {**metadata(live), "ownerReferences": metadata(wanted)["ownerReferences"]}
    meta["annotations"] = {**annotations(live), **annotations(wanted)}
    kept = {name: value for name, value in spec(live).items() if name != "providerConfig"}
    return {**live, "metadata": meta, "spec": {**kept, **spec(wanted)}}


async def deploy(client: Client, seed: Object) -> None:
    """Write the BackupBucket."""
    wanted = desired(seed)
    if wanted is None:
        return
    for attempt in range(1, _ATTEMPTS + 1):
        live = await client.find(BACKUP_BUCKETS, key(wanted).name)
        try:
            if live is None:
                await client.create(BACKUP_BUCKETS, wanted)
            else:
                await client.replace(BACKUP_BUCKETS, updated(live, wanted))
        except (AlreadyExists, Conflict, NotFound):
            if attempt == _ATTEMPTS:
                raise
        else:
            return


async def destroy(client: Client, seed: Object) -> None:
    """Delete the BackupBucket, and wait until it is gone.

    Raises:
        ReconcileError: it is not gone in time.
    """
    name = uid(seed)

    async def problem() -> str:
        live = await client.find(BACKUP_BUCKETS, name)
        if live is not None and not is_deleting(live):
            await client.delete(BACKUP_BUCKETS, name, uid=uid(live))
            live = await client.find(BACKUP_BUCKETS, name)
        return "" if live is None else text(at(live, "status", "lastError", "description")) or "it reports no error"

    if left := await wait_while(problem, seconds=_GONE_SECONDS, every=_LOOK_SECONDS):
        raise ReconcileError(f"BackupBucket {name} still exists after {_GONE_SECONDS:g} s: {left}")
