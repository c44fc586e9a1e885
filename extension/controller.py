"""Control loops from an actuator.

    extension objects  of its type and classes: created, deleted, or with a request for an operation
    Clusters           whose Shoot may be reconciled again

A second loop keeps the conditions of the objects up to date, if the actuator checks their health.
"""

from collections.abc import Callable
from functools import partial

from extension.actuators import Actuator
from extension.health import HealthReconciler
from extension.reconcile import Reconciler
from extension.rules import is_to_be_left_alone
from gardener.api.extensions import CLUSTERS
from gardener.keys import OPERATION
from kube.objects import Key, Object, is_deleting, key
from kube.resources import Resource
from kube.runtime.cache import Change, Store, View, without_managed_fields
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped
from kube.runtime.predicates import Predicate, all_of, annotation, any_of, changed, exists, listed
from kube.runtime.status import StatusWriter
from process.clusters import Cluster

_BY_NAMESPACE = "namespace"
_CLUSTERS_VIEW = View(CLUSTERS, is_to_be_left_alone)


def declare(seed: Cluster, actuator: Actuator, *, workers: int) -> ControlLoop:
    """Declare the control loop for operations."""
    loop, resource = _loop(actuator, "", workers), actuator.resource
    reconciler = Reconciler(actuator=actuator, clock=seed.clock)

    def follow() -> None:
        asks: Predicate[Object] = any_of(listed, changed("metadata.generation", annotation(OPERATION), is_deleting))
        objects = loop.watch(seed.caches, _view(resource), enqueue(when=all_of(exists, _is_own(actuator), asks)))
        # Objects that were left alone may be reconciled now.
        released = enqueue_mapped(
            partial(_in_namespace, objects), when=lambda change: change.old is True and not change.new
        )
        clusters = loop.watch(seed.caches, _CLUSTERS_VIEW, released)
        reconciler.begin(objects, clusters, StatusWriter(seed.client, objects))

    loop.when_served(seed.discovery, [resource, CLUSTERS], follow)
    return loop.reconciled_by(reconciler)


def declare_health(seed: Cluster, actuator: Actuator, *, workers: int, seconds: float) -> ControlLoop:
    """Declare the control loop for conditions, which are checked after so many seconds each."""
    loop, resource = _loop(actuator, "-health", workers), actuator.resource
    reconciler = HealthReconciler(actuator=actuator, clock=seed.clock, seconds=seconds)

    def follow() -> None:
        asks: Predicate[Object] = any_of(listed, changed("status.lastOperation.state"))
        objects = loop.watch(seed.caches, _view(resource), enqueue(when=all_of(exists, _is_own(actuator), asks)))
        clusters = loop.watch(
            seed.caches, _CLUSTERS_VIEW, enqueue_mapped(partial(_in_namespace, objects), when=changed())
        )
        reconciler.begin(objects, clusters, StatusWriter(seed.client, objects))

    loop.when_served(seed.discovery, [resource, CLUSTERS], follow)
    return loop.reconciled_by(reconciler)


def checks_health(actuator: Actuator) -> bool:
    return type(actuator).health is not Actuator.health


def _loop(actuator: Actuator, suffix: str, workers: int) -> ControlLoop:
    resource = actuator.resource
    return ControlLoop(f"{actuator.type}-{resource.kind.lower()}{suffix}", kind=resource, workers=workers)


def _view(resource: Resource) -> View[Object]:
    return View(resource, without_managed_fields, indexes=((_BY_NAMESPACE, _namespace_of),))


def _namespace_of(obj: Object) -> tuple[str]:
    return (key(obj).namespace,)


def _is_own(actuator: Actuator) -> Callable[[Change[Object]], bool]:
    return lambda change: change.new is not None and actuator.handles(change.new)


def _in_namespace(objects: Store[Object], change: Change[bool]) -> list[Key]:
    """Objects in the namespace of a Cluster."""
    return objects.keys_by_index(_BY_NAMESPACE, change.key.name)
