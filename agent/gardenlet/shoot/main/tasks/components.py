"""Deployment and removal of a component of a Shoot."""

from collections.abc import Iterator
from contextlib import contextmanager

from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.shoot.main.operation import ShootOperation
from components.component import Component, Read
from components.inputs import InputError
from components.sample import needs
from kube.objects import Key, Object, integer
from kube.paths import at
from kube.resources import DEPLOYMENTS
from kube.runtime.client import Client, Form, Selection
from kube.runtime.controller import ReconcileError

_GONE_SECONDS = 300.0


async def deploy(operation: ShootOperation, component: Component) -> None:
    """Deploy a component with objects made from its inputs.

    Raises:
        ReconcileError: an input is missing or invalid, or an object could not be written.
    """
    inputs = operation.inputs(await _read(operation, component))
    with known():
        objects = component.made(inputs)
    await write(operation, component, objects)
    if component.carries_out:
        await operation.task_done(component.carries_out)


async def write(operation: ShootOperation, component: Component, objects: list[Object]) -> None:
    """Write the objects; those scaled later keep their replicas until then. Raises ReconcileError, KubeError."""
    is_stopped_later = component.is_put_to_sleep_later and operation.is_asleep
    if is_stopped_later or (component.is_started_after_restoration and operation.is_restored):
        live = await operation.seed.client.find(DEPLOYMENTS, Key(operation.technical_id, component.name))
        for each in objects:
            if each["kind"] == DEPLOYMENTS.kind:
                each["spec"]["replicas"] = integer(at(live or {}, "spec", "replicas"))
    await operation.deploy(component.name, objects)


async def wait(operation: ShootOperation, component: Component) -> None:
    """Wait until the component, as written by this operation, is ready. Raises NotInTimeError, KubeError."""
    ready = component.readiness
    assert ready is not None  # the flow only waits for components with readiness
    await operation.waiting.until_ready(
        ready.resource,
        Key(operation.technical_id, component.name),
        ready.unready,
        seconds=ready.seconds,
        since=operation.written(ready.resource, component.name),
        report=waits_for,
    )


async def stop(operation: ShootOperation, component: Component) -> None:
    """Deploy a component of a hibernated Shoot without keeping its replicas. Raises ReconcileError, KubeError."""
    with known():
        objects = component.made(operation.inputs())
    await operation.deploy(component.name, objects)


async def remove(operation: ShootOperation, component: Component) -> None:
    """Delete the component's known objects; return when the deletion is accepted. Raises ReconcileError, KubeError."""
    await operation.deploy(component.name, [])


async def destroy(operation: ShootOperation, component: Component) -> None:
    """Delete all objects of the component's kinds; return when they are gone. Raises ComponentError, KubeError."""
    await operation.destroy(component.name, needs(component).kinds, seconds=_GONE_SECONDS)


@contextmanager
def known() -> Iterator[None]:
    """Convert InputError to ReconcileError."""
    try:
        yield
    except InputError as error:
        raise ReconcileError(str(error)) from error


async def _read(operation: ShootOperation, component: Component) -> dict[str, list[Object]]:
    if not component.reads:
        return {}
    async with operation.cluster() as cluster:
        return {name: await _listed(cluster.client, each) for name, each in component.reads.items()}


async def _listed(client: Client, read: Read) -> list[Object]:
    if read.name is not None:
        return [each] if (each := await client.find(read.resource, read.name)) else []
    return await client.list(read.resource, Selection(label_selector=read.selector), form=Form.METADATA)
