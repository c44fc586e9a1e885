"""The kinds, with their request policy, time limits and readiness: pure functions."""

from collections.abc import Callable
from dataclasses import dataclass

from gardener.api import druid, extensions
from gardener.error_codes import codes_in
from gardener.extension_contract import (
    Answer,
    Pending,
    Ready,
    Trouble,
    answer_of,
    needs_kick,
    needs_repeated_kick,
    observed_generation,
)
from gardener.keys import OPERATION, TIMESTAMP
from kube.objects import Object, annotations, integer, is_deleting, mapping, mappings, metadata, spec, text
from kube.resources import Resource

_MINUTE = 60.0


def etcd_answer(etcd: Object, *, kicked: str = "") -> Answer:
    """Response of etcd-druid. It has no timestamp, so it belongs to a generation, and to the kick that it removed."""
    status, wanted = mapping(etcd.get("status")), integer(spec(etcd).get("replicas"))
    if is_deleting(etcd):
        return Pending("it is being deleted")
    if operation := annotations(etcd).get(OPERATION):
        return Pending(f'gardener operation "{operation}" is not yet picked up by controller')
    if kicked and annotations(etcd).get(TIMESTAMP) != kicked:
        return Pending("another client has requested an operation since")
    if reported := text(status.get("lastError")):
        return Trouble(reported, tuple(codes_in(reported)))
    generation, observed = integer(metadata(etcd).get("generation")), observed_generation(etcd)
    if observed != generation:
        return Pending(f"observed generation outdated ({observed}/{generation})")
    counts = {name: integer(status.get(f"{name}Replicas")) for name in ("ready", "current")}
    counts["updated"] = integer(status.get("updatedReplicas", status.get("currentReplicas")))
    if not wanted:
        left = max(integer(status.get("replicas")), counts["ready"], counts["current"])
        return Pending(f"{left} of its members still exist") if left else Ready()
    # `ready` in the status may be of an older generation.
    for name in ("updated", "ready"):
        if counts[name] != wanted:
            return Pending(f"{counts[name]} of {wanted} members are {name}")
    if wanted > 1:
        ready = [member for member in mappings(status.get("members")) if member.get("status") == "Ready"]
        if len(ready) < wanted:
            return Pending(f"{len(ready)} of {wanted} members are ready")
    return Ready()


def _always(_: Object, **__: object) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of extension objects. Durations are in seconds.

    Attributes:
        needs_request: whether an object that exists needs a request; arguments as of `needs_kick`.
        severe: duration after which an uninterrupted error is final.
        longest: time limit of a response or a deletion.
        answer: evaluates the status.
    """

    resource: Resource
    needs_request: Callable[..., bool] = _always
    severe: float = 30.0
    longest: float = 3 * _MINUTE
    answer: Callable[..., Answer] = answer_of


BACKUP_BUCKET = Kind(resource=extensions.BACKUP_BUCKETS, needs_request=needs_repeated_kick)
BACKUP_ENTRY = Kind(resource=extensions.BACKUP_ENTRIES, needs_request=needs_repeated_kick, longest=10 * _MINUTE)
BASTION = Kind(resource=extensions.BASTIONS, needs_request=needs_repeated_kick)
CONTAINER_RUNTIME = Kind(resource=extensions.CONTAINER_RUNTIMES)
CONTROL_PLANE = Kind(resource=extensions.CONTROL_PLANES)
DNS_RECORD = Kind(resource=extensions.DNS_RECORDS, needs_request=needs_kick, severe=15.0, longest=2 * _MINUTE)
ETCD = Kind(resource=druid.ETCDS, severe=3 * _MINUTE, longest=5 * _MINUTE, answer=etcd_answer)
EXTENSION = Kind(resource=extensions.EXTENSIONS)
INFRASTRUCTURE = Kind(
    resource=extensions.INFRASTRUCTURES, needs_request=needs_kick, severe=3 * _MINUTE, longest=10 * _MINUTE
)
NETWORK = Kind(resource=extensions.NETWORKS)
OPERATING_SYSTEM_CONFIG = Kind(resource=extensions.OPERATING_SYSTEM_CONFIGS)
WORKER = Kind(resource=extensions.WORKERS, longest=10 * _MINUTE)
OF_SHOOTS = {
    each.resource: each
    for each in (
        *(CONTAINER_RUNTIME, CONTROL_PLANE, DNS_RECORD, EXTENSION),
        *(INFRASTRUCTURE, NETWORK, OPERATING_SYSTEM_CONFIG, WORKER),
    )
}
"""Kinds of `extensions.OF_SHOOTS`."""
