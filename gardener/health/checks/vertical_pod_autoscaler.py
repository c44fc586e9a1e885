"""A VerticalPodAutoscaler is healthy unless it says that its configuration is not supported."""

from gardener.health.checks.rule import Rule, optional_condition
from kube.objects import Object


def health(autoscaler: Object) -> str | None:
    return optional_condition(autoscaler, "ConfigUnsupported", "False")


RULE = Rule(group="autoscaling.k8s.io", kind="VerticalPodAutoscaler", health=health)
