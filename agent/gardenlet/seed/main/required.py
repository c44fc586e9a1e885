"""Waiting for changes by other programs in the garden and in the seed."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.seed.main.operation import SeedOperation
from agent.gardenlet.seed.main.rules.prerequisites import unready_extensions
from gardener.api.kinds import MANAGED_RESOURCES
from kube.objects import key
from kube.runtime.cache import Store
from kube.runtime.client import Form
from kube.runtime.controller import ReconcileError

_EXTENSIONS_SECONDS = 60.0
_GONE_SECONDS = 300.0
_LOOK_SECONDS = 5.0
_MOST_NAMED = 10


async def until_extensions_are_ready(operation: SeedOperation) -> None:
    """Wait for required extensions.

    Raises:
        ReconcileError: they are not ready in time.
    """

    def problem() -> str:
        return unready_extensions(
            operation.seed,
            installations=operation.installations.values(),
            registrations={name.name: each for name, each in operation.registrations.items()},
        )

    await _until_none(problem, operation.installations, operation.registrations, seconds=_EXTENSIONS_SECONDS)


async def until_installations_are_gone(operation: SeedOperation) -> None:
    """Wait for the clean-up of extensions, which need objects of the seed.

    Raises:
        ReconcileError: they are not gone in time.
    """

    def problem() -> str:
        return _still_there("ControllerInstallations", (key(each).name for each in operation.installations.values()))

    await _until_none(problem, operation.installations, seconds=_GONE_SECONDS)


async def until_managed_resources_are_gone(operation: SeedOperation) -> None:
    """Poll the API server: a ManagedResource that a watch has not reported yet would lose its objects.

    Raises:
        ReconcileError: they are not gone in time.
    """
    until = asyncio.get_running_loop().time() + _GONE_SECONDS
    while problem := await _managed_resources(operation):
        if asyncio.get_running_loop().time() >= until:
            raise ReconcileError(problem)
        waits_for(problem)
        await asyncio.sleep(_LOOK_SECONDS)


async def _managed_resources(operation: SeedOperation) -> str:
    listed = await operation.cluster.discovery.list_if_served(MANAGED_RESOURCES, form=Form.METADATA)
    return _still_there("ManagedResources", (str(key(each)) for each in listed))


def _still_there(what: str, names: Iterable[str]) -> str:
    found = sorted(names)
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return f"{what} still exist: {', '.join(found[:_MOST_NAMED])}{more}" if found else ""


async def _until_none(problem: Callable[[], str], *stores: Store[Any], seconds: float) -> None:
    """Return when there is no problem; check again whenever a store changes."""
    changed = asyncio.Event()
    unsubscribe = [store.subscribe(lambda _: changed.set()) for store in stores]
    try:
        async with asyncio.timeout(seconds):
            while found := problem():
                waits_for(found)
                changed.clear()
                await changed.wait()
    except TimeoutError:
        raise ReconcileError(problem()) from None
    finally:
        for each in unsubscribe:
            each()
