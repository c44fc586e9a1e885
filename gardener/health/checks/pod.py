"""A Pod is healthy when it runs or has completed; readiness does not matter."""

from gardener.health.checks.rule import CAUSE, Rule, quoted, string
from gardener.health.checks.workload_pods import cause_of_pod
from kube.objects import Object


def health(pod: Object) -> str | None:
    phase = string(pod, "status.phase")
    if phase in {"Running", "Succeeded"}:
        return None
    cause = cause_of_pod(pod)
    wrong = f'pod is in invalid phase {quoted(phase)} (expected one of ["Running" "Succeeded"])'
    return f"{wrong}{CAUSE}{cause}" if cause else wrong


RULE = Rule(group="", kind="Pod", health=health)
