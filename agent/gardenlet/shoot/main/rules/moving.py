"""Whether a Shoot can move to another Seed now: pure.

A move that has not begun may be taken back, and a deletion comes before it. So whatever is in its way is found out
before it begins, and the operation that was the last one stays that.
"""

from agent.gardenlet.shoot.main.rules.status import is_hibernated
from gardener import conditions, operations
from gardener.garden.shoots import last_operation, operation_of, responsible_seed
from gardener.health.checks.rule import outdated, required_condition
from kube.objects import Object, is_deleting, key, mapping, spec, text
from kube.paths import at

_REQUIRED = (conditions.GARDENLET_READY, conditions.SEED_SYSTEM_COMPONENTS_HEALTHY)


def operation_on(shoot: Object) -> str:
    """The type of operation. What falls asleep, or wakes, does that where it is before it moves."""
    kind = operation_of(shoot)
    is_between = is_hibernated(shoot) != (at(shoot, "status", "hibernated") is True)
    return operations.RECONCILE if kind == operations.MIGRATE and is_between and is_settled(shoot) else kind


def has_begun(shoot: Object) -> bool:
    return last_operation(shoot).get("type") == operations.MIGRATE


def is_settled(shoot: Object) -> bool:
    """Whether all that it has is where it is: it has not begun to leave, and what it has brought along has arrived."""
    last = last_operation(shoot)
    is_arriving = last.get("type") == operations.RESTORE and last.get("state") != operations.SUCCEEDED
    return not (is_arriving or has_begun(shoot))


def is_to_move(shoot: Object) -> bool:
    return text(spec(shoot).get("seedName")) != responsible_seed(shoot)


def destination(shoot: Object) -> str:
    return text(spec(shoot).get("seedName"))


def unavailable(shoot: Object, seed: Object | None, *, version: str) -> str:
    """Why the Seed can't take the Shoot; empty: it can.

    Args:
        shoot: that moves.
        seed: the destination; None: there is none of that name.
        version: of this gardenlet, which the other one has to have, too.
    """
    cause = _cause(seed, version=version)
    name = key(shoot).name
    return f"destination Seed is not available to host the control plane of Shoot {name}: {cause}" if cause else ""


def _cause(seed: Object | None, *, version: str) -> str:
    if seed is None:
        return "seed does not exist"
    if is_deleting(seed):
        return "seed is marked to be deleted"
    found = text(mapping(at(seed, "status", "gardener")).get("version"))
    if found != version:
        return f"observing Gardener version not up to date ({found}/{version})"
    if problem := outdated(seed):
        return problem
    for each in _REQUIRED:
        if problem := required_condition(seed, each, "True"):
            return problem
    return (
        "" if spec(seed).get("backup") else "seed has no backup bucket, by which data of Shoots move; set spec.backup"
    )
