"""Waiting for changes by other programs in the garden and in the seed."""

from collections.abc import Awaitable, Callable, Iterable

from agent.gardenlet.flow.graph import ONCE, Task
from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.seed.main.operation import SeedOperation
from agent.gardenlet.seed.main.rules.prerequisites import unready_extensions
from gardener.api.kinds import MANAGED_RESOURCES
from kube.objects import key
from kube.runtime.client import Form
from kube.runtime.controller import ReconcileError
from kube.runtime.polling import wait_while

_EXTENSIONS_SECONDS = 60.0
_GONE_SECONDS = 300.0
_LOOK_SECONDS = 5.0
_STORE_SECONDS = 0.2
"""Interval of checks of a store, which cost no request."""
_MOST_NAMED = 10


async def until_extensions_are_ready(operation: SeedOperation) -> None:
    """Wait for required extensions.

    Raises:
        ReconcileError: they are not ready in time.
    """

    async def problem() -> str:
        return unready_extensions(
            operation.seed,
            installations=operation.installations.values(),
            registrations={name.name: each for name, each in operation.registrations.items()},
        )

    await _until_none(problem, seconds=_EXTENSIONS_SECONDS)


async def until_installations_are_gone(operation: SeedOperation) -> None:
    """Wait for the clean-up of extensions, which need objects of the seed.

    Raises:
        ReconcileError: they are not gone in time.
    """

    async def problem() -> str:
        return _still_there("ControllerInstallations", (key(each).name for each in operation.installations.values()))

    await _until_none(problem, seconds=_GONE_SECONDS)


async def until_managed_resources_are_gone(operation: SeedOperation) -> None:
    """Poll the API server: a ManagedResource that a watch has not reported yet would lose its objects.

    Raises:
        ReconcileError: they are not gone in time.
    """

    async def problem() -> str:
        listed = await operation.cluster.discovery.list_if_served(MANAGED_RESOURCES, form=Form.METADATA)
        return _still_there("ManagedResources", (str(key(each)) for each in listed))

    await _until_none(problem, seconds=_GONE_SECONDS, every=_LOOK_SECONDS)


def _still_there(what: str, names: Iterable[str]) -> str:
    found = sorted(names)
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return f"{what} still exist: {', '.join(found[:_MOST_NAMED])}{more}" if found else ""


async def _until_none(problem: Callable[[], Awaitable[str]], *, seconds: float, every: float = _STORE_SECONDS) -> None:
    if left := await wait_while(problem, seconds=seconds, every=every, report=waits_for):
        raise ReconcileError(left)


EXTENSIONS = Task(
    "extensions",
    "Waiting until required extensions are ready",
    until_extensions_are_ready,
    after=["system"],
    retry=ONCE,
)
INSTALLATIONS_GONE = Task(
    "installations",
    "Ensuring all ControllerInstallations are gone",
    until_installations_are_gone,
    after=["cluster-identity"],
    retry=ONCE,
)
