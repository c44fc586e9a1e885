"""A megabyte of CustomResourceDefinitions through a ManagedResource, while requests are answered on the same loop."""

import asyncio
import socket
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from benchmarks import report
from benchmarks.definitions import bundle
from benchmarks.observer import Observer, observing
from benchmarks.originals import BUNDLE
from benchmarks.program import USER_AGENT
from benchmarks.report import Table, number
from benchmarks.requests import Latency, requests
from benchmarks.workload import create_namespace, install_crd, managed_resource, secret_of
from devcluster.audit import Audit
from devcluster.cluster import Cluster
from devcluster.errors import DevclusterError
from gardener.kinds import MANAGED_RESOURCES
from kube.objects import Object
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, SECRETS

_NAMESPACE = "benchmark"
_NAME = "bundle"
_IDLE_SECONDS = 5.0
_CHANGES = 5
_START_SECONDS = 30.0
_COLUMNS = ("while", "s", "requests", "p50 ms", "p99 ms", "max ms", "calls", "the original")


async def measure(*, definitions: int) -> Table:
    made, _ = bundle(definitions, group="bare.example")
    _, text = bundle(definitions, group="agent.example")
    rows = []
    async with Cluster() as cluster:
        await asyncio.to_thread(install_crd, cluster)
        audit = cluster.audit()
        try:
            async with observing(cluster, _NAMESPACE) as observer, _shared_loop(cluster) as port:
                await create_namespace(observer.client, _NAMESPACE)
                async with requests(port) as idle:
                    await asyncio.sleep(_IDLE_SECONDS)
                rows.append(_row("nothing else happens", _IDLE_SECONDS, idle))
                async with requests(port) as disturbed:
                    seconds = await _apply_bare(observer, made)
                rows.append(_row("somebody else creates such definitions", seconds, disturbed))
                rows += await _through_the_agent(observer, audit, port, definitions, text)
        finally:
            audit.close()
    title = f"{definitions} CustomResourceDefinitions, {len(text) / 1e6:.1f} MB of YAML"
    note = (
        "Requests of another process, one each 4 ms, answered on the event loop of the agent. The second row is due to"
        " the API server on the same cores."
    )
    return Table(title, _COLUMNS, rows, [note])


async def _through_the_agent(
    observer: Observer, audit: Audit, port: int, definitions: int, text: str
) -> Sequence[tuple[str, ...]]:
    rows = []
    mark = audit.mark()
    async with requests(port) as latency:
        began = time.monotonic()
        await observer.client.create(SECRETS, secret_of(_NAME, _NAMESPACE, text.encode()))
        await observer.client.create(MANAGED_RESOURCES, managed_resource(_NAME, _NAMESPACE))
        at = await observer.until(lambda: observer.applied(definitions) == 1, what="the bundle to be applied")
    rows.append(_row("the agent applies it", at - began, latency, calls=_calls(audit, mark), original=str(BUNDLE)))

    mark = audit.mark()
    async with requests(port) as latency:
        began = time.monotonic()
        for turn in range(_CHANGES):
            await _change(observer, definitions, text.replace("maxLength: 253", f"maxLength: {200 + turn}"))
        seconds = time.monotonic() - began
    name = f"the agent changes all of it, {_CHANGES} times"
    rows.append(_row(name, seconds, latency, calls=_calls(audit, mark)))
    return rows


async def _change(observer: Observer, definitions: int, text: str) -> None:
    before = observer.checksums()
    await observer.client.replace(SECRETS, secret_of(_NAME, _NAMESPACE, text.encode()))
    await observer.until(lambda: observer.applied(definitions, other_than=before) == 1, what="the bundle to be changed")


def _calls(audit: Audit, mark: int) -> str:
    return report.calls(audit.count(since=mark, user_agent=USER_AGENT))


def _row(name: str, seconds: float, latency: Latency, *, calls: str = "", original: str = "") -> tuple[str, ...]:
    times = (number(latency.p50, 2), number(latency.p99, 2), number(latency.longest))
    return name, number(seconds), str(latency.count), *times, calls, original


async def _apply_bare(observer: Observer, definitions: Sequence[Object]) -> float:
    began = time.monotonic()
    client = observer.client
    await asyncio.gather(*(client.create(CUSTOM_RESOURCE_DEFINITIONS, definition) for definition in definitions))
    return time.monotonic() - began


@asynccontextmanager
async def _shared_loop(cluster: Cluster) -> AsyncIterator[int]:
    """The port of the handler beside a control loop; both run in a process of their own during the block."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.shared_loop", str(cluster.kubeconfig), _NAMESPACE, str(port)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        await _answers(port, process)
        yield port
        if process.stdin is not None:
            process.stdin.close()
        async with asyncio.timeout(_START_SECONDS):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _answers(port: int, process: asyncio.subprocess.Process) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.returncode is None and time.monotonic() < deadline:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        writer.close()
        return
    raise DevclusterError("the control loop with the handler did not start")
