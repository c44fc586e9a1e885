"""Objects that extensions respond to: one definition for each kind, from which its unit is derived."""

import asyncio
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from agent.gardenlet.common.extension_objects.kinds import Kind
from agent.gardenlet.flow.unit import Run, Unit, Wait
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.results import Going
from agent.gardenlet.shoot.main.skipping import no_waiting, workerless
from agent.gardenlet.shoot.main.tasks.components import known
from components.results import Result
from kube.objects import Key, Object, key
from kube.runtime.client import Form, Selection


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Requests:
    """Attributes:
    task: ID of the task that deploys them.
    title, awaited, after, destroyed: see `Unit`.
    manifests: makes the desired objects.
    names: of the desired objects; None: one with the name of the Shoot.
    reads: results of earlier tasks, for the objects.
    provides: result of the wait.
    carries_out: requested task of the Shoot's annotation: a reconciliation even if nothing has changed.
    is_demanded: whether to request one in other cases.
    is_needed: whether to wait even if the user skips waiting, since later tasks use the response.
    deploys: writes the objects; None: `deploy`.
    waits: waits for responses; None: `wait`, or `wait_for_one`.
    removes: deletes the objects, and returns when they are gone; None: `remove`.
    """

    kind: Kind
    task: str
    title: str
    awaited: str
    after: Collection[str]
    manifests: Callable[[ShootOperation], Iterable[Object]]
    names: Callable[[ShootOperation], Iterable[str]] | None = None
    reads: Collection[Result[Any]] = ()
    provides: Result[Any] | None = None
    carries_out: str = ""
    is_demanded: Callable[[ShootOperation], bool] = lambda _: False
    is_needed: bool = False
    destroyed: str = ""
    deploys: Run[ShootOperation] | None = None
    waits: Run[ShootOperation] | None = None
    removes: Run[ShootOperation] | None = None

    def keys(self, operation: ShootOperation) -> list[Key]:
        names = [operation.name.name] if self.names is None else self.names(operation)
        return [Key(operation.technical_id, each) for each in names]

    @property
    def unit(self) -> Unit[ShootOperation]:
        waits = wait_for_one if self.names is None else wait
        return Unit(
            id=self.task,
            title=self.title,
            deploy=self.deploys or partial(deploy, requests=self),
            after=self.after,
            skips=workerless,
            reads=self.reads,
            wait=Wait(
                self.awaited,
                self.waits or partial(waits, requests=self),
                unless=None if self.is_needed else no_waiting,
                provides=self.provides,
            ),
            destroy=self.removes or partial(remove, requests=self),
            destroyed=self.destroyed,
        )


async def deploy(operation: ShootOperation, requests: Requests) -> None:
    """Write the objects.

    Raises:
        ReconcileError: an input is missing or invalid, or an object could not be written.
        ExtensionError: an object of the same name is being deleted, and is not gone in time.
    """
    is_demanded = requests.is_demanded(operation) or operation.is_asked(requests.carries_out)
    with known():
        wanted = [*requests.manifests(operation)]
    await asyncio.gather(*(operation.ask(requests.kind, each, is_demanded=is_demanded) for each in wanted))


async def wait(operation: ShootOperation, requests: Requests) -> list[Object]:
    """Wait until the extensions have responded, and return the objects. Raises ExtensionError, KubeError."""
    answers = (operation.until_answered(requests.kind, each) for each in requests.keys(operation))
    found = await asyncio.gather(*answers)
    await operation.task_done(requests.carries_out)
    return found


async def wait_for_one(operation: ShootOperation, requests: Requests) -> Object:
    """Wait as `wait` does for the only object, and return it."""
    (found,) = await wait(operation, requests)
    return found


async def remove(operation: ShootOperation, requests: Requests) -> None:
    """Delete all objects of the kind, and wait until they are gone. Raises ExtensionError, KubeError."""
    await wait_until_gone(operation, requests.kind, await delete_all(operation, requests))


async def delete_all(operation: ShootOperation, requests: Requests) -> Going:
    """Delete all objects of the kind, without waiting."""
    is_one = requests.names is None
    names = requests.keys(operation) if is_one else await existing(operation, requests.kind)
    return await delete(operation, requests.kind, names)


async def remove_stale(operation: ShootOperation, requests: Requests) -> None:
    """Delete objects of the kind that are no longer desired, and wait. Raises ExtensionError, KubeError."""
    await wait_until_gone(operation, requests.kind, await delete_stale(operation, requests))


async def delete_stale(operation: ShootOperation, requests: Requests) -> Going:
    """Delete objects of the kind that are no longer desired, without waiting."""
    found, keeps = await existing(operation, requests.kind), requests.keys(operation)
    return await delete(operation, requests.kind, [each for each in found if each not in keeps])


async def remove_named(operation: ShootOperation, kind: Kind, names: Collection[Key]) -> None:
    """Delete objects, and wait until they are gone. Raises ExtensionError, KubeError."""
    await wait_until_gone(operation, kind, await delete(operation, kind, names))


async def existing(operation: ShootOperation, kind: Kind) -> list[Key]:
    """Objects of the kind, from the API server; empty if it does not serve the kind."""
    selection = Selection(namespace=operation.technical_id)
    found = await operation.seed.discovery.list_if_served(kind.resource, selection, form=Form.METADATA)
    return [key(each) for each in found]


async def delete(operation: ShootOperation, kind: Kind, names: Collection[Key]) -> Going:
    """Delete objects without waiting."""
    uids = await asyncio.gather(*(operation.extensions.delete(kind, each) for each in names))
    return dict(zip(names, uids, strict=True))


async def wait_for(operation: ShootOperation, kind: Kind, result: Result[Going]) -> None:
    """Wait until objects that an earlier task has deleted are gone. Raises ExtensionError, KubeError."""
    await wait_until_gone(operation, kind, operation.results[result])


async def wait_until_gone(operation: ShootOperation, kind: Kind, going: Going) -> None:
    """Wait until deleted objects are gone. Raises ExtensionError, KubeError."""
    wait = partial(operation.extensions.wait_until_gone, kind)
    await asyncio.gather(*(wait(name, expected_uid=uid) for name, uid in going.items() if uid))
