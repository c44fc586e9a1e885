"""Autoscalers do not go below the replicas that are needed."""

from collections.abc import Sequence

from kube.objects import Object
from webhooks.handlers.high_availability_config import replicas
from webhooks.handlers.high_availability_config.situation import Situation


def highly_available(obj: Object, *, bounds_at: Sequence[str], situation: Situation) -> Object:
    """An autoscaler as it should be; `bounds_at` is where it has `minReplicas` and `maxReplicas`.

    Raises:
        Refusal: an annotation makes no sense.
    """
    bounds = obj
    for field in bounds_at:
        bounds = bounds.get(field) or {}
    needed = replicas.needed(obj, bounds.get("minReplicas"), failure_tolerance=situation.failure_tolerance)
    return obj if needed is None else _with(obj, bounds_at, with_bounds(bounds, needed))


def with_bounds(spec: Object, needed: int) -> Object:
    """An upper bound below the lower one is raised to what is needed, and not further.

    So where somebody's own bounds contradict each other, it is the API server that says so.
    """
    lowest = spec["minReplicas"]
    bounds = {}
    if lowest < needed:
        bounds["minReplicas"] = lowest = needed
    if (spec.get("maxReplicas") or 0) < lowest:
        bounds["maxReplicas"] = needed
    return {**spec, **bounds}


def _with(obj: Object, path: Sequence[str], value: Object) -> Object:
    """A copy of the object with something else at a path."""
    if not path:
        return value
    return {**obj, path[0]: _with(obj[path[0]], path[1:], value)}
