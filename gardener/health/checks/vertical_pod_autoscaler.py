"""A VerticalPodAutoscaler is healthy unless it reports its configuration as unsupported."""

from gardener.health.checks.rule import Rule, optional_condition
from kube.objects import Object


def health(autoscaler: Object) -> str | None:
    return optional_condition(autoscaler, "ConfigUnsupported", "False")


RULE = Rule(group="autoscaling.k8s.io", kind="VerticalPodAutoscaler", health=health)
