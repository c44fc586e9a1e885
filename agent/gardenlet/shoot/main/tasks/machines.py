"""Machines of a Shoot that moves: they run on without their objects, and the destination adopts them.

The source saves the objects when no controller changes them any more, and removes only the objects. The destination
starts the controller after the Worker's extension has created them again: before, machines would have no owner, and
the controller would delete them.
"""

from agent.gardenlet.flow.graph import Task
from agent.gardenlet.flow.unit import any_of
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.skipping import asleep, no_waiting, not_restored, workerless
from agent.gardenlet.shoot.main.tasks import components
from components import machine_controllers
from components.results import NAMESPACE
from gardener.api.kinds import OF_MACHINES
from kube.apply.application import for_each
from kube.objects import Object, finalizers, key, uid
from kube.resources import SECRETS, Resource
from kube.runtime.client import Form, Selection

_OF_CLASSES = "gardener.cloud/purpose=machineclass"
"""Selects Secrets of MachineClasses."""


async def release(operation: ShootOperation) -> None:
    """Delete the objects of machines without waiting for a controller, which would delete the machines, too."""
    for resource in OF_MACHINES:
        await _release(operation, resource, Selection(namespace=operation.technical_id))
    await _release(operation, SECRETS, Selection(namespace=operation.technical_id, label_selector=_OF_CLASSES))


async def _release(operation: ShootOperation, resource: Resource, selection: Selection) -> None:
    client = operation.seed.client

    async def release_one(obj: Object) -> None:
        if finalizers(obj):
            await client.patch_if_exists(resource, key(obj), {"metadata": {"uid": uid(obj), "finalizers": None}})
        await client.delete_if_exists(resource, key(obj), uid=uid(obj))

    found = await operation.seed.discovery.list_if_served(resource, selection, form=Form.METADATA)
    await for_each(release_one, found)


async def start_controller(operation: ShootOperation) -> None:
    """Start the controller of machines unless the extension has."""
    await components.stop(operation, machine_controllers.MANAGER)


RELEASE = Task(
    "machines-released",
    "Deleting machine resources from the Shoot namespace, and keeping the machines",
    release,
    after=["keep-objects"],
    unless=workerless,
)
START = Task(
    "machine-controller-manager-started",
    f"Scaling up {machine_controllers.MANAGER.title} after the machines are restored",
    start_controller,
    after=["worker-ready"],
    unless=any_of(workerless, asleep, not_restored, no_waiting),
    reads=[NAMESPACE],
)
