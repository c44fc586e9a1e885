"""Rules by kind."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gardener.health.checks import (
    certificate,
    custom_resource_definition,
    daemon_set,
    deployment,
    job,
    kstatus,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules above, and those of a configuration for kinds that have none of them."""

    configured: Mapping[tuple[str, str], Rule] = field(default_factory=dict)
    """Rules by group and kind."""
    kstatus: bool = False
    """Whether all other custom resources are checked by their conditions."""

    def health(self, api_version: str, kind: str) -> Rule | None:
        """The rule for this version; without one, an object is healthy if it exists."""
        rule = self._of(group_of(api_version), kind)
        version = api_version.rpartition("/")[2]
        return rule if rule is not None and (not rule.versions or version in rule.versions) else None

    def progress(self, api_version: str, kind: str) -> Rule | None:
        """The rule for any version of the kind; the object has to be read in the version that the rule names."""
        rule = self._of(group_of(api_version), kind)
        return rule if rule is not None and rule.progress is not None else None

    def _of(self, group: str, kind: str) -> Rule | None:
        rule = _RULES.get((group, kind)) or self.configured.get((group, kind))
        if rule is None and self.kstatus and kstatus.is_custom(group):
            return kstatus.assessed(group, kind, kstatus.by_conditions)
        return rule


BUILT_IN = Rules()


def has_rule(group: str, kind: str) -> bool:
    """Whether the kind has a rule here, which no configuration can replace."""
    return (group, kind) in _RULES
