"""The BackupEntry of a Shoot, in the garden: its own controller does the work."""

from agent.gardenlet.components import shoot_backup_entry
from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.shoot.main.operation import ShootOperation
from gardener import keys, operations
from gardener.api.garden import BACKUP_ENTRIES
from kube.objects import Key, Object, annotations, integer, key, mapping, metadata, spec, text, uid
from kube.paths import at

_SECONDS = 600.0


async def entry(operation: ShootOperation) -> None:
    """Raises KubeError."""
    wanted = shoot_backup_entry.entry(
        operation.shoot, bucket=uid(operation.seed_object), seed=text(spec(operation.shoot).get("seedName"))
    )
    client, name = operation.garden.client, key(wanted)
    live = await client.find(BACKUP_ENTRIES, name.name, namespace=name.namespace)
    if live is None:
        await client.create(BACKUP_ENTRIES, wanted)
        return
    is_same = spec(live) == spec(wanted) and annotations(wanted).items() <= annotations(live).items()
    if not is_same or at(live, "status", "lastOperation", "state") != operations.SUCCEEDED:
        notes = {**annotations(wanted), keys.OPERATION: keys.OPERATION_RECONCILE}
        body = {"metadata": {"uid": uid(live), "annotations": notes}, "spec": spec(wanted)}
        await client.patch(BACKUP_ENTRIES, name.name, body, namespace=name.namespace)


async def wait_for_entry(operation: ShootOperation) -> None:
    """Raises NotInTimeError, KubeError."""
    name = Key(operation.name.namespace, shoot_backup_entry.name(operation.shoot))
    await operation.garden_waiting.until_ready(BACKUP_ENTRIES, name, _unready, seconds=_SECONDS, report=waits_for)


def _unready(entry: Object | None) -> str:
    if entry is None:
        return "it does not exist"
    observed, generation = integer(at(entry, "status", "observedGeneration")), integer(metadata(entry)["generation"])
    if observed != generation:
        return f"observed generation outdated ({observed}/{generation})"
    last = mapping(at(entry, "status", "lastOperation"))
    if last.get("state") != operations.SUCCEEDED:
        return text(at(entry, "status", "lastError", "description")) or f"its state is {last.get('state')}"
    return ""
