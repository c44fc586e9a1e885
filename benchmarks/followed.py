"""Follows workloads and ManagedResources by watches, and compares: what the conditions ought to be, and since when.

The expected conditions are computed from the objects by the same rules as in the agent, when a watch reports an object
to this process. So a condition is as late as its own event comes after that.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agent.resource_manager.health.pods import CountedPod, counted
from benchmarks.measuring import News, connected
from devcluster.cluster import Cluster
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.health.checks.deployment import PodsWanted
from gardener.health.findings import Reference, health_finding, pods_wanted, progress_finding
from kube.objects import Key, Object, key, resource_version
from kube.resources import DAEMON_SETS, DEPLOYMENTS, JOBS, PODS, STATEFUL_SETS, Resource
from kube.runtime.cache import Caches, Change, Store, View
from kube.runtime.client import Client

HEALTHY, PROGRESSING = "ResourcesHealthy", "ResourcesProgressing"
WORKLOADS = (
    DEPLOYMENTS,
    STATEFUL_SETS,
    DAEMON_SETS,
    JOBS,
)
"""Each ManagedResource has one of each, with its own name, which is the label `app` of the pods as well."""

_SETTLED = {HEALTHY: "True", PROGRESSING: "False"}


@dataclass(frozen=True, slots=True)
class _Assessed:
    is_healthy: bool
    is_progressing: bool
    pods: PodsWanted | None


def _assess(resource: Resource, obj: Object) -> _Assessed:
    name = key(obj)
    reference = Reference(resource.api_version, resource.kind, name.namespace, name.name)
    return _Assessed(
        is_healthy=health_finding(reference, obj) is None,
        is_progressing=progress_finding(reference, obj) is not None,
        pods=pods_wanted(reference, obj),
    )


def _conditions(obj: Object) -> dict[str, tuple[str, str, str]]:
    """Status, reason and message by type."""
    found = (obj.get("status") or {}).get("conditions") or []
    return {each["type"]: (each.get("status", ""), each.get("reason", ""), each.get("message", "")) for each in found}


_Status = tuple[dict[str, tuple[str, str, str]], str, int]
"""Conditions, checksum and resourceVersion."""


def _status(obj: Object) -> _Status:
    status = obj.get("status") or {}
    return _conditions(obj), status.get("secretsDataChecksum") or "", resource_version(obj)


def _is_applied(conditions: dict[str, tuple[str, str, str]]) -> bool:
    return conditions.get("ResourcesApplied", ("",))[0] == "True"


@dataclass(slots=True)
class Seen:
    """What happened since the last `Follower.forget`."""

    latencies: dict[str, list[float]] = field(default_factory=lambda: {HEALTHY: [], PROGRESSING: []})
    """Seconds, by condition."""
    changes: int = 0
    """Of conditions: several at once count once, as they are one write."""
    other_changes: int = 0
    """Of anything else, without a change of a condition."""


class Follower(News):
    """Made by `following`."""

    def __init__(self, client: Client, caches: Caches, namespace: str) -> None:
        super().__init__()
        self.client = client
        self._namespace = namespace
        self.seen = Seen()
        self._managed = caches.acquire(View(MANAGED_RESOURCES, _status))
        self._pods = caches.acquire(View(PODS, counted, indexes=(("app", _app),)))
        self._workloads: list[Store[_Assessed]] = [
            caches.acquire(View(resource, partial(_assess, resource))) for resource in WORKLOADS
        ]
        self._ought: dict[tuple[str, str], tuple[str, float]] = {}
        self._applied_at: dict[str, float] = {}

    async def start(self) -> None:
        stores: list[Store[Any]] = [self._managed, self._pods, *self._workloads]
        for store in stores:
            await store.synced.wait()
            store.subscribe(self.notify)
        self._managed.subscribe(self._managed_changed)
        self._pods.subscribe(self._pod_changed)
        for store in self._workloads:
            store.subscribe(lambda change: self._assess_anew(change.key.name))

    def forget(self) -> None:
        self.seen = Seen()

    def checksums(self) -> dict[str, str]:
        return {name.name: checksum for name, (_, checksum, _) in self._managed.items()}

    def count(self, *, status: dict[str, str] = _SETTLED, other_than: dict[str, str] | None = None) -> int:
        """How many ManagedResources say so, of objects that are so, and with another checksum than that."""
        before = other_than or {}
        return sum(
            all(
                conditions.get(type_, ("",))[0] == wanted and self._ought.get((name.name, type_), ("",))[0] == wanted
                for type_, wanted in status.items()
            )
            and checksum != before.get(name.name)
            for name, (conditions, checksum, _) in self._managed.items()
        )

    # --- what is

    def _managed_changed(self, change: Change[_Status]) -> None:
        if change.initial or change.old is None or change.new is None or change.old == change.new:
            return
        old, new = change.old[0], change.new[0]
        if old == new:
            self.seen.other_changes += 1
            return
        self.seen.changes += 1
        now, name = time.monotonic(), change.key.name
        if not _is_applied(old):
            # What is reported from now on could not be reported before.
            self._applied_at[name] = now
            return
        for type_, latencies in self.seen.latencies.items():
            before, after = old.get(type_, ("",))[0], new.get(type_, ("",))[0]
            ought, since = self._ought.get((name, type_), ("", 0.0))
            if before != after == ought:
                latencies.append(now - max(since, self._applied_at.get(name, 0.0)))

    # --- what ought to be

    def _pod_changed(self, change: Change[CountedPod | None]) -> None:
        for pod in (change.old, change.new):
            if pod is not None:
                self._assess_anew(pod.labels.get("app", ""))

    def _assess_anew(self, name: str) -> None:
        known = Key(self._namespace, name)
        found = [assessed for store in self._workloads if (assessed := store.get(known)) is not None]
        if len(found) < len(WORKLOADS):
            return
        progressing = any(
            each.is_progressing
            or (each.pods is not None and each.pods.problem(self._count(name, each.pods)) is not None)
            for each in found
        )
        for type_, good in ((HEALTHY, all(each.is_healthy for each in found)), (PROGRESSING, progressing)):
            status = str(good)
            if self._ought.get((name, type_), ("",))[0] != status:
                self._ought[name, type_] = status, time.monotonic()

    def _count(self, name: str, wanted: PodsWanted) -> int:
        return sum(pod is not None and wanted.select(pod.labels) for _, pod in self._pods.by_index("app", name))


def _app(pod: CountedPod | None) -> tuple[str, ...]:
    return (pod.labels.get("app", ""),) if pod is not None else ()


@asynccontextmanager
async def following(cluster: Cluster, namespace: str) -> AsyncIterator[Follower]:
    async with connected(cluster, namespaces=[namespace]) as (client, caches):
        follower = Follower(client, caches, namespace)
        await follower.start()
        yield follower
