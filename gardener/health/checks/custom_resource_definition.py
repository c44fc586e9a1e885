"""A CustomResourceDefinition is healthy when its kind is served and stays so."""

from gardener.health.checks.rule import Rule, optional_condition, required_condition
from kube.objects import Object


def health(crd: Object) -> str | None:
    return (
        required_condition(crd, "NamesAccepted", "True")
        or required_condition(crd, "Established", "True")
        or optional_condition(crd, "Terminating", "False")
    )


RULE = Rule(group="apiextensions.k8s.io", kind="CustomResourceDefinition", versions=("v1", "v1beta1"), health=health)
