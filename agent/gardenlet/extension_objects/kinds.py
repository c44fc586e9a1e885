"""The kinds, when they are asked, how long they may take, and when they are ready: pure."""

from collections.abc import Callable
from dataclasses import dataclass

from gardener.api import druid, extensions
from gardener.error_codes import codes_in
from gardener.extension_contract import Answer, Pending, Ready, Trouble, answer_of, observed_generation
from gardener.keys import OPERATION, TIMESTAMP
from kube.objects import Object, annotations, integer, is_deleting, mapping, mappings, metadata, spec, text
from kube.resources import Resource

_MINUTE = 60.0


def etcd_answer(etcd: Object, *, kicked: str = "") -> Answer:
    """What etcd-druid says. It notes no time, so its answer belongs to a generation, and to a kick that it took."""
    status, wanted = mapping(etcd.get("status")), integer(spec(etcd).get("replicas"))
    if is_deleting(etcd):
        return Pending("it is being deleted")
    if operation := annotations(etcd).get(OPERATION):
        return Pending(f'gardener operation "{operation}" is not yet picked up by controller')
    if kicked and annotations(etcd).get(TIMESTAMP) != kicked:
        return Pending("somebody else has asked for something since")
    if said := text(status.get("lastError")):
        return Trouble(said, tuple(codes_in(said)))
    generation, observed = integer(metadata(etcd).get("generation")), observed_generation(etcd)
    if observed != generation:
        return Pending(f"observed generation outdated ({observed}/{generation})")
    counts = {name: integer(status.get(f"{name}Replicas")) for name in ("ready", "current")}
    counts["updated"] = integer(status.get("updatedReplicas", status.get("currentReplicas")))
    if not wanted:
        left = max(integer(status.get("replicas")), counts["ready"], counts["current"])
        return Pending(f"{left} of its members are still there") if left else Ready()
    # `ready` of the status may be of an older generation.
    for name in ("updated", "ready"):
        if counts[name] != wanted:
            return Pending(f"{counts[name]} of {wanted} members are {name}")
    if wanted > 1:
        ready = [member for member in mappings(status.get("members")) if member.get("status") == "Ready"]
        if len(ready) < wanted:
            return Pending(f"{len(ready)} of {wanted} members report that they are ready")
    return Ready()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Durations are in seconds.

    Attributes:
        is_always_asked: also if it is unchanged and was answered.
        severe: how long an error is reported, without interruption, until it is final.
        longest: how long an answer, or a deletion, may take.
        answer: what the status says.
    """

    resource: Resource
    is_always_asked: bool = True
    severe: float = 30.0
    longest: float = 3 * _MINUTE
    answer: Callable[..., Answer] = answer_of


BACKUP_ENTRY = Kind(resource=extensions.BACKUP_ENTRIES, is_always_asked=False, longest=10 * _MINUTE)
CONTAINER_RUNTIME = Kind(resource=extensions.CONTAINER_RUNTIMES)
CONTROL_PLANE = Kind(resource=extensions.CONTROL_PLANES)
DNS_RECORD = Kind(resource=extensions.DNS_RECORDS, is_always_asked=False, severe=15.0, longest=2 * _MINUTE)
ETCD = Kind(resource=druid.ETCDS, severe=3 * _MINUTE, longest=5 * _MINUTE, answer=etcd_answer)
EXTENSION = Kind(resource=extensions.EXTENSIONS)
INFRASTRUCTURE = Kind(
    resource=extensions.INFRASTRUCTURES, is_always_asked=False, severe=3 * _MINUTE, longest=10 * _MINUTE
)
NETWORK = Kind(resource=extensions.NETWORKS)
OPERATING_SYSTEM_CONFIG = Kind(resource=extensions.OPERATING_SYSTEM_CONFIGS)
WORKER = Kind(resource=extensions.WORKERS, longest=10 * _MINUTE)
