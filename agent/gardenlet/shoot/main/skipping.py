"""Conditions that skip tasks of a Shoot."""

from agent.gardenlet.flow.unit import any_of
from agent.gardenlet.shoot.main.operation import LEAVING_CONTROL_PLANE, ShootOperation
from gardener.garden import shoots
from kube.objects import spec


def asleep(operation: ShootOperation) -> bool:
    return operation.is_asleep


def awake(operation: ShootOperation) -> bool:
    return not operation.is_asleep


def no_gateways(operation: ShootOperation) -> bool:
    return not operation.config.has_gateways


def no_tunnels(operation: ShootOperation) -> bool:
    return not operation.config.has_tunnels


def workerless(operation: ShootOperation) -> bool:
    return operation.is_workerless


def uses_ssh(operation: ShootOperation) -> bool:
    return shoots.has_ssh(spec(operation.shoot))


def no_waiting(operation: ShootOperation) -> bool:
    return operation.skips_waiting


def no_backup(operation: ShootOperation) -> bool:
    return not operation.has_backup


def no_copy(operation: ShootOperation) -> bool:
    return not operation.copies_backups


def not_restored(operation: ShootOperation) -> bool:
    return not operation.is_restored


def no_clean_up(operation: ShootOperation) -> bool:
    return not operation.cleans_up


def no_namespace(operation: ShootOperation) -> bool:
    return not operation.namespace_lives


def no_control_plane(operation: ShootOperation) -> bool:
    """Whether an earlier attempt has begun to delete the ControlPlane, so that nothing needs it any more."""
    return operation.leaving == LEAVING_CONTROL_PLANE


asleep_or_no_waiting = any_of(asleep, no_waiting)
