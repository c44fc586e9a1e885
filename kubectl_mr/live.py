"""Objects as they are in the target cluster, and how they fare by the rules of the health controller."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from agent.health.checks.registry import health_rule, progress_rule
from agent.health.checks.rule import Malformed
from agent.health.findings import is_skipped
from agent.managed_resource.references import key_of_reference
from kube.client import Selection
from kube.errors import Forbidden, KindNotServed, KubeError, NotFound
from kube.objects import Object, condition, finalizers, is_deleting, key, metadata, uid
from kube.resources import PODS, Resource
from kubectl_mr.session import Cluster
from kubectl_mr.style import BLUE, GREEN, RED, YELLOW, Word

_AT_ONCE = 16


class Health(StrEnum):
    HEALTHY = "Healthy"
    PROGRESSING = "Progressing"
    UNHEALTHY = "Unhealthy"
    MISSING = "Missing"
    DELETING = "Deleting"
    UNKNOWN = "Unknown"


_COLORS = {
    Health.HEALTHY: GREEN,
    Health.PROGRESSING: BLUE,
    Health.UNHEALTHY: RED,
    Health.MISSING: RED,
    Health.DELETING: YELLOW,
    Health.UNKNOWN: YELLOW,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    health: Health
    message: str = ""

    @property
    def word(self) -> Word:
        return Word(self.health.value, _COLORS[self.health])


@dataclass(frozen=True, slots=True)
class Live:
    """An object that a ManagedResource lists; None: it does not exist, or could not be read."""

    reference: Object
    object: Object | None
    verdict: Verdict

    @property
    def name(self) -> str:
        return short_name(self.reference)


def short_name(reference: Mapping[str, Any]) -> str:
    """`Deployment/shop/storefront`; the group stands for nothing that people mix up."""
    parts = (reference.get("kind"), reference.get("namespace"), reference.get("name"))
    return "/".join(part for part in parts if part)


def name_of(obj: Object) -> str:
    return short_name({"kind": obj.get("kind"), **metadata(obj)})


# --- judging


def judged(obj: Object) -> Verdict:
    """How a live object fares."""
    if is_deleting(obj):
        return Verdict(Health.DELETING, _held_by(obj))
    if is_skipped(obj):
        return Verdict(Health.HEALTHY, "not checked: skip-health-check is set")
    api_version, kind = obj.get("apiVersion") or "", obj.get("kind") or ""
    try:
        progress = progress_rule(api_version, kind)
        if progress is not None and progress.progress is not None and (waits_for := progress.progress(obj)):
            return Verdict(Health.PROGRESSING, waits_for)
        rule = health_rule(api_version, kind)
        wrong = rule.health(obj) if rule is not None else None
    except Malformed as error:
        return Verdict(Health.UNKNOWN, str(error))
    return Verdict(Health.UNHEALTHY, wrong) if wrong else Verdict(Health.HEALTHY)


_REMAINING = ("NamespaceContentRemaining", "NamespaceFinalizersRemaining", "NamespaceDeletionDiscoveryFailure")


def _held_by(obj: Object) -> str:
    names = finalizers(obj)
    if obj.get("kind") == "Namespace":
        remaining = [
            found.get("message") or ""
            for kind in _REMAINING
            if (found := condition(obj, kind)) and found.get("status") == "True"
        ]
        return " ".join(remaining) or "waits until all in it is gone"
    return f"waits for {', '.join(names)}" if names else "waits for its own end"


# --- reading


async def read_all(cluster: Cluster, references: Iterable[Object]) -> list[Live]:
    """The objects behind references, in their order."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(reference: Object) -> Live:
        async with slots:
            return await read(cluster, reference)

    return await asyncio.gather(*(one(reference) for reference in references))


async def read(cluster: Cluster, reference: Object) -> Live:
    try:
        obj = await read_object(cluster, reference)
    except KindNotServed as error:
        return Live(reference, None, Verdict(Health.MISSING, str(error)))
    except Forbidden:
        return Live(reference, None, Verdict(Health.UNKNOWN, "you may not read it"))
    except KubeError as error:
        return Live(reference, None, Verdict(Health.UNKNOWN, str(error)))
    return Live(reference, obj, judged(obj) if obj else Verdict(Health.MISSING))


async def read_object(cluster: Cluster, reference: Mapping[str, Any]) -> Object | None:
    """None if there is none. Raises KubeError."""
    resource = await cluster.discovery.find(reference.get("apiVersion") or "", reference.get("kind") or "")
    namespace = (reference.get("namespace") or "") if resource.namespaced else ""
    try:
        return await cluster.client.get(resource, reference.get("name") or "", namespace=namespace)
    except NotFound:
        return None


def by_key(found: Iterable[Live]) -> dict[str, Live]:
    return {key_of_reference(live.reference): live for live in found}


def listed_in(managed_resource: Object) -> list[Object]:
    """The references of what it manages, those of an unfinished pass at the end."""
    status = managed_resource.get("status") or {}
    references = {key_of_reference(found): found for found in status.get("resources") or []}
    for found in status.get("pendingResources") or []:
        references.setdefault(key_of_reference(found), found)
    return list(references.values())


# --- what objects own

REPLICA_SETS = Resource("apps", "v1", "ReplicaSet", "replicasets", namespaced=True)
JOBS = Resource("batch", "v1", "Job", "jobs", namespaced=True)
OWNERS = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController"})


@dataclass(frozen=True, slots=True)
class Owned:
    """An object that another one has made."""

    name: str
    uid: str
    verdict: Verdict
    is_idle: bool
    """An old ReplicaSet, kept for a roll-back."""


async def owned_objects(cluster: Cluster, namespaces: Iterable[str]) -> dict[str, list[Owned]]:
    """ReplicaSets, Jobs and Pods in these namespaces, by the uid of their owner. Only what is shown is kept."""
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
    return Owned(f"{obj['kind']}/{key(obj).name}", uid(obj), judged(obj), idle)
