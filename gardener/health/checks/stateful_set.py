"""A StatefulSet is healthy when enough replicas are ready, and rolled out when all are of the current revision.

Pods below the partition, and with the strategy `OnDelete` all pods, are only updated when a person does something. They
keep no roll-out from being complete. The partition counts from the first ordinal, wherever `spec.ordinals` begins.
"""

from gardener.health.checks.rule import Rule, desired_replicas, integer, outdated, partly_updated, string
from kube.objects import Object


def health(stateful_set: Object) -> str | None:
    ready, desired = integer(stateful_set, "status.readyReplicas"), desired_replicas(stateful_set)
    return outdated(stateful_set) or (f"not enough ready replicas ({ready}/{desired})" if ready < desired else None)


def progress(stateful_set: Object) -> str | None:
    desired = desired_replicas(stateful_set)
    if old := outdated(stateful_set):
        return old
    if _is_updated_on_delete(stateful_set):
        existing = integer(stateful_set, "status.replicas")
        return f"{existing} of {desired} replica(s) exist" if existing < desired else None
    wanted = max(desired - _partition(stateful_set), 0)
    return partly_updated(integer(stateful_set, "status.updatedReplicas"), wanted)


def manual(stateful_set: Object) -> str | None:
    existing, updated = integer(stateful_set, "status.replicas"), integer(stateful_set, "status.updatedReplicas")
    not_updated = partly_updated(updated, min(existing, desired_replicas(stateful_set)))
    if not_updated is None:
        return None
    if _is_updated_on_delete(stateful_set):
        return f"{not_updated}, since spec.updateStrategy.type is OnDelete: delete the other pods to update them"
    partition = _partition(stateful_set)
    if not partition:
        return None
    return (
        f"{not_updated}, since spec.updateStrategy.rollingUpdate.partition is {partition}: "
        "lower the partition to update the others"
    )


def _is_updated_on_delete(stateful_set: Object) -> bool:
    return string(stateful_set, "spec.updateStrategy.type") == "OnDelete"


def _partition(stateful_set: Object) -> int:
    return integer(stateful_set, "spec.updateStrategy.rollingUpdate.partition")


RULE = Rule(group="apps", kind="StatefulSet", health=health, progress=progress, manual=manual)
