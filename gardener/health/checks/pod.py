"""A Pod is healthy when it runs or has done its work; readiness does not matter."""

from gardener.health.checks.rule import Rule, quoted, string
from kube.objects import Object


def health(pod: Object) -> str | None:
    phase = string(pod, "status.phase")
    if phase in {"Running", "Succeeded"}:
        return None
    return f'pod is in invalid phase {quoted(phase)} (expected one of ["Running" "Succeeded"])'


RULE = Rule(group="", kind="Pod", health=health)
