"""What becomes of a set that is to have fewer replicas: such as are in use stay, others go one by one."""

from collections.abc import Iterator

from gardener import keys
from gardener.api.garden import MANAGED_SEEDS, SHOOTS
from kube.objects import Object, annotations, controller_of, integer, metadata, text, uid
from webhooks.garden.common.references import shoots_on
from webhooks.garden.common.write import Write

_MOST_NAMED = 10


def replicas_that_stay(write: Write) -> Iterator[str]:
    """For `warnings`; reads `SHOOTS`, `MANAGED_SEEDS`. The number may be meant all the same: so it is not refused."""
    wanted, before = integer(write.spec.get("replicas")), integer(write.old_spec.get("replicas"))
    if not write.is_update or wanted >= before:
        return
    staying = sorted(name for name, managed_seed in _replicas(write) if _stays(write, name, managed_seed))
    if len(staying) > wanted:
        more = f" and {len(staying) - _MOST_NAMED} more" if len(staying) > _MOST_NAMED else ""
        yield (
            f"{len(staying)} replicas stay as long as Shoots are on their Seeds, or they are protected:"
            f" {', '.join(staying[:_MOST_NAMED])}{more}"
        )


def _replicas(write: Write) -> Iterator[tuple[str, Object]]:
    for managed_seed in write.garden.list(MANAGED_SEEDS, write.namespace):
        if (controller_of(managed_seed) or {}).get("uid") == uid(write.new):
            yield text(metadata(managed_seed).get("name")), managed_seed


def _stays(write: Write, name: str, managed_seed: Object) -> bool:
    own = (managed_seed, write.garden.get(SHOOTS, name, write.namespace) or {})
    is_protected = any(annotations(each).get(keys.PROTECT_FROM_DELETION) == "true" for each in own)
    return is_protected or bool(shoots_on(write.garden, name))
