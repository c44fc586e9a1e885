"""Extension controllers: one for each kind, which differ only in their actions.

extension objects  of the type `local`: created, deleted, or with a request for an operation
Clusters           whose Shoot may be reconciled again
"""

from functools import partial

from gardener.api.extensions import CLUSTERS
from gardener.keys import OPERATION
from kube.objects import Key, Object, is_deleting, key, spec
from kube.runtime.cache import Change, Store, View, without_managed_fields
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped
from kube.runtime.predicates import all_of, annotation, any_of, changed, exists, listed
from kube.runtime.status import StatusWriter
from localprovider.extensions.actuators import Actuator, World
from localprovider.extensions.reconcile import TYPE, Reconciler, is_to_be_left_alone
from process.clusters import Cluster

_BY_NAMESPACE = "namespace"
_CLUSTERS_VIEW = View(CLUSTERS, is_to_be_left_alone)


def declare(seed: Cluster, actuator: Actuator, world: World, *, workers: int) -> ControlLoop:
    resource = actuator.resource
    view = View(resource, without_managed_fields, indexes=((_BY_NAMESPACE, _namespace_of),))
    loop = ControlLoop(f"local-{resource.kind.lower()}", kind=resource, workers=workers)
    reconciler = Reconciler(actuator=actuator, world=world, clock=seed.clock)

    def follow() -> None:
        is_asked = all_of(
            exists, _is_ours, any_of(listed, changed("metadata.generation", annotation(OPERATION), is_deleting))
        )
        objects = loop.watch(seed.caches, view, enqueue(when=is_asked))
        clusters = loop.watch(seed.caches, _CLUSTERS_VIEW, enqueue_mapped(partial(_of_cluster, objects), when=exists))
        reconciler.begin(objects, clusters, StatusWriter(seed.client, objects))

    loop.when_served(seed.discovery, [resource, CLUSTERS], follow)
    return loop.reconciled_by(reconciler)


def _namespace_of(obj: Object) -> tuple[str]:
    return (key(obj).namespace,)


def _is_ours(change: Change[Object]) -> bool:
    return change.new is not None and spec(change.new).get("type") == TYPE


def _of_cluster(objects: Store[Object], change: Change[bool]) -> list[Key]:
    """Objects that were left alone, and may be reconciled now."""
    return objects.keys_by_index(_BY_NAMESPACE, change.key.name) if change.old and not change.new else []
