"""ContainerRuntimes of a Shoot: requested by its pools, and removed when no pool requests them any more."""

import asyncio
from collections.abc import Collection

from agent.gardenlet.extension_objects.kinds import CONTAINER_RUNTIME
from agent.gardenlet.shoot.main.operation import ShootOperation
from components import container_runtimes
from gardener.api.extensions import CONTAINER_RUNTIMES
from kube.objects import Key, Object, key
from kube.runtime.client import Form, Selection


def _wanted(operation: ShootOperation) -> list[Object]:
    return list(container_runtimes.objects(operation.shoot, operation.technical_id))


async def deploy(operation: ShootOperation) -> None:
    """Write the ContainerRuntimes.

    Raises:
        ReconcileError: an input is missing or invalid, or an object could not be written.
        ExtensionError: the extension failed, or did not finish in time.
    """
    await asyncio.gather(*(operation.ask(CONTAINER_RUNTIME, each) for each in _wanted(operation)))


async def wait(operation: ShootOperation) -> None:
    """Wait until their extensions have responded.

    Raises:
        ExtensionError: the extension failed, or did not finish in time.
    """
    await asyncio.gather(*(operation.until_answered(CONTAINER_RUNTIME, key(each)) for each in _wanted(operation)))


async def remove_stale(operation: ShootOperation) -> None:
    """Remove ContainerRuntimes that no pool requests, and wait.

    Raises:
        ExtensionError: the extension failed, or did not finish in time.
    """
    await _remove(operation, keeps={key(each) for each in _wanted(operation)})


async def remove(operation: ShootOperation) -> None:
    """Remove all ContainerRuntimes, and wait. Raises ExtensionError, KubeError."""
    await _remove(operation, keeps=())


async def _remove(operation: ShootOperation, *, keeps: Collection[Key]) -> None:
    selection = Selection(namespace=operation.technical_id)
    found = await operation.seed.client.list(CONTAINER_RUNTIMES, selection, form=Form.METADATA)
    names = [key(each) for each in found if key(each) not in keeps]
    uids = await asyncio.gather(*(operation.extensions.delete(CONTAINER_RUNTIME, each) for each in names))
    wait_until_gone = operation.extensions.wait_until_gone
    going = zip(names, uids, strict=True)
    await asyncio.gather(
        *(wait_until_gone(CONTAINER_RUNTIME, name, expected_uid=expected_uid) for name, expected_uid in going)
    )
