"""ReplicaSets and ReplicationControllers need as many ready replicas as they specify, if any."""

from gardener.health.checks.rule import CAUSE, Rule, condition, integer, optional_integer, outdated
from kube.objects import Object


def _too_few_ready(obj: Object, kind: str) -> str | None:
    desired = optional_integer(obj, "spec.replicas")
    if desired is None or integer(obj, "status.readyReplicas") >= desired:
        return None
    failure = condition(obj, "ReplicaFailure")
    cause = f"{CAUSE}{failure.message}" if failure is not None and failure.status == "True" else ""
    return f"{kind} does not have minimum availability{cause}"


def health(replica_set: Object) -> str | None:
    return outdated(replica_set) or _too_few_ready(replica_set, "ReplicaSet")


def replication_controller_health(controller: Object) -> str | None:
    return outdated(controller) or _too_few_ready(controller, "ReplicationController")


RULE = Rule(group="apps", kind="ReplicaSet", health=health)
REPLICATION_CONTROLLER_RULE = Rule(group="", kind="ReplicationController", health=replication_controller_health)
