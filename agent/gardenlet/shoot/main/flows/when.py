"""Conditions that skip tasks of a Shoot, and tasks with such conditions."""

from collections.abc import Awaitable, Callable, Collection
from typing import Any

from agent.gardenlet.flow.graph import ONCE, Retry, Task
from agent.gardenlet.shoot.main.operation import LEAVING_CONTROL_PLANE, ShootOperation
from gardener.garden import shoots
from kube.objects import spec

Leaves = Callable[[ShootOperation], bool]
Run = Callable[[ShootOperation], Awaitable[Any]]


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


def has_ssh(operation: ShootOperation) -> bool:
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


def any_of(*leaves: Leaves) -> Leaves:
    return lambda operation: any(leave(operation) for leave in leaves)


def for_workers(
    its_id: str,
    name: str,
    run: Run,
    after: Collection[str],
    *unless: Leaves,
    retry: Retry | None = None,
    **results: Any,
) -> Task[ShootOperation]:
    """A task that only applies to Shoots with workers. Args: results: those that it provides or reads."""
    return Task(its_id, name, run, after=after, unless=any_of(workerless, *unless), retry=retry or Retry(), **results)


def wakes(
    its_id: str,
    name: str,
    run: Callable[[ShootOperation], Awaitable[None]],
    after: Collection[str],
    retry: Retry = ONCE,
) -> Task[ShootOperation]:
    """A task that only applies to the clean-up of the cluster."""
    return Task(its_id, name, run, after=after, unless=no_clean_up, retry=retry)


async def _nothing(_: ShootOperation) -> None: ...


def not_built(its_id: str, name: str, after: Collection[str]) -> Task[ShootOperation]:
    """A task of the original flow that is not implemented: reports of the flow list it as skipped."""
    return Task(its_id, name, _nothing, after=after, unless=lambda _: True)
