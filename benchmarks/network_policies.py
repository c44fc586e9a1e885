"""NetworkPolicies of many Services in many namespaces: what converging costs, and what a change costs after that."""

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

from benchmarks.program import USER_AGENT, Agent
from benchmarks.report import Table, calls, number
from benchmarks.workload import install_crd
from devcluster.audit import Audit
from devcluster.cluster import Cluster
from gardener.keys import NAMESPACE_SELECTORS
from kube.cache import Caches, View
from kube.client import Client, Form, Transport
from kube.connection import load_kubeconfig
from kube.objects import Key, Object, uid
from kube.resources import NAMESPACES, NETWORK_POLICIES, SERVICES

_AT_ONCE = 50
_COLUMNS = ("what", "policies", "s", "calls", "CPU s", "RSS (peak) MiB")
_QUIET_SECONDS = 3.0
_PATIENCE_SECONDS = 900.0


async def measure(*, namespaces: int, services: int, open_services: int, rest: float) -> Table:
    """With so many namespaces, and Services spread over them, some of which let in clients of all namespaces."""
    async with Cluster() as cluster:
        await asyncio.to_thread(install_crd, cluster)
        connection = load_kubeconfig(cluster.kubeconfig)
        async with Transport(connection) as transport:
            client = Client(transport, user_agent="benchmark-setup")
            run = _Run(cluster, client, namespaces=namespaces, services=services, open_services=open_services)
            rows = await run.rows(rest)
    shape = f"{services} Services in {namespaces} namespaces, {open_services} of them open to all of these"
    return Table(
        "Network policies",
        _COLUMNS,
        rows,
        [f"{shape}; one port each. Policies: at the end of a phase."],
    )


class _Run:
    def __init__(self, cluster: Cluster, client: Client, *, namespaces: int, services: int, open_services: int) -> None:
        self._cluster = cluster
        self._client = client
        self._namespaces = namespaces
        self._services = services
        self._open = open_services
        self._caches = Caches(client)
        self._policies = self._caches.acquire(View(NETWORK_POLICIES, uid, form=Form.METADATA))

    async def rows(self, rest: float) -> list[tuple[str, ...]]:
        await self._policies.synced.wait()
        await _all(self._client.create(NAMESPACES, _namespace(i)) for i in range(self._namespaces))
        await _all(self._client.create(SERVICES, self._service(i)) for i in range(self._services))
        controllers = {"networkPolicy": {"enabled": True}}
        with tempfile.TemporaryDirectory() as directory:
            audit = self._cluster.audit()
            with Agent(self._cluster, Path(directory), controllers=controllers) as agent:
                try:
                    return [row async for row in self._phases(agent, audit, rest)]
                finally:
                    audit.close()
                    await self._caches.close()

    async def _phases(self, agent: Agent, audit: Audit, rest: float) -> AsyncIterator[tuple[str, ...]]:
        pairs = self._services + self._open * (self._namespaces - 1)

        async def start() -> None:
            agent.start()
            await asyncio.to_thread(agent.wait_until_ready)

        phase = _Phase(self, agent, audit)
        yield await phase.row("from nothing", start, 2 * pairs, fresh=True)
        yield await phase.row(f"{rest:.0f} s at rest", lambda: asyncio.sleep(rest), 2 * pairs)
        grown = pairs + self._open
        yield await phase.row(
            "a namespace more", lambda: self._client.create(NAMESPACES, _namespace(self._namespaces)), 2 * grown
        )
        label = {"metadata": {"labels": {"unrelated": "x"}}}
        yield await phase.row(
            "a namespace relabelled", lambda: self._client.patch(NAMESPACES, _namespace_name(1), label), 2 * grown
        )
        ports = {"spec": {"ports": [{"port": 80, "targetPort": 9}]}}
        last = self._services - 1
        yield await phase.row(
            "a Service's port changed",
            lambda: self._client.patch(SERVICES, f"s-{last}", ports, namespace=self._namespace_of(last)),
            2 * grown,
            name=Key(self._namespace_of(last), f"ingress-to-s-{last}-tcp-9"),
        )
        await asyncio.to_thread(agent.stop)
        yield await phase.row("restart", start, 2 * grown, fresh=True)

    def _namespace_of(self, service: int) -> str:
        return _namespace_name(service % self._namespaces)

    def _service(self, number: int) -> Object:
        marks = {NAMESPACE_SELECTORS: json.dumps([{"matchLabels": {"bench": "x"}}])} if number < self._open else {}
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": f"s-{number}", "namespace": self._namespace_of(number), "annotations": marks},
            "spec": {
                "clusterIP": "None",
                "selector": {"app": f"s-{number}"},
                "ports": [{"port": 80, "targetPort": 8080}],
            },
        }

    async def until(self, count: int, name: Key | None) -> float:
        """Returns the moment when there are so many policies, among them this one."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while len(self._policies) != count or (name is not None and self._policies.get(name) is None):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(self._policies)} policies instead of {count}")
            await asyncio.sleep(0.01)
        return time.monotonic()

    def count(self) -> int:
        return len(self._policies)


class _Phase:
    """Does something, waits until the policies are there, and tells what that cost the agent."""

    def __init__(self, run: _Run, agent: Agent, audit: Audit) -> None:
        self._run = run
        self._agent = agent
        self._audit = audit

    async def row(
        self,
        what: str,
        do: Callable[[], Awaitable[object]],
        count: int,
        *,
        name: Key | None = None,
        fresh: bool = False,
    ) -> tuple[str, ...]:
        mark = self._audit.mark()
        before = 0.0 if fresh else self._agent.cpu_seconds()
        if not fresh:
            self._agent.forget_peak()
        began = time.monotonic()
        await do()
        ended = await self._run.until(count, name)
        await asyncio.sleep(_QUIET_SECONDS)
        used = self._agent.cpu_seconds() - before
        counted = self._audit.count(since=mark, user_agent=USER_AGENT)
        memory = f"{self._agent.resident_mib():.0f} ({self._agent.peak_mib():.0f})"
        return what, str(self._run.count()), number(ended - began, 2), calls(counted), number(used, 2), memory


def _namespace_name(index: int) -> str:
    return f"bench-{index}"


def _namespace(index: int) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": _namespace_name(index), "labels": {"bench": "x"}},
    }


async def _all(work: Iterable[Coroutine[Any, Any, object]]) -> None:
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(each: Coroutine[Any, Any, object]) -> None:
        async with slots:
            await each

    await asyncio.gather(*(one(each) for each in work))
