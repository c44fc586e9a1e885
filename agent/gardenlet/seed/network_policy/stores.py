"""Watches of the seed, and the namespaces that a change affects."""

from collections.abc import Iterable, Sequence

from agent.gardenlet.seed.namespace_policies import NAMESPACES_VIEW, POLICIES_VIEW, ExistingPolicy
from agent.gardenlet.seed.network_policy.rules.networks import Endpoint, ShootNetworks, endpoints_of
from gardener.api.extensions import CLUSTERS
from gardener.network_policies import SHOOT_NAMESPACE_PREFIX
from kube.objects import Key
from kube.resources import ENDPOINTS
from kube.runtime.cache import Change, Store, View
from kube.runtime.client import Client
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped, enqueue_users
from kube.runtime.predicates import changed, changed_or_listed
from kube.runtime.presence import present
from process.clusters import Cluster

_API_SERVER = Key("default", "kubernetes")
_ENDPOINTS_VIEW = View(
    ENDPOINTS, endpoints_of, namespace=_API_SERVER.namespace, field_selector=f"metadata.name={_API_SERVER.name}"
)
_CLUSTERS_VIEW = View(CLUSTERS, ShootNetworks.of)


class Stores:
    """Caches of the seed. Clusters are watched as soon as they are served: the seed flow defines them."""

    def __init__(self, loop: ControlLoop, seed: Cluster) -> None:
        self._loop, self._caches = loop, seed.caches
        self.namespaces = loop.watch(seed.caches, NAMESPACES_VIEW, enqueue(when=changed_or_listed))
        self.policies = loop.watch(seed.caches, POLICIES_VIEW, enqueue_mapped(_namespace_of, when=changed()))
        self._endpoints = loop.watch(seed.caches, _ENDPOINTS_VIEW, enqueue_users(self._all_namespaces))
        self._clusters: Store[ShootNetworks] | None = None
        loop.when_served(seed.discovery, (CLUSTERS,), self._watch_clusters)

    @property
    def endpoints(self) -> Sequence[Endpoint] | None:
        """Endpoints of the API server; None if there is no Endpoints object."""
        return self._endpoints.get(_API_SERVER)

    @property
    def are_shoots_known(self) -> bool:
        """Whether the first list of Shoots is complete, or the kind is not served."""
        return self._clusters is None or self._clusters.synced.is_set()

    async def shoot(self, client: Client, namespace: str) -> ShootNetworks | None:
        """Networks of the Shoot of a namespace.

        Raises:
            KubeError: they can't be read.
        """
        if self._clusters is None or not namespace.startswith(SHOOT_NAMESPACE_PREFIX):
            return None
        return await present(client, self._clusters, Key("", namespace))

    def enqueue_all(self) -> None:
        for name in list(self.namespaces.all_keys()):
            self._loop.queue.add(name)

    def _watch_clusters(self) -> None:
        self._clusters = self._loop.watch(self._caches, _CLUSTERS_VIEW, enqueue_mapped(self._namespace_of_cluster))

    def _all_namespaces(self, _: Key) -> Iterable[Key]:
        return list(self.namespaces.all_keys())

    def _namespace_of_cluster(self, change: Change[ShootNetworks]) -> Iterable[Key]:
        return [change.key] if self.namespaces.get(change.key) is not None else []


def _namespace_of(change: Change[ExistingPolicy | None]) -> Iterable[Key]:
    return [Key("", change.key.namespace)]
