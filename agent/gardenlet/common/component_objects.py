"""Objects of components in the seed: written as sets, each with its component as owner.

    await objects.deploy("system", system.objects(values))
    await objects.destroy("system", system.objects(values))

ManagedResources are written after all other objects of a component, since they refer to their Secrets, and are removed
before those. A component without changes costs no request but for each object that extensions may mutate: it is sent in
each operation, so that their webhooks are called.
"""

from collections.abc import Iterable

from agent.gardenlet.common.managed_resource_writes import ManagedResourceWrites
from agent.gardenlet.flow.run import waits_for
from gardener import keys
from gardener.api.kinds import MANAGED_RESOURCES, VERTICAL_POD_AUTOSCALERS
from kube.apply.object_sets import ChangeSet, Marks, ObjectSets
from kube.objects import Object, annotations, key, uid
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from kube.runtime.client import Form, Selection
from kube.runtime.controller import ReconcileError
from kube.runtime.polling import wait_while
from process.clusters import Cluster

MARKS = Marks(
    label=keys.GARDENLET_MANAGED,
    value="true",
    owner=keys.GARDENLET_COMPONENT,
    digest=keys.GARDENLET_DIGEST,
    field_manager="gardenlet",
    collected=keys.GARBAGE_COLLECTABLE,
    adopts=True,
)
MUTATED = (CONFIG_MAPS, DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, SERVICES, STATEFUL_SETS, VERTICAL_POD_AUTOSCALERS)
"""Kinds of objects that webhooks of extensions mutate."""
_MANAGED = "/managed-resources"
"""Suffix of the owner of a component's ManagedResources."""
_COLLECTED = (SECRETS, CONFIG_MAPS)
_LOOK_SECONDS = 1.0
"""Seconds between two checks of the cache for deleted objects; a check sends no request."""


class ComponentError(ReconcileError):
    """Not all objects of a component are in their desired state."""


class ComponentObjects:
    """Writer of components' objects.

    Args:
        scope: prefix of the component's name in the annotations of its objects.
    """

    def __init__(self, cluster: Cluster, *, scope: str, writes: ManagedResourceWrites) -> None:
        self._cluster = cluster
        self._scope = scope
        self._writes = writes
        self._sets = ObjectSets(
            client=cluster.client,
            discovery=cluster.discovery,
            caches=cluster.caches,
            marks=MARKS,
            on_change=lambda _: None,  # changes by other clients are corrected by the next reconciliation
        )
        self._gone = set[str]()

    @property
    def kinds(self) -> set[Resource]:
        """Kinds of which components of this process may have objects."""
        return self._sets.kinds

    def owner(self, component: str) -> str:
        """Owner in the annotations of the component's objects."""
        return f"{self._scope}/{component}"

    async def close(self) -> None:
        await self._sets.close()

    async def deploy(self, component: str, objects: Iterable[Object]) -> list[Object]:
        """Write the objects of a component, and return those that changed.

        Raises:
            ComponentError: some could not be written.
        """
        self._gone.discard(component)
        managed, others = list[Object](), list[Object]()
        for obj in objects:
            (managed if _is_of(MANAGED_RESOURCES, obj) else others).append(obj)
        changes = await self._sets.apply(others, owner=self.owner(component), resends=may_be_mutated)
        _demand_complete(changes)
        later = await self._sets.apply(managed, owner=owner_of_managed_resources(self.owner(component)))
        for each in later.written:
            self._writes.note(each)
        _demand_complete(later)
        return [*changes.written, *later.written]

    async def destroy(self, component: str, objects: Iterable[Object], *, seconds: float) -> None:
        """Remove all objects of a component, and wait until they are gone; `objects` determines the kinds.

        Raises:
            ComponentError: they are not gone in time.
        """
        if self.is_gone(component):
            return
        kinds = {(obj["apiVersion"], obj["kind"]) for obj in objects}
        resources = [each for kind in sorted(kinds) if (each := await self._served(*kind)) is not None]
        managed = [each for each in resources if each == MANAGED_RESOURCES]
        others = [each for each in resources if each != MANAGED_RESOURCES]
        left = [(owner_of_managed_resources(self.owner(component)), managed), (self.owner(component), others)]

        async def problem() -> str:
            while left:
                owner, previous = left[0]
                changes = await self._sets.apply([], owner=owner, previous=previous)
                if not changes.is_complete:
                    return _problems(changes)
                del left[0]
            return ""

        if problems := await wait_while(problem, seconds=seconds, every=_LOOK_SECONDS, report=waits_for):
            raise ComponentError(f"{left[0][0]} is not gone in time: {problems}")
        self._gone.add(component)

    def is_gone(self, component: str) -> bool:
        """Whether this process has removed the component, or has found nothing to remove."""
        return component in self._gone

    def forget(self, place: str) -> None:
        """Forget that components `<place>/...` are gone, because none of them is deployed again."""
        self._gone = {each for each in self._gone if not each.startswith(f"{place}/")}

    async def destroy_collected(self) -> None:
        """Remove the objects that the resource manager's garbage collector would remove, once it is gone."""
        for resource in _COLLECTED:
            selection = Selection(label_selector=f"{MARKS.label}={MARKS.value},{keys.GARBAGE_COLLECTABLE}=true")
            for obj in await self._cluster.client.list(resource, selection, form=Form.METADATA):
                if annotations(obj).get(MARKS.owner, "").startswith(f"{self._scope}/"):
                    name = key(obj)
                    await self._cluster.client.delete_if_exists(resource, name, uid=uid(obj))

    async def _served(self, api_version: str, kind: str) -> Resource | None:
        resource = await self._cluster.discovery.kind_if_served(api_version, kind)
        if resource is None:
            await self._cluster.discovery.require_gone(api_version, kind)
        return resource


def owner_of_managed_resources(owner: str) -> str:
    """Owner of a component's ManagedResources; `owner` is that of its other objects."""
    return f"{owner}{_MANAGED}"


def may_be_mutated(obj: Object) -> bool:
    """Whether webhooks of extensions may mutate the object at any time."""
    return any(_is_of(each, obj) for each in MUTATED) and not obj.get("immutable")


def _is_of(resource: Resource, obj: Object) -> bool:
    return (obj.get("apiVersion"), obj.get("kind")) == (resource.api_version, resource.kind)


def _demand_complete(changes: ChangeSet) -> None:
    """Raise ComponentError if objects are missing; obsolete objects that are still there are no failure."""
    if changes.pending or changes.errors:
        raise ComponentError(_problems(changes))


def _problems(changes: ChangeSet) -> str:
    errors = [f"{name}: {error}" for name, error in sorted(changes.errors.items())]
    return "; ".join([*errors, *(f"{name} is being deleted" for name in sorted([*changes.pending, *changes.going]))])
