"""Status of a Shoot from check results: thresholds, pardons, and visibility of constraints."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from agent.gardenlet.shoot.care.rules.conditions import has_workers
from agent.gardenlet.shoot.care.rules.constraints import NOT_CHECKED
from gardener import conditions
from gardener.conditions import OPTIONAL_CONSTRAINTS, failed, pardoned
from gardener.garden.shoots import last_operation
from kube.conditions import Condition, with_conditions
from kube.objects import Object, mappings
from kube.paths import at

_CONSTRAINTS = (
    *OPTIONAL_CONSTRAINTS,
    conditions.HIBERNATION_POSSIBLE,
    conditions.MAINTENANCE_PRECONDITIONS_SATISFIED,
)
_ASLEEP = "Shoot cluster has been hibernated."
NOT_INITIALIZED = "Precondition failed: operation could not be initialized"


def is_asleep(shoot: Object) -> bool:
    """Whether the Shoot is hibernated or about to be."""
    return at(shoot, "spec", "hibernation", "enabled") is True or at(shoot, "status", "hibernated") is True


def types(shoot: Object) -> list[str]:
    """Types of the conditions that apply to a Shoot."""
    of_nodes = conditions.EVERY_NODE_READY
    return [each for each in conditions.SHOOT_CONDITIONS if each != of_nodes or has_workers(shoot)]


def asleep(shoot: Object) -> tuple[list[Condition], list[Condition]]:
    """Conditions and constraints of a hibernated Shoot."""
    return (
        [Condition(each, "True", "ConditionNotChecked", _ASLEEP) for each in types(shoot)],
        [Condition(each, "True", NOT_CHECKED, _ASLEEP) for each in _CONSTRAINTS],
    )


def not_initialized(shoot: Object) -> tuple[list[Condition], list[Condition]]:
    """Conditions and constraints of a Shoot for which the seed has no operation yet."""
    return (
        [conditions.not_checked(each, NOT_INITIALIZED) for each in types(shoot)],
        [conditions.not_checked(each, NOT_INITIALIZED) for each in _CONSTRAINTS],
    )


def with_checks(
    status: Object,
    found: Iterable[Condition],
    found_constraints: Sequence[Condition],
    *,
    shoot: Object,
    thresholds: Mapping[str, float],
    now: datetime,
) -> Object:
    """Return the status with the results of a check; conditions of other writers stay.

    Args: thresholds: seconds, by type.
    """
    checked = {each.type for each in found_constraints}

    def reported(having: list[Object], checks: Iterable[Condition]) -> list[Object]:
        by_type = {each.get("type"): each for each in having}
        wanted = []
        for each in checks:
            if each.status == "False":
                patience = thresholds.get(each.type)
                operation = last_operation({"status": status})
                each = pardoned(  # noqa: PLW2901 - the same condition, as reported
                    failed(by_type.get(each.type), each, threshold=patience, last_operation=operation, now=now), status
                )
            wanted.append(each)
        return with_conditions(having, wanted, now=now)

    constraints = reported(mappings(status.get("constraints")), found_constraints)
    is_awake = not is_asleep({**shoot, "status": status})
    constraints = [each for each in constraints if not _is_hidden(each, checked, is_awake=is_awake)]
    return {**status, "conditions": reported(mappings(status.get("conditions")), found), "constraints": constraints}


def _is_hidden(constraint: Object, checked: Collection[str], *, is_awake: bool) -> bool:
    """Whether an optional constraint has nothing to report now."""
    of_type = constraint.get("type")
    if of_type == conditions.OLD_CA_CERTIFICATE_UNUSED:
        return of_type not in checked
    return (
        is_awake and of_type in OPTIONAL_CONSTRAINTS and (constraint.get("status") == "True" or of_type not in checked)
    )
