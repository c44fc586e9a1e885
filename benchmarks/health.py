"""Conditions follow what happens to workloads: how fast, with how many calls, and at rest with none."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from benchmarks import report
from benchmarks.followed import HEALTHY, PROGRESSING, WORKLOADS, Follower, following
from benchmarks.program import USER_AGENT, Agent
from benchmarks.report import Table, number
from benchmarks.workload import create_namespace, install_crd, managed_resource, secret_of
from devcluster.audit import Audit
from devcluster.cluster import Cluster
from gardener.kinds import MANAGED_RESOURCES
from kube.client import Selection
from kube.errors import NotFound
from kube.objects import Object, metadata
from kube.resources import NODES, PODS, SECRETS

_NAMESPACE = "benchmark"
_NODES = 3
_AT_ONCE = 20
_QUIET_SECONDS = 3.0
_WRITE = ("patch", "managedresources/status")
_COLUMNS = (
    *("phase", "s", "changes of conditions", "status writes", "other calls"),
    *("s behind, healthy", "s behind, progressing", "CPU s", "RSS (peak) MiB"),
)


@dataclass(frozen=True, slots=True)
class _Version:
    """What the manifests say."""

    image: str = "registry.example/image:1"
    replicas: int = 2


async def measure(*, count: int, rest: float) -> Table:
    async with Cluster(nodes=_NODES) as cluster:
        await asyncio.to_thread(install_crd, cluster)
        with tempfile.TemporaryDirectory() as directory, Agent(cluster, Path(directory)) as agent:
            audit = cluster.audit()
            try:
                async with following(cluster, _NAMESPACE) as follower:
                    await create_namespace(follower.client, _NAMESPACE)
                    agent.start()
                    await asyncio.to_thread(agent.wait_until_ready)
                    await asyncio.sleep(_QUIET_SECONDS)
                    rows = await _Phases(agent, audit, follower, count).all(rest)
            finally:
                audit.close()
    kinds = ", ".join(resource.kind for resource in WORKLOADS)
    note = (
        f"Each has a {kinds}, on {_NODES} nodes. *Behind*: median and maximum (number) of the time from the event of an"
        " object that changes the status to the event of the condition, both as the measuring process receives them."
    )
    return Table(f"Health of {count} ManagedResources", _COLUMNS, rows, [note])


class _Phases:
    def __init__(self, agent: Agent, audit: Audit, follower: Follower, count: int) -> None:
        self._agent = agent
        self._audit = audit
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
        self._agent.forget_peak()
        mark, cpu, began = self._audit.mark(), self._agent.cpu_seconds(), time.monotonic()
        self._follower.forget()
        await act()
        at = await self._follower.until(is_over, what=f"the end of the phase {name!r}")
        await asyncio.sleep(_QUIET_SECONDS)
        calls = self._audit.count(since=mark, user_agent=USER_AGENT)
        calls.pop(_WRITE, None)
        writes = [
            call
            for call in self._audit.calls(since=mark, user_agent=USER_AGENT)
            if (call.verb, call.resource) == _WRITE
        ]
        refused = sum(call.status != 200 for call in writes)
        seen = self._follower.seen
        others = f" (+ {seen.other_changes} of other fields)" if seen.other_changes else ""
        return (
            name,
            number(at - began),
            str(seen.changes) + others,
            f"{len(writes)} ({refused} refused)" if refused else str(len(writes)),
            report.calls(calls),
            _spread(seen.latencies[HEALTHY]),
            _spread(seen.latencies[PROGRESSING]),
            number(self._agent.cpu_seconds() - cpu, 2),
            f"{self._agent.resident_mib():.0f} ({self._agent.peak_mib():.0f})",
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
        """No node takes pods any more, and those that are there go, but for the DaemonSets' as usual."""
        await self._cordon(is_cordoned=True)
        await asyncio.sleep(_QUIET_SECONDS)  # the scheduler knows by now
        pods = await self._client.list(PODS, Selection(_NAMESPACE))
        movable = [metadata(pod)["name"] for pod in pods if not _is_of(pod, "DaemonSet")]

        async def delete(index: int) -> None:
            try:
                await self._client.delete(PODS, movable[index], namespace=_NAMESPACE)
            except NotFound:
                return

        await self._each(delete, len(movable))

    async def _restore(self) -> None:
        await self._cordon(is_cordoned=False)

    async def _cordon(self, *, is_cordoned: bool) -> None:
        for node in await self._client.list(NODES):
            patch = {"spec": {"unschedulable": is_cordoned or None}}
            await self._client.patch(NODES, metadata(node)["name"], patch)

    async def _each(self, call: Callable[[int], Awaitable[Any]], count: int | None = None) -> None:
        at_once = asyncio.Semaphore(_AT_ONCE)

        async def one(index: int) -> None:
            async with at_once:
                await call(index)

        await asyncio.gather(*map(one, range(self._count if count is None else count)))


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
        # Each kind has pods of its own; the label `app` tells whose they are.
        labels = {"app": name, "kind": resource.kind}
        pod: Object = {"containers": containers, "terminationGracePeriodSeconds": 0}
        template = {"metadata": {"labels": labels}, "spec": pod}
        bodies[resource.kind] = {"selector": {"matchLabels": labels}, "template": template}
    bodies["Deployment"]["replicas"] = version.replicas
    bodies["StatefulSet"] |= {"replicas": version.replicas, "serviceName": name, "podManagementPolicy": "Parallel"}
    # A template of a Job can't be changed, so it does not depend on the version.
    job = {"containers": [{"name": "c", "image": "registry.example/job:1"}], "restartPolicy": "Never"}
    bodies["Job"] = {"template": {"metadata": {"labels": {"app": name, "kind": "Job"}}, "spec": job}}
    return [
        {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "spec": bodies[resource.kind]}
        for resource in WORKLOADS
    ]
