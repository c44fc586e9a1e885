"""Removal of a Shoot from its seed: objects applied to its cluster, and finally its namespace."""

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Protocol, TypeVar

from agent.gardenlet.common.shoot_states.saving import forget
from agent.gardenlet.flow.graph import ONCE, Retry, Task
from agent.gardenlet.flow.run import waits_for
from agent.gardenlet.flow.unit import Unit, Wait
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.tasks.cleanup import Left
from gardener.api.kinds import MANAGED_RESOURCES
from kube.errors import KubeError
from kube.objects import Key, Object, finalizers, held_by, is_deleting, key, spec, uid
from kube.resources import NAMESPACES
from kube.runtime.client import Form, Selection
from kube.runtime.waiting import NotInTimeError, Waiting, has_to_go
from process.clusters import Cluster

_MANAGED_SECONDS, _NAMESPACE_SECONDS = 600.0, 900.0
_OF_GARDENER = "origin=gardener"


async def delete_managed_resources(operation: ShootOperation) -> None:
    """Delete the ManagedResources created by Gardener."""
    for each in await _managed(operation, _OF_GARDENER):
        if not is_deleting(each):
            name = key(each)
            await operation.seed.client.delete_if_exists(MANAGED_RESOURCES, name, uid=uid(each))


async def wait_for_managed_resources(operation: ShootOperation) -> None:
    """Wait until the ManagedResources created by Gardener are gone.

    Raises:
        NotInTimeError: the wait timed out.
    """
    await _wait(operation, _OF_GARDENER)


async def wait_for_all_of_shoot(operation: ShootOperation) -> None:
    """Wait for all ManagedResources in the Shoot's cluster, including those of extensions.

    Raises: NotInTimeError, KubeError.
    """
    await _wait(operation, "", missing=lambda each: "" if spec(each).get("class") else has_to_go(each))


async def _managed(operation: ShootOperation, selector: str) -> list[Object]:
    selection = Selection(namespace=operation.technical_id, label_selector=selector)
    return await operation.seed.discovery.list_if_served(MANAGED_RESOURCES, selection)


async def _wait(operation: ShootOperation, selector: str, *, missing: Callable[[Object], str] = has_to_go) -> None:
    selection = Selection(namespace=operation.technical_id, label_selector=selector)
    await operation.waiting.until_none(
        MANAGED_RESOURCES, selection, seconds=_MANAGED_SECONDS, missing=missing, report=waits_for
    )


OBJECTS_OF_GARDENER = Unit(
    id="managed-resources",
    verb="Deleting",
    title="managed resources",
    deploy=delete_managed_resources,
    after=["workloads", "systems-gone"],
    retry=ONCE,
    wait=Wait("managed resources have been deleted", wait_for_managed_resources, id="managed-resources-gone"),
)
OBJECTS_OF_SHOOT_GONE = Task(
    "shoot-managed-resources-gone",
    "Waiting until shoot managed resources have been deleted",
    wait_for_all_of_shoot,
    after=["extensions-before-gone", "stale-extensions-gone", "control-plane-gone"],
    retry=ONCE,
)


# --- the end, of both kinds of deletion


class Leaving(Protocol):
    """A Shoot of which only the namespace is left."""

    @property
    def name(self) -> Key: ...
    @property
    def technical_id(self) -> str: ...
    @property
    def seed(self) -> Cluster: ...
    @property
    def garden(self) -> Cluster: ...
    @property
    def waiting(self) -> Waiting: ...


L = TypeVar("L", bound=Leaving)


async def namespace(shoot: Leaving) -> None:
    """Delete the namespace without waiting."""
    await shoot.seed.client.delete_if_exists(NAMESPACES, shoot.technical_id)


async def wait_for_namespace(shoot: Leaving) -> None:
    """Wait until the namespace is gone.

    Raises:
        NotInTimeError: the wait timed out; the message names objects with finalizers.
    """
    name = Key("", shoot.technical_id)
    try:
        await shoot.waiting.until_gone(NAMESPACES, name, seconds=_NAMESPACE_SECONDS, report=waits_for)
    except NotInTimeError as error:
        if not (left := await _holders(shoot)).count:
            raise
        raise NotInTimeError(f"{error}; delete these objects first: {left}") from error


async def _holders(shoot: Leaving) -> Left:
    """Objects with finalizers in the namespace, of any kind, including those that are not being deleted yet."""
    left, served = Left(), await shoot.seed.discovery.served()
    for resource in {(each.group, each.plural): each for each in reversed(served) if each.namespaced}.values():
        with suppress(KubeError):  # some kinds can't be listed
            async for page in shoot.seed.client.pages(
                resource, Selection(namespace=shoot.technical_id), form=Form.METADATA
            ):
                for each in filter(finalizers, page):
                    left.add(resource, each, held_by(each))
    return left


async def shoot_state(shoot: Leaving) -> None:
    """Delete the ShootState in the garden."""
    await forget(shoot.garden.client, shoot.name)


def namespace_goes(its_id: str, after: Collection[str], retry: Retry = ONCE) -> Unit[L]:
    """Return the unit that deletes the namespace, once nothing else is left."""
    return Unit(
        id=its_id,
        verb="Deleting",
        title="shoot namespace in Seed",
        deploy=namespace,
        after=after,
        retry=retry,
        wait=Wait("shoot namespace in Seed has been deleted", wait_for_namespace, id="namespace-gone"),
    )


def state_goes(after: Collection[str], retry: Retry = ONCE) -> Task[L]:
    return Task("state", "Deleting Shoot State", shoot_state, after=after, retry=retry)
