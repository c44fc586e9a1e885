"""A Service of type LoadBalancer is healthy when it has got an address; others always are."""

from gardener.health.checks.rule import Rule, sequence, string
from kube.objects import Object


def health(service: Object) -> str | None:
    if string(service, "spec.type") != "LoadBalancer" or sequence(service, "status.loadBalancer.ingress"):
        return None
    return "service is missing ingress status"


RULE = Rule(group="", kind="Service", health=health)
