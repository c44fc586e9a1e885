"""Tasks of what a flow of a Shoot lists: components, objects of extensions, other units, and single tasks."""

from collections.abc import Collection, Iterator
from functools import partial
from typing import Any

from agent.gardenlet.flow.graph import Task
from agent.gardenlet.flow.unit import Leaves, Run, Unit, Wait, any_of
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.skipping import asleep, asleep_or_no_waiting, awake, workerless
from agent.gardenlet.shoot.main.tasks import components, control_plane
from agent.gardenlet.shoot.main.tasks.requests import Requests
from components import kube_apiserver
from components.component import Component
from components.resource_manager import shoot as resource_manager
from components.results import Result

Entry = Component | Requests | Unit[ShootOperation] | Task[ShootOperation]

_IN_STEPS: dict[Component, Run[ShootOperation]] = {
    kube_apiserver.COMPONENT: control_plane.api_server,
    resource_manager.COMPONENT: control_plane.resource_manager,
}
"""Components that are deployed several times, with other steps in between."""
_DESTROYED: dict[Component, Run[ShootOperation]] = {kube_apiserver.COMPONENT: control_plane.destroy_api_server}


def tasks_of(*entries: Entry) -> Iterator[Task[ShootOperation]]:
    """Tasks that deploy the entries of a flow, and wait for them."""
    for each in entries:
        if isinstance(each, Task):
            yield each
        else:
            yield from unit_of(each).tasks()
        if isinstance(each, Component) and each.can_be_unwanted:
            yield removes(each, each.after, _is_left(each), partial(_is_wanted, each))


def unit_of(entry: Component | Requests | Unit[ShootOperation]) -> Unit[ShootOperation]:
    if isinstance(entry, Unit):
        return entry
    return entry.unit if isinstance(entry, Requests) else _of_component(entry)


def _of_component(component: Component) -> Unit[ShootOperation]:
    wait = partial(components.wait, component=component)
    return Unit(
        id=component.id,
        title=component.title,
        deploy=_IN_STEPS.get(component) or partial(components.deploy, component=component),
        after=component.after,
        skips=_for_workers(component),
        unless=any_of(_is_left(component), partial(_is_unwanted, component)),
        reads=component.results,
        wait=Wait(component.awaited, wait, after=component.awaited_after, unless=asleep_or_no_waiting)
        if component.awaited
        else None,
        destroy=_DESTROYED.get(component) or partial(components.destroy, component=component),
    )


def removes(
    component: Component, after: Collection[str], *unless: Leaves[ShootOperation] | None
) -> Task[ShootOperation]:
    """Task that deletes a component that the Shoot does not request, without waiting."""
    run = partial(components.remove, component=component)
    skips = any_of(_for_workers(component), *unless)
    return Task(f"{component.id}-gone", f"Deleting {component.title}", run, after=after, unless=skips)


def stops(component: Component, after: Collection[str], *, reads: Collection[Result[Any]]) -> Task[ShootOperation]:
    """Task that scales a component down during hibernation, when it may depend on fewer results."""
    run = partial(components.stop, component=component)
    skips = any_of(_for_workers(component), awake)
    name = f"Scaling down {component.title}"
    return Task(f"{component.id}-stopped", name, run, after=after, unless=skips, reads=reads)


def _for_workers(component: Component) -> Leaves[ShootOperation] | None:
    return workerless if component.is_of_workers else None


def _is_left(component: Component) -> Leaves[ShootOperation] | None:
    return any_of(partial(_is_omitted, component), asleep if component.is_left_asleep else None)


def _is_omitted(component: Component, operation: ShootOperation) -> bool:
    return component.name in operation.config.omit.shoots


def _is_wanted(component: Component, operation: ShootOperation) -> bool:
    return component.is_wanted(operation.shoot)


def _is_unwanted(component: Component, operation: ShootOperation) -> bool:
    return not _is_wanted(component, operation)
