"""A StatefulSet is healthy when enough replicas are ready, and rolled out when all are of the current revision."""

from gardener.health.checks.rule import Rule, desired_replicas, integer, outdated, partly_updated
from kube.objects import Object


def health(stateful_set: Object) -> str | None:
    ready, desired = integer(stateful_set, "status.readyReplicas"), desired_replicas(stateful_set)
    return outdated(stateful_set) or (f"not enough ready replicas ({ready}/{desired})" if ready < desired else None)


def progress(stateful_set: Object) -> str | None:
    return outdated(stateful_set) or partly_updated(
        integer(stateful_set, "status.updatedReplicas"), desired_replicas(stateful_set)
    )


RULE = Rule(group="apps", kind="StatefulSet", health=health, progress=progress)
