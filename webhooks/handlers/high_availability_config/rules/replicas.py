"""How many replicas a component needs: two, or one for a controller where no failure has to be survived.

Autoscalers do not go below that.
"""

from kube.objects import Object, annotations, labels
from kube.paths import mapping_at, with_value
from webhooks.admission import Denied, Refusal
from webhooks.handlers.high_availability_config.rules.requirements import REPLICAS, TYPE, Requirements
from webhooks.rules.values import integer

_CONTROLLER = "controller"
_MOST = 2**31 - 1


def needed(obj: Object, current: int | None, *, failure_tolerance: str | None) -> int | None:
    """None: the number is left alone, since it is hibernated, or says not what type of component it is.

    Raises: Refusal: the number in the annotation can't be one.
    """
    component_type = labels(obj).get(TYPE)
    if not current or not component_type:
        return None
    override = annotations(obj).get(REPLICAS)
    if override:
        return _parsed(override)
    return 1 if failure_tolerance == "" and component_type == _CONTROLLER else 2


def of_workload(current: int | None, needed_replicas: int | None, *, is_scaled: bool) -> int | None:
    """Only an autoscaler may ask for more replicas."""
    if current is None or needed_replicas is None:
        return current
    return max(current, needed_replicas) if is_scaled else needed_replicas


def _parsed(text: str) -> int:
    try:
        number = integer(text, function="Atoi")
    except ValueError as error:
        raise Refusal(Denied(f'annotation "{REPLICAS}": {error}')) from None
    if not 0 <= number <= _MOST:
        raise Refusal(Denied(f'annotation "{REPLICAS}": must be between 0 and {_MOST}, got {number}'))
    return number


def of_autoscaler(obj: Object, *, bounds_at: tuple[str, ...], requirements: Requirements) -> Object:
    """An autoscaler as it should be; `bounds_at` is where it has `minReplicas` and `maxReplicas`.

    Raises: Refusal: an annotation makes no sense.
    """
    bounds = mapping_at(obj, *bounds_at)
    lowest = needed(obj, bounds.get("minReplicas"), failure_tolerance=requirements.failure_tolerance)
    return obj if lowest is None else with_value(obj, bounds_at, with_bounds(bounds, lowest))


def with_bounds(spec: Object, needed: int) -> Object:
    """An upper bound below the lower one is raised to what is needed, and not further.

    So where a user's own bounds contradict each other, it is the API server that says so.
    """
    lowest = spec["minReplicas"]
    bounds = {}
    if lowest < needed:
        bounds["minReplicas"] = lowest = needed
    if (spec.get("maxReplicas") or 0) < lowest:
        bounds["maxReplicas"] = needed
    return {**spec, **bounds}
