"""`python -m benchmarks soak`: whether anything grows that should not, in the agent and in the admission server.

A steady mixed load for as long as is wanted, at a rate that one small instance of each bears easily, with watches and
connections that break off now and then. All levels are sampled, checked by `soak_rules`, drawn and reported.

    rest ──▶ load: warm-up, then what is checked for growth ──▶ all that came is deleted ──▶ rest
"""

import argparse
import asyncio
import contextlib
import os
import random
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import yaml

from benchmarks import machine, soak_report
from benchmarks.measuring import WRITES, connected
from benchmarks.program import PATIENT_ELECTION, USER_AGENT, Agent, Process, admission_server, make_certificate
from benchmarks.reviews import WEBHOOKS, loads
from benchmarks.sampling import Sample, sample
from benchmarks.soak_clients import Clients
from benchmarks.soak_load import Load
from benchmarks.soak_report import Outcome
from benchmarks.webhooks import prepare
from benchmarks.workload import install_crd
from devcluster.cluster import Cluster
from devcluster.faults import WatchEnd
from devcluster.proxy import FaultProxy

_BASE = Path(__file__).parents[1] / "manifests/base"
_PERIOD = 5.0
_REST = 90.0
_SETTLE = 60.0
_WATCH_ENDS = (WatchEnd.CLOSED, WatchEnd.EXPIRED, WatchEnd.RESET, WatchEnd.TRUNCATED)
_BREAK_PERIOD = 60.0

CONTROLLERS = {
    "garbageCollector": {"enabled": True, "syncPeriod": "1m", "minimumObjectLifetime": "30s"},
    "networkPolicy": {"enabled": True},
    "nodeCriticalComponents": {"enabled": True},
    "nodeAgentReconciliationDelay": {"enabled": True},
    "tokenRequestor": {"enabled": True},
    "tokenInvalidator": {"enabled": True},
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=45.0, help="how long the load lasts (default: 45)")


async def measure(options: argparse.Namespace) -> tuple[str, bool]:
    """The section of the report, and whether all is well."""
    host = machine.description()
    outcome = await _run(options.minutes * 60)
    return soak_report.section(outcome, host, images=options.images), soak_report.is_good(outcome)


class _Watched:
    """A process that is sampled."""

    def __init__(self, name: str, process: Process) -> None:
        self.name, self.process = name, process
        self.samples: list[Sample] = []

    def sample(self, began: float) -> None:
        text = self.process.scrape()
        self.samples.append(sample(self.process.pid, text, at=time.monotonic() - began))

    def outcome(self) -> soak_report.Process:
        log = self.process.log.splitlines()
        return soak_report.Process(name=self.name, limits=_limits(self.name), samples=self.samples, log=log)


# --- the run


async def _run(seconds: float) -> Outcome:
    async with contextlib.AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        cluster = await stack.enter_async_context(Cluster())
        await asyncio.to_thread(install_crd, cluster)
        await asyncio.to_thread(prepare, cluster)
        proxy = await stack.enter_async_context(
            FaultProxy(upstream=cluster.url, upstream_ca=cluster.ca, authority=cluster.authority)
        )
        kubeconfig = directory / "kubeconfig"
        proxy.write_kubeconfig(kubeconfig, token=cluster.token)
        make_certificate(directory)
        client, _ = await stack.enter_async_context(connected(cluster))

        sections = {"leaderElection": PATIENT_ELECTION, "webhooks": {"tokenInvalidator": {"enabled": True}}}
        agent = stack.enter_context(
            Agent(cluster, directory, controllers=CONTROLLERS, sections=sections, kubeconfig=kubeconfig)
        )
        agent.start()
        server = stack.enter_context(admission_server(cluster, directory, WEBHOOKS, kubeconfig=kubeconfig))
        server.start()
        for process in (agent, server):
            await asyncio.to_thread(process.wait_until_ready)
        clients = Clients(server.port, loads())
        stack.push_async_callback(clients.close)
        watched = [_Watched("agent", agent), _Watched("webhooks", server)]
        return await _Soak(cluster, proxy, Load(client), clients, watched).run(seconds)


class _Soak:
    def __init__(
        self, cluster: Cluster, proxy: FaultProxy, load: Load, clients: Clients, watched: Sequence[_Watched]
    ) -> None:
        self._cluster, self._proxy, self._load, self._clients, self._watched = cluster, proxy, load, clients, watched
        self._flow = load.flow
        self._began = time.monotonic()
        self._marks: dict[str, float] = {}
        self._averages: list[float] = []

    async def run(self, seconds: float) -> Outcome:
        rest = min(_REST, seconds / 2)
        async with _repeating(self._observe, _PERIOD):
            await self._load.stand()
            await self._flow.run(self._clients.steps, _PERIOD)
            await asyncio.sleep(min(_SETTLE, rest))
            self._mark("rest before")
            await asyncio.sleep(rest)
            self._mark("load")
            async with _repeating(self._break, _BREAK_PERIOD):
                await self._flow.run([*self._load.steps, *self._clients.steps], seconds)
            self._mark("load ends")
            await self._load.clear()
            # Time for the garbage collector, for namespaces to go, and for connections to be given up.
            await asyncio.sleep(3 * _SETTLE)
            self._mark("rest after")
            writes = await asyncio.to_thread(self._writes, rest)
            self._mark("end")
        return Outcome(
            minutes=seconds / 60,
            marks=self._marks,
            processes=[each.outcome() for each in self._watched],
            done=self._flow.done,
            failed=self._flow.failed,
            injected=self._proxy.injected,
            idle_writes=writes,
            averages=self._averages,
        )

    def _mark(self, name: str) -> None:
        self._marks[name] = time.monotonic() - self._began

    async def _observe(self) -> None:
        self._averages.append(os.getloadavg()[0])
        for each in self._watched:
            each.process.check()
            with contextlib.suppress(OSError):  # a busy machine; the next one will do
                await asyncio.to_thread(each.sample, self._began)

    async def _break(self) -> None:
        """Watches end in some way; in one of five times all connections are reset."""
        if random.random() < 0.2:  # noqa: S311 - not a secret
            self._proxy.drop_all_connections()
        else:
            self._proxy.end_watches(random.choice(_WATCH_ENDS))  # noqa: S311 - not a secret

    def _writes(self, seconds: float) -> dict[tuple[str, str], int]:
        """What both processes write in that time."""
        with contextlib.closing(self._cluster.audit()) as audit:
            mark = audit.mark()
            time.sleep(seconds)
            return audit.count(since=mark, user_agent=USER_AGENT, verbs=WRITES)


@contextlib.asynccontextmanager
async def _repeating(act: Callable[[], Awaitable[None]], period: float) -> AsyncIterator[None]:
    """Does so again and again during the block, which ends if that fails."""

    async def repeat() -> None:
        while True:
            began = time.monotonic()
            await act()
            await asyncio.sleep(max(0.1, period - (time.monotonic() - began)))

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(repeat())
        yield
        task.cancel()


def _limits(program: str) -> str:
    """What the manifests request and allow it."""
    documents = yaml.safe_load_all((_BASE / program / f"{program}.yaml").read_text())
    deployment = next(each for each in documents if each["kind"] == "Deployment")
    resources = deployment["spec"]["template"]["spec"]["containers"][0]["resources"]
    requests, most = resources["requests"], resources["limits"]
    return f"requests {requests['cpu']} CPU and {requests['memory']}, limit {most['memory']}"
