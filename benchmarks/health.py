"""Conditions follow what happens to workloads: how fast, with how many calls, and idle with none."""

import asyncio
import contextlib
import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from benchmarks import report
from benchmarks.followed import HEALTHY, PROGRESSING, WORKLOADS, Follower, following
from benchmarks.measuring import QUIET_SECONDS, Meter, running, start
from benchmarks.report import Table, number
from benchmarks.workload import create_namespace, each_of, managed_resource, secret_of
from gardener.kinds import MANAGED_RESOURCES
from kube.errors import NotFound
from kube.objects import Object, metadata
from kube.resources import NODES, PODS, SECRETS
from kube.runtime.client import Selection

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
    """What the manifests say."""

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
        """No node takes pods any more, and those that are there go, but for the DaemonSets' as usual."""
        await self._cordon(is_cordoned=True)
        await asyncio.sleep(QUIET_SECONDS)  # the scheduler knows by now
        pods = await self._client.list(PODS, Selection(_NAMESPACE))
        movable = [metadata(pod)["name"] for pod in pods if not _is_of(pod, "DaemonSet")]

        async def delete(name: str) -> None:
            with contextlib.suppress(NotFound):
                await self._client.delete(PODS, name, namespace=_NAMESPACE)

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
        # Each kind has pods of its own; the label `app` says whose they are.
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
