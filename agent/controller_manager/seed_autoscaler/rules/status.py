"""The status of a SeedAutoscaler, from what was seen and decided."""

from datetime import datetime

from agent.controller_manager.seed_autoscaler.rules.decision import Decision
from agent.controller_manager.seed_autoscaler.rules.loads import Observation
from agent.controller_manager.seed_autoscaler.rules.recommendation import Measured, percent, plain
from kube.clock import format_time
from kube.conditions import conditions_of, with_conditions
from kube.objects import Object, integer, metadata

_MOST = 2**31 - 1


def status_after(autoscaler: Object, decision: Decision, seen: Observation | None, *, now: datetime) -> Object:
    """Its fields; what is missing stays as it is, and None removes a field: a count of 0 is left out.

    Args: seen: None: there was nothing to look at.
    """
    fields: Object = {
        "observedGeneration": integer(metadata(autoscaler).get("generation")),
        "conditions": with_conditions(conditions_of(autoscaler), decision.conditions, now=now),
    }
    if seen is None:
        return fields
    return {
        **fields,
        "currentReplicas": seen.existing or None,
        "desiredReplicas": decision.replicas or None,
        "pendingShoots": seen.pending or None,
        "currentMetrics": [_current(measured) for measured in decision.measured],
        **({"lastScaleTime": format_time(now)} if decision.why else {}),
    }


def _current(measured: Measured) -> Object:
    share = measured.utilization
    used = {} if share is None else {"averageUtilization": min(percent(share), _MOST)}
    amounts = {
        "averageValue": plain(measured.average),
        "total": plain(measured.total),
        "allocatable": plain(measured.allocatable),
    }
    return {"type": "Resource", "resource": {"name": measured.metric.resource, "current": {**used, **amounts}}}
