"""A Job is healthy until it has failed; whether it still runs does not matter."""

from gardener.health.checks.rule import Rule, optional_condition
from kube.objects import Object


def health(job: Object) -> str | None:
    return optional_condition(job, "Failed", "False")


RULE = Rule(group="batch", kind="Job", health=health)
