"""Prometheus and Alertmanager, which the Prometheus operator runs, report themselves in the same way.

Their conditions name the generation that they are about; the status has no such field of its own. While one is paused
the operator does nothing, so its roll-out waits for nothing that happens by itself.
"""

from gardener.health.checks.rule import (
    Rule,
    condition,
    desired_replicas,
    field,
    integer,
    missing_condition,
    outdated_generation,
    partly_updated,
    wrong_status,
)
from kube.objects import Object


def _current_condition(obj: Object, condition_type: str) -> str | None:
    found = condition(obj, condition_type)
    if found is None:
        return missing_condition(condition_type)
    return outdated_generation(obj, found.observed_generation) or wrong_status(found, "True")


def health(obj: Object) -> str | None:
    available, desired = integer(obj, "status.availableReplicas"), desired_replicas(obj)
    return _current_condition(obj, "Available") or (
        f"not enough available replicas ({available}/{desired})" if available < desired else None
    )


def progress(obj: Object) -> str | None:
    return None if field(obj, "spec.paused") is True else _waits_for(obj)


def manual(obj: Object) -> str | None:
    if field(obj, "spec.paused") is not True or not (waits_for := _waits_for(obj)):
        return None
    return f"{waits_for}, since spec.paused is true: set it to false to complete the roll-out"


def _waits_for(obj: Object) -> str | None:
    return _current_condition(obj, "Reconciled") or partly_updated(
        integer(obj, "status.updatedReplicas"), desired_replicas(obj)
    )


def _rule(kind: str) -> Rule:
    return Rule(group="monitoring.coreos.com", kind=kind, health=health, progress=progress, manual=manual)


RULE = _rule("Prometheus")
ALERTMANAGER_RULE = _rule("Alertmanager")
