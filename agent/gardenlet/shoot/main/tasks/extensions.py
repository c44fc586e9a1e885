"""Extension objects: deployment, waiting, and removal of those that the Shoot no longer requests."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace

from agent.gardenlet.extension_objects.kinds import EXTENSION, Kind
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.rules.extensions import Extension, Stage, wanted
from gardener.api.extensions import EXTENSIONS
from kube.objects import Key, key
from kube.runtime.client import Form, Selection

Run = Callable[[ShootOperation], Awaitable[None]]


def deploys(*stages: Stage) -> Run:
    async def run(operation: ShootOperation) -> None:
        await asyncio.gather(*(_deploy(operation, each) for each in _of(operation, stages)))

    return run


def waits(*stages: Stage) -> Run:
    async def run(operation: ShootOperation) -> None:
        await asyncio.gather(*(_wait(operation, each) for each in _of(operation, stages)))

    return run


def deletes(*stages: Stage) -> Run:
    """Return a task that deletes the extensions with these stages of deletion."""

    async def run(operation: ShootOperation) -> None:
        await _delete(operation, _going(operation, stages))

    return run


def waits_until_gone(*stages: Stage) -> Run:
    async def run(operation: ShootOperation) -> None:
        await _wait_until_gone(operation, _going(operation, stages))

    return run


async def delete_stale(operation: ShootOperation) -> None:
    """Delete Extensions that the Shoot does not request."""
    operation.found.stale = await stale(operation)
    await _delete(operation, operation.found.stale)


async def wait_until_stale_are_gone(operation: ShootOperation) -> None:
    """Wait until the stale Extensions are gone.

    Raises:
        ExtensionError: the extension failed, or did not finish in time.
    """
    await _wait_until_gone(operation, operation.found.stale)


async def stale(operation: ShootOperation) -> list[Key]:
    """Extensions that the Shoot does not request."""
    if operation.found.has_new_namespace:
        return []
    keeps = {each.key(operation.technical_id) for each in _wanted(operation).values()}
    selection = Selection(namespace=operation.technical_id)
    return [
        key(each)
        for each in await operation.seed.client.list(EXTENSIONS, selection, form=Form.METADATA)
        if key(each) not in keeps
    ]


async def _delete(operation: ShootOperation, names: Collection[Key]) -> None:
    uids = await asyncio.gather(*(operation.extensions.delete(EXTENSION, each) for each in names))
    operation.found.going.update(zip(names, uids, strict=True))


async def _wait_until_gone(operation: ShootOperation, names: Collection[Key]) -> None:
    going, wait = operation.found.going, operation.extensions.wait_until_gone
    await asyncio.gather(*(wait(EXTENSION, each, expected_uid=going.get(each, "")) for each in names))


def _going(operation: ShootOperation, stages: Collection[Stage]) -> list[Key]:
    return [each.key(operation.technical_id) for each in _wanted(operation).values() if each.deleted in stages]


def _wanted(operation: ShootOperation) -> dict[str, Extension]:
    return wanted(operation.shoot, operation.registrations.values())


def _of(operation: ShootOperation, stages: Collection[Stage]) -> list[Extension]:
    return [each for each in _wanted(operation).values() if _stage(operation, each) in stages]


def _stage(operation: ShootOperation, extension: Extension) -> Stage:
    """Stage of the deployment; without workers, the last one is the stage after the API server."""
    is_late = extension.reconciled is Stage.AFTER_WORKER and operation.is_workerless
    return Stage.AFTER_API_SERVER if is_late else extension.reconciled


def _kind(extension: Extension) -> Kind:
    return replace(EXTENSION, longest=extension.seconds)


async def _deploy(operation: ShootOperation, extension: Extension) -> None:
    await operation.ask(_kind(extension), extension.manifest(operation.technical_id))


async def _wait(operation: ShootOperation, extension: Extension) -> None:
    await operation.until_answered(_kind(extension), extension.key(operation.technical_id))
