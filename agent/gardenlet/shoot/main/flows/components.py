"""Tasks of components of a Shoot: see `components.component`."""

from collections.abc import Collection, Iterator
from functools import partial
from typing import Any

from agent.gardenlet.flow.graph import ONCE, Retry, Task
from agent.gardenlet.shoot.main.flows.when import Leaves, Run, any_of, asleep, awake, no_waiting, workerless
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.tasks import components, control_plane
from components import kube_apiserver
from components.component import Component
from components.resource_manager import shoot as resource_manager
from components.results import Result

_IN_STEPS: dict[Component, Run] = {
    kube_apiserver.COMPONENT: control_plane.api_server,
    resource_manager.COMPONENT: control_plane.resource_manager,
}
"""Components that are deployed several times, with other steps in between."""
_DESTROYED: dict[Component, Run] = {kube_apiserver.COMPONENT: control_plane.destroy_api_server}


def tasks_of(component: Component) -> Iterator[Task[ShootOperation]]:
    """Tasks of a component in the reconciliation flow."""
    unless: list[Leaves] = [partial(_is_omitted, component)]
    if component.is_left_asleep:
        unless.append(asleep)
    deploy = _IN_STEPS.get(component) or partial(components.deploy, component=component)
    leaves: list[Leaves] = [*unless, partial(_is_unwanted, component)]
    name, reads = f"Deploying {component.title}", component.results
    yield _task(component, component.id, name, deploy, component.after, *leaves, reads=reads)
    if component.can_be_unwanted:
        yield removes(component, component.after, *unless, partial(_is_wanted, component))
    if component.awaited:
        wait, after = partial(components.wait, component=component), [component.id, *component.awaited_after]
        name = f"Waiting until {component.awaited}"
        yield _task(component, f"{component.id}-ready", name, wait, after, asleep, no_waiting, is_once=True)


def removes(component: Component, after: Collection[str], *unless: Leaves) -> Task[ShootOperation]:
    run = partial(components.remove, component=component)
    return _task(component, f"{component.id}-gone", f"Deleting {component.title}", run, after, *unless)


def destroys(component: Component, after: Collection[str], *, verb: str = "Destroying") -> Task[ShootOperation]:
    """Task that deletes a component, and waits until it is gone."""
    run = _DESTROYED.get(component) or partial(components.destroy, component=component)
    return _task(component, f"{component.id}-gone", f"{verb} {component.title}", run, after, is_once=True)


def stops(component: Component, after: Collection[str], *, reads: Collection[Result[Any]]) -> Task[ShootOperation]:
    """Task that scales a component down during hibernation, when it may depend on fewer results."""
    run = partial(components.stop, component=component)
    name = f"Scaling down {component.title}"
    return _task(component, f"{component.id}-stopped", name, run, after, awake, reads=reads)


def _task(
    component: Component,
    its_id: str,
    name: str,
    run: Run,
    after: Collection[str],
    *unless: Leaves,
    is_once: bool = False,
    reads: Collection[Result[Any]] = (),
) -> Task[ShootOperation]:
    leaves = [*([workerless] if component.is_of_workers else []), *unless]
    retry = ONCE if is_once else Retry()
    return Task(its_id, name, run, after=after, unless=any_of(*leaves) if leaves else None, retry=retry, reads=reads)


def _is_omitted(component: Component, operation: ShootOperation) -> bool:
    return component.name in operation.config.omit.shoots


def _is_wanted(component: Component, operation: ShootOperation) -> bool:
    return component.is_wanted(operation.shoot)


def _is_unwanted(component: Component, operation: ShootOperation) -> bool:
    return not _is_wanted(component, operation)
