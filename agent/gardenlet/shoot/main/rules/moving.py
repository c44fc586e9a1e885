"""Preconditions of moving a Shoot to another Seed: pure.

A move that has not begun may be revoked, and a deletion precedes it. Therefore obstacles are detected before it begins,
and until then the last operation stays unchanged. A move that has begun can be taken back, too, see `after_return`.
"""

from enum import Enum

from agent.gardenlet.shoot.main.rules.rotation import asked_of
from agent.gardenlet.shoot.main.rules.status import is_hibernated
from gardener import conditions, operations
from gardener.garden.rotations import in_progress
from gardener.garden.shoots import is_settled, is_to_move, last_operation, operation_of
from gardener.health.checks.rule import outdated, required_condition
from kube.objects import Object, is_deleting, key, mapping, spec, text
from kube.paths import at

_REQUIRED = (conditions.GARDENLET_READY, conditions.SEED_SYSTEM_COMPONENTS_HEALTHY)


def operation_on(shoot: Object) -> str:
    """Type of the operation. A hibernation, a wake-up or a step of a rotation is completed before the Shoot moves."""
    kind = operation_of(shoot)
    is_between = is_hibernated(shoot) != (at(shoot, "status", "hibernated") is True)
    is_between |= bool(in_progress(shoot)) or asked_of(shoot) is not None
    return operations.RECONCILE if kind == operations.MIGRATE and is_between and is_settled(shoot) else kind


def has_begun(shoot: Object) -> bool:
    return last_operation(shoot).get("type") == operations.MIGRATE


def was_taken_back(shoot: Object) -> bool:
    """Whether a move has begun that the user does not want any more."""
    return operation_of(shoot) == operations.MIGRATE and not is_to_move(shoot)


class Progress(Enum):
    """Part of a migration that has begun; recorded in the namespace, since deleted objects leave no trace."""

    NOTHING = ""
    """The control plane was woken, nothing else."""
    EXTENSIONS = "extensions"
    """Extensions release their resources; all objects are still there."""
    OBJECTS = "objects"
    """Objects are deleted, after the state was saved."""


def after_return(shoot: Object, progress: Progress) -> str:
    """Type of the operation on a Shoot that `was_taken_back`: the shortest way to a complete control plane."""
    match progress:
        case Progress.NOTHING:
            return operations.DELETE if is_deleting(shoot) else operations.RECONCILE
        case Progress.EXTENSIONS:
            return operations.RESTORE
        case Progress.OBJECTS:
            return operations.MIGRATE


def destination(shoot: Object) -> str:
    return text(spec(shoot).get("seedName"))


def unavailable(shoot: Object, seed: Object | None, *, version: str) -> str:
    """Reason why the Seed can't host the Shoot; empty if it can.

    Args:
        shoot: the Shoot to move.
        seed: the destination; None if it does not exist.
        version: of this gardenlet; the destination's gardenlet must have the same.
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
        ""
        if spec(seed).get("backup")
        else "seed has no backup bucket, which is required to move Shoots; set spec.backup"
    )
