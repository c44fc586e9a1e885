"""Conditions that follow changes of workloads: delay, number of calls, and no calls when idle."""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from agent.resource_manager.health.pods import CountedPod, counted
from benchmarks import report
from benchmarks.measuring import QUIET_SECONDS, Meter, News, connected, running, start
from benchmarks.report import Table, number
from benchmarks.workload import create_namespace, each_of, managed_resource, secret_of
from devcluster.cluster import Cluster
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.health.checks.workload_pods import PodsWanted
from gardener.health.findings import Reference, health_finding, pods_wanted, progress_finding
from kube.objects import Key, Object, key, metadata, resource_version
from kube.resources import DAEMON_SETS, DEPLOYMENTS, JOBS, NODES, PODS, SECRETS, STATEFUL_SETS, Resource
from kube.runtime.cache import Caches, Change, Store, View
from kube.runtime.client import Client, Selection

_NAMESPACE = "benchmark"
_NODES = 3
_AT_ONCE = 20
_WRITE = ("patch", "managedresources/status")
_COLUMNS = (
    *("phase", "s", "changes of conditions", "status writes", "other calls"),
    *("s behind, healthy", "s behind, progressing", "CPU s", "RSS (peak) MiB"),
)


@dataclass(frozen=True, slots=True)
class _Version:
    """Fields of the manifests that change."""

    image: str = "registry.example/image:1"
    replicas: int = 2


async def measure(*, count: int, rest: float) -> Table:
    async with running(nodes=_NODES) as (cluster, agent, audit), following(cluster, _NAMESPACE) as follower:
        await create_namespace(follower.client, _NAMESPACE)
        await start(agent)
        rows = await _Phases(Meter(agent, audit), follower, count).all(rest)
    kinds = ", ".join(resource.kind for resource in WORKLOADS)
    note = (
        f"Each has a {kinds}, on {_NODES} nodes. *Behind*: median and maximum (number) of the time from the event of an"
        " object that changes the status to the event of the condition, both as the measuring process receives them."
    )
    return Table(f"Health of {count} ManagedResources", _COLUMNS, rows, [note])


# --- expected conditions, with their times: computed from the objects by the same rules as in the agent, when
# a watch reports an object to this process. The delay of a condition is that of its own event after that.

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
    """Events since the last `Follower.forget`."""

    latencies: dict[str, list[float]] = field(default_factory=lambda: {HEALTHY: [], PROGRESSING: []})
    """Seconds, by condition."""
    changes: int = 0
    """Number of changes of conditions: several at once count once, as they are one write."""
    other_changes: int = 0
    """Number of changes of other fields, without a change of a condition."""


class Follower(News):
    """Follower of conditions and workloads; made by `following`."""

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
        """Number of ManagedResources that correctly report the status, with another checksum than given."""
        before = other_than or {}
        return sum(
            all(
                conditions.get(type_, ("",))[0] == wanted and self._ought.get((name.name, type_), ("",))[0] == wanted
                for type_, wanted in status.items()
            )
            and checksum != before.get(name.name)
            for name, (conditions, checksum, _) in self._managed.items()
        )

    # --- reported conditions

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
            # Reports from now on were not possible before.
            self._applied_at[name] = now
            return
        for type_, latencies in self.seen.latencies.items():
            before, after = old.get(type_, ("",))[0], new.get(type_, ("",))[0]
            ought, since = self._ought.get((name, type_), ("", 0.0))
            if before != after == ought:
                latencies.append(now - max(since, self._applied_at.get(name, 0.0)))

    # --- expected conditions

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


# --- the measurement


class _Phases:
    def __init__(self, meter: Meter, follower: Follower, count: int) -> None:
        self._meter = meter
        self._follower = follower
        self._count = count
        self._client = follower.client

    async def all(self, rest: float) -> list[Sequence[str]]:
        return [
            await self._phase("all become healthy", self._create, lambda: self._follower.count() == self._count),
            await self._phase("all nodes are drained", self._drain, self._all({HEALTHY: "False"})),
            await self._phase("nodes take pods again", self._restore, self._all_settled),
            await self._change("images change", _Version(image="registry.example/image:2")),
            await self._change("more replicas", _Version(image="registry.example/image:2", replicas=4)),
            await self._phase(f"rest, {rest:.0f} s", lambda: asyncio.sleep(rest), self._all_settled),
        ]

    async def _change(self, name: str, version: _Version) -> Sequence[str]:
        before = self._follower.checksums()
        return await self._phase(
            name,
            lambda: self._each(lambda i: self._client.replace(SECRETS, _secret(i, version))),
            lambda: self._follower.count(other_than=before) == self._count,
        )

    async def _phase(self, name: str, act: Callable[[], Awaitable[None]], is_over: Callable[[], bool]) -> Sequence[str]:
        self._meter.start()
        self._follower.forget()
        await act()
        at = await self._follower.until(is_over, what=f"the end of the phase {name!r}")
        phase = await self._meter.stop(name, at=at)
        writes = phase.calls.pop(_WRITE, 0)
        seen = self._follower.seen
        others = f" (+ {seen.other_changes} of other fields)" if seen.other_changes else ""
        return (
            name,
            number(phase.seconds),
            str(seen.changes) + others,
            str(writes),
            report.calls(phase.calls),
            _spread(seen.latencies[HEALTHY]),
            _spread(seen.latencies[PROGRESSING]),
            number(phase.cpu, 2),
            phase.memory,
        )

    def _all(self, status: dict[str, str]) -> Callable[[], bool]:
        return lambda: self._follower.count(status=status) == self._count

    def _all_settled(self) -> bool:
        return self._follower.count() == self._count

    # --- acts

    async def _create(self) -> None:
        await self._each(lambda i: self._client.create(SECRETS, _secret(i, _Version())))
        await self._each(lambda i: self._client.create(MANAGED_RESOURCES, managed_resource(_name(i), _NAMESPACE)))

    async def _drain(self) -> None:
        """Make all nodes unschedulable, and evict their pods, except for those that DaemonSets run there as usual."""
        await self._cordon(is_cordoned=True)
        await asyncio.sleep(QUIET_SECONDS)  # the scheduler knows by now
        pods = await self._client.list(PODS, Selection(_NAMESPACE))
        movable = [metadata(pod)["name"] for pod in pods if not _is_of(pod, "DaemonSet")]

        async def delete(name: str) -> None:
            await self._client.delete_if_exists(PODS, Key(_NAMESPACE, name))

        await each_of(movable, delete, at_once=_AT_ONCE)

    async def _restore(self) -> None:
        await self._cordon(is_cordoned=False)

    async def _cordon(self, *, is_cordoned: bool) -> None:
        for node in await self._client.list(NODES):
            patch = {"spec": {"unschedulable": is_cordoned or None}}
            await self._client.patch(NODES, metadata(node)["name"], patch)

    async def _each(self, call: Callable[[int], Awaitable[Any]]) -> None:
        await each_of(range(self._count), call, at_once=_AT_ONCE)


def _spread(latencies: Sequence[float]) -> str:
    if not latencies:
        return ""
    return f"{statistics.median(latencies):.2f}, max {max(latencies):.2f} ({len(latencies)})"


def _is_of(pod: Object, kind: str) -> bool:
    return any(owner["kind"] == kind for owner in metadata(pod).get("ownerReferences") or ())


# --- manifests


def _name(index: int) -> str:
    return f"mr-{index}"


def _secret(index: int, version: _Version) -> Object:
    documents = b"".join(b"---\n" + orjson.dumps(obj) + b"\n" for obj in _objects(_name(index), version))
    return secret_of(_name(index), _NAMESPACE, documents)


def _objects(name: str, version: _Version) -> list[Object]:
    meta = {"name": name, "namespace": _NAMESPACE}
    containers = [{"name": "c", "image": version.image}]
    bodies: dict[str, Object] = {}
    for resource in WORKLOADS:
        # Each kind has pods of its own; the label `app` identifies their owner.
        labels = {"app": name, "kind": resource.kind}
        pod: Object = {"containers": containers, "terminationGracePeriodSeconds": 0}
        template = {"metadata": {"labels": labels}, "spec": pod}
        bodies[resource.kind] = {"selector": {"matchLabels": labels}, "template": template}
    bodies["Deployment"]["replicas"] = version.replicas
    bodies["StatefulSet"] |= {"replicas": version.replicas, "serviceName": name, "podManagementPolicy": "Parallel"}
    # A template of a Job can't be changed, so it does not depend on the version.
    job = {"containers": [{"name": "c", "image": "registry.example/job:1"}], "restartPolicy": "Never"}
    bodies["Job"] = {"template": {"metadata": {"labels": {"app": name, "kind": "Job"}}, "spec": job}}
    return [{**resource.type_meta, "metadata": meta, "spec": bodies[resource.kind]} for resource in WORKLOADS]
