"""Conditions that skip tasks of a seed."""

from agent.gardenlet.flow.unit import Leaves
from agent.gardenlet.seed.main.operation import SeedOperation


def is_garden(operation: SeedOperation) -> bool:
    return operation.is_garden


def has_own_identity(operation: SeedOperation) -> bool:
    return operation.has_own_identity


def installs_no_autoscaler(operation: SeedOperation) -> bool:
    return not operation.installs_autoscaler


def is_left_out(component: str) -> Leaves[SeedOperation]:
    return lambda operation: component not in operation.components


def is_not_requested(requested: str) -> Leaves[SeedOperation]:
    return lambda operation: operation.requested != requested
