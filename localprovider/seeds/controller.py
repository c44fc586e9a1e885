"""Control loop for Shoots that are seeds.

Workers       pools of Shoots
Deployments   API servers of Shoots that start or stop
Clusters      whether a Shoot may be a seed
"""

from functools import partial

from gardener.api.extensions import CLUSTERS, WORKERS
from kube.objects import Key, Object, key
from kube.runtime.cache import Change, Store, View, without_managed_fields
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped
from kube.runtime.predicates import changed, happened
from localprovider.runner.controller import ASKS, DEPLOYMENTS_VIEW
from localprovider.runner.pods import Pods
from localprovider.seeds.reconcile import SeedReconciler, may_be_seed
from process.clusters import Cluster

_BY_NAMESPACE = "namespace"
_WORKERS_VIEW = View(WORKERS, without_managed_fields, indexes=((_BY_NAMESPACE, lambda obj: (key(obj).namespace,)),))
_CLUSTERS_VIEW = View(CLUSTERS, may_be_seed)


def declare(seed: Cluster, pods: Pods, *, workers: int) -> ControlLoop:
    loop = ControlLoop("local-seeds", kind=WORKERS, workers=workers)
    reconciler = SeedReconciler(client=seed.client, pods=pods)

    def follow() -> None:
        pools = loop.watch(seed.caches, _WORKERS_VIEW, enqueue(when=ASKS))
        of_namespace = enqueue_mapped(partial(_in_namespace, pools), when=changed("spec.replicas"))
        deployments = loop.watch(seed.caches, DEPLOYMENTS_VIEW, of_namespace)
        of_cluster = enqueue_mapped(partial(_of_cluster, pools), when=happened)
        reconciler.begin(pools, deployments, loop.watch(seed.caches, _CLUSTERS_VIEW, of_cluster))

    loop.when_served(seed.discovery, [WORKERS, CLUSTERS], follow)
    return loop.reconciled_by(reconciler)


def _in_namespace(pools: Store[Object], change: Change[Object]) -> list[Key]:
    return pools.keys_by_index(_BY_NAMESPACE, change.key.namespace)


def _of_cluster(pools: Store[Object], change: Change[bool]) -> list[Key]:
    return pools.keys_by_index(_BY_NAMESPACE, change.key.name)
