"""Watches of the seed: the ManagedResources of its components, and policies that another program creates."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent.gardenlet.common.managed_resource_writes import ManagedResourceWrites
from agent.gardenlet.seed.care.rules.condition import SHOWN
from agent.gardenlet.seed.namespace_policies import NAMESPACES_VIEW, POLICIES_VIEW, ExistingPolicy
from agent.shared.network_policy.rules.projections import Namespace
from config.gardenlet.controllers import NetworkPolicy
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.conditions import RESOURCES_GOOD
from gardener.keys import CONTROLLER_INSTALLATION_NAME
from gardener.network_policies import GARDEN_NAMESPACE, Selector, is_selected, names_of
from kube.objects import Key, Object, condition, labels, mapping, metadata, spec, uid
from kube.runtime.cache import Change, Store, View
from kube.runtime.client import Client, Selection
from kube.runtime.loop import ControlLoop, enqueue_mapped
from kube.runtime.predicates import changed_or_listed
from process.clusters import Cluster

_KEPT_OF_METADATA = ("namespace", "name", "uid", "generation")


def checked(managed_resource: Object) -> Object | None:
    """Cached fields of a ManagedResource: generation, and relevant parts of the status.

    None if it is not of a component of the seed: without a class, it is for a Shoot; an installed extension has its own
    conditions, and its failure affects only the Shoots that need it.
    """
    if not spec(managed_resource).get("class") or CONTROLLER_INSTALLATION_NAME in labels(managed_resource):
        return None
    status, meta = mapping(managed_resource.get("status")), metadata(managed_resource)
    return {
        "metadata": {name: meta[name] for name in _KEPT_OF_METADATA if name in meta},
        "status": {
            "observedGeneration": status.get("observedGeneration"),
            "conditions": [found for type_ in RESOURCES_GOOD if (found := condition(managed_resource, type_))],
        },
    }


_GARDEN_VIEW = View(MANAGED_RESOURCES, checked, namespace=GARDEN_NAMESPACE)
_ISTIO_VIEW = View(MANAGED_RESOURCES, checked, namespace="istio-system")


class Components:
    """Watches ManagedResources as soon as they are served: the seed flow defines them.

    Args:
        own: the Seed.
        writes: those of the seed flow.
    """

    def __init__(self, loop: ControlLoop, seed: Cluster, *, own: Key, writes: ManagedResourceWrites) -> None:
        self._loop, self._caches, self._own = loop, seed.caches, own
        self._stores: list[Store[Object | None]] = []
        self.writes = writes
        loop.when_served(seed.discovery, (MANAGED_RESOURCES,), self._begin)

    @property
    def are_served(self) -> bool:
        return bool(self._stores)

    @property
    def are_listed(self) -> bool:
        """Whether the first lists of served kinds are complete."""
        return all(store.synced.is_set() for store in self._stores)

    def all(self) -> list[Object]:
        return [found for store in self._stores for found in store.values() if found is not None]

    def _begin(self) -> None:
        handler = enqueue_mapped(self._seed_of, when=changed_or_listed)
        self._stores = [self._loop.watch(self._caches, view, handler) for view in (_GARDEN_VIEW, _ISTIO_VIEW)]
        self._loop.queue.add(self._own)

    def _seed_of(self, change: Change[Object | None]) -> Sequence[Key]:
        if change.new is None and change.old is not None:
            self.writes.forget(change.key, uid(change.old))
        return (self._own,)


@dataclass(frozen=True, slots=True)
class PoliciesElsewhere:
    """Policies of namespaces in which another program creates them."""

    client: Client
    namespaces: Store[Namespace]
    policies: Store[ExistingPolicy | None]
    served: Sequence[Selector]
    additional: Sequence[Selector]

    @classmethod
    def declared(cls, loop: ControlLoop, seed: Cluster, settings: NetworkPolicy) -> "PoliciesElsewhere | None":
        """Watch them; None if the configuration names no such namespaces."""
        if not settings.namespaces_served_elsewhere:
            return None
        return cls(
            client=seed.client,
            namespaces=loop.watch(seed.caches, NAMESPACES_VIEW),
            policies=loop.watch(seed.caches, POLICIES_VIEW),
            served=[each.as_object() for each in settings.namespaces_served_elsewhere],
            additional=[each.as_object() for each in settings.additional_namespace_selectors],
        )

    async def missing(self) -> Mapping[str, Sequence[str]]:
        """Return the names of missing policies by namespace; those of the first namespaces are confirmed.

        Raises:
            KubeError: they can't be listed.
        """
        found: dict[str, Sequence[str]] = {}
        for key, namespace in list(self.namespaces.items()):
            if namespace.is_terminating or not is_selected(namespace.labels, self.served):
                continue
            names = names_of(key.name, namespace.labels, additional=self.additional)
            missing = self._unknown(key.name, names)
            if missing and len(found) <= SHOWN:
                await self._list(key.name)
                missing = self._unknown(key.name, names)
            if missing:
                found[key.name] = missing
        return found

    def _unknown(self, namespace: str, names: Iterable[str]) -> Sequence[str]:
        return [name for name in names if self.policies.get(Key(namespace, name)) is None]

    async def _list(self, namespace: str) -> None:
        view = self.policies.view
        for live in await self.client.list(view.resource, Selection(namespace, view.label_selector), form=view.form):
            self.policies.observe(live)
