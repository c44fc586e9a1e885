"""All kinds that have a rule."""

from gardener.health.checks import (
    certificate,
    custom_resource_definition,
    daemon_set,
    deployment,
    job,
    pod,
    prometheus,
    replica_set,
    service,
    stateful_set,
    vertical_pod_autoscaler,
)
from gardener.health.checks.rule import Rule
from kube.objects import group_of

_RULES = {
    (rule.group, rule.kind): rule
    for rule in (
        custom_resource_definition.RULE,
        deployment.RULE,
        stateful_set.RULE,
        daemon_set.RULE,
        replica_set.RULE,
        replica_set.REPLICATION_CONTROLLER_RULE,
        job.RULE,
        pod.RULE,
        service.RULE,
        vertical_pod_autoscaler.RULE,
        prometheus.RULE,
        prometheus.ALERTMANAGER_RULE,
        certificate.RULE,
        certificate.ISSUER_RULE,
    )
}


def rule_of(group: str, kind: str) -> Rule | None:
    return _RULES.get((group, kind))


def health_rule(api_version: str, kind: str) -> Rule | None:
    """The rule for this very version; without one, an object is fine if it exists."""
    rule = rule_of(group_of(api_version), kind)
    version = api_version.rpartition("/")[2]
    return rule if rule is not None and version in rule.versions else None


def progress_rule(api_version: str, kind: str) -> Rule | None:
    """The rule for any version of the kind; the object is to be read in the rule's `api_version`."""
    rule = rule_of(group_of(api_version), kind)
    return rule if rule is not None and rule.progress is not None else None
