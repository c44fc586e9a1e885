"""Extension objects: deployment, waiting, and removal of those that the Shoot no longer requests."""

import asyncio
from collections.abc import Collection
from dataclasses import replace

from agent.gardenlet.common.extension_objects.kinds import EXTENSION, Kind
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.results import Going
from agent.gardenlet.shoot.main.rules.extensions import Extension, Stage, wanted
from agent.gardenlet.shoot.main.tasks import requests
from kube.objects import Key


async def deploy(operation: ShootOperation, stage: Stage) -> None:
    """Write the Extensions of a stage. Raises ReconcileError, ExtensionError, KubeError."""
    await asyncio.gather(
        *(operation.ask(_kind(each), each.manifest(operation.technical_id)) for each in _of(operation, stage))
    )


async def wait(operation: ShootOperation, stage: Stage) -> None:
    """Wait for the Extensions of a stage. Raises ExtensionError, KubeError."""
    await asyncio.gather(
        *(operation.until_answered(_kind(each), each.key(operation.technical_id)) for each in _of(operation, stage))
    )


async def delete(operation: ShootOperation, stages: Collection[Stage]) -> Going:
    """Delete the Extensions with these stages of deletion, without waiting."""
    extensions = _wanted(operation).values()
    names = [each.key(operation.technical_id) for each in extensions if each.deleted in stages]
    return await requests.delete(operation, EXTENSION, names)


async def delete_stale(operation: ShootOperation) -> Going:
    """Delete Extensions that the Shoot does not request, without waiting."""
    return await requests.delete(operation, EXTENSION, await stale(operation))


async def stale(operation: ShootOperation) -> list[Key]:
    """Extensions that the Shoot does not request."""
    if operation.has_new_namespace:
        return []
    keeps = {each.key(operation.technical_id) for each in _wanted(operation).values()}
    return [each for each in await requests.existing(operation, EXTENSION) if each not in keeps]


def _wanted(operation: ShootOperation) -> dict[str, Extension]:
    return wanted(operation.shoot, operation.registrations.values())


def _of(operation: ShootOperation, stage: Stage) -> list[Extension]:
    return [each for each in _wanted(operation).values() if _stage(operation, each) is stage]


def _stage(operation: ShootOperation, extension: Extension) -> Stage:
    """Stage of the deployment; without workers, the last one is the stage after the API server."""
    is_late = extension.reconciled is Stage.AFTER_WORKER and operation.is_workerless
    return Stage.AFTER_API_SERVER if is_late else extension.reconciled


def _kind(extension: Extension) -> Kind:
    return replace(EXTENSION, longest=extension.seconds)
