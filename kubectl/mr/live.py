"""Objects in the target cluster, and their health by the rules of the health controller."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from gardener.managed_resource.references import key_of_reference, listed_in
from gardener.overview.hints import ELSEWHERE, TARGET_REMEDY, is_elsewhere
from gardener.overview.objects import Health, HealthStatus, Live, as_reported, health_status
from kube.errors import Forbidden, KindNotServed, KubeError
from kube.objects import Key, Object, key, metadata, uid
from kube.resources import JOBS, PODS, REPLICA_SETS, Resource
from kube.runtime.client import Selection
from kubectl.errors import UserError
from kubectl.session import Cluster, Session, gathered
from kubectl.style import BLUE, GREEN, RED, YELLOW, Word

_AT_ONCE = 16
_MOST_LOOKED_FOR = 50


async def read_all(cluster: Cluster, references: Iterable[Object]) -> list[Live]:
    """Objects behind references, in their order."""
    return await gathered(partial(read, cluster), references, at_once=_AT_ONCE)


async def read(cluster: Cluster, reference: Object) -> Live:
    try:
        resource = await cluster.discovery.find(reference.get("apiVersion") or "", reference.get("kind") or "")
        if not resource.namespaced:
            # While its kind was not served, the agent could not know that it has no namespace.
            reference = {**reference, "namespace": ""}
        obj = await read_object(cluster, reference)
    except KindNotServed as error:
        return Live(reference, None, HealthStatus(Health.MISSING, str(error)))
    except Forbidden:
        return Live(reference, None, HealthStatus(Health.UNKNOWN, "you may not read it"))
    except KubeError as error:
        return Live(reference, None, HealthStatus(Health.UNKNOWN, str(error)))
    return Live(reference, obj, health_status(obj) if obj else HealthStatus(Health.MISSING))


async def demand_here(session: Session, managed_resource: Object) -> None:
    """Check that the objects are in the cluster that the flags name. Raises UserError."""
    if session.target is not session.source:
        return
    found = await read_all(session.target, listed_in(managed_resource)[:_MOST_LOOKED_FOR])
    if is_elsewhere(managed_resource, as_reported(managed_resource, found)):
        raise UserError(f"{ELSEWHERE}, but ManagedResource {key(managed_resource)} lists them", hint=TARGET_REMEDY)


async def read_object(cluster: Cluster, reference: Mapping[str, Any]) -> Object | None:
    """Read the object of a reference; None if it does not exist."""
    resource = await cluster.discovery.find(reference.get("apiVersion") or "", reference.get("kind") or "")
    namespace = (reference.get("namespace") or "") if resource.namespaced else ""
    return await cluster.client.find(resource, Key(namespace, reference.get("name") or ""))


def by_key(found: Iterable[Live]) -> dict[str, Live]:
    return {key_of_reference(live.reference): live for live in found}


# --- health as a word in colour

_HEALTH = {
    Health.HEALTHY: GREEN,
    Health.COMPLETED: GREEN,
    Health.PROGRESSING: BLUE,
    Health.UNHEALTHY: RED,
    Health.MISSING: RED,
    Health.DELETING: YELLOW,
    Health.UNKNOWN: YELLOW,
}


def health_word(status: HealthStatus) -> Word:
    return Word(status.health.value, _HEALTH[status.health])


# --- owned objects

OWNERS = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController"})


@dataclass(frozen=True, slots=True)
class Owned:
    """Object that another one has made."""

    name: str
    uid: str
    status: HealthStatus
    is_idle: bool
    """Whether it is an old ReplicaSet, kept for a rollback."""


async def owned_objects(cluster: Cluster, namespaces: Iterable[str]) -> dict[str, list[Owned]]:
    """ReplicaSets, Jobs and Pods in these namespaces, by the uid of their owner. Only displayed fields are kept."""
    found: dict[str, list[Owned]] = {}
    for namespace in sorted(set(namespaces)):
        for resource in (REPLICA_SETS, JOBS, PODS):
            for obj in await _listed(cluster, resource, namespace):
                for owner in metadata(obj).get("ownerReferences") or []:
                    found.setdefault(owner.get("uid") or "", []).append(_owned(obj))
    return found


async def _listed(cluster: Cluster, resource: Resource, namespace: str) -> Sequence[Object]:
    try:
        return await cluster.client.list(resource, Selection(namespace=namespace))
    except Forbidden:
        return ()


def _owned(obj: Object) -> Owned:
    idle = obj["kind"] == "ReplicaSet" and not (obj.get("spec") or {}).get("replicas")
    return Owned(f"{obj['kind']}/{key(obj).name}", uid(obj), health_status(obj), idle)
