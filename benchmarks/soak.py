"""`python -m benchmarks soak`: whether resources leak in the agent and in the admission server.

A steady mixed load for as long as is wanted, at a rate that one small instance of each bears easily, with watches and
connections that break off now and then. All levels are sampled, checked by `soak_rules`, drawn and reported.

    rest ──▶ load: warm-up, then the checked part ──▶ all new objects are deleted ──▶ rest
"""

import argparse
import asyncio
import contextlib
import itertools
import os
import random
import socket
import ssl
import struct
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import aiohttp
import yaml

from benchmarks import machine, soak_report
from benchmarks.measuring import WRITES, connected
from benchmarks.program import PATIENT_ELECTION, USER_AGENT, Agent, Process, admission_server, make_certificate
from benchmarks.reviews import WEBHOOKS, loads
from benchmarks.reviews import Load as Reviews
from benchmarks.sampling import Sample, sample
from benchmarks.soak_load import Load, Step
from benchmarks.soak_report import Outcome
from benchmarks.webhooks import prepare
from benchmarks.workload import install_crd
from devcluster.cluster import Cluster
from devcluster.testing.faults import WatchEnd
from devcluster.testing.proxy import FaultProxy
from localprocesses.local import HOST

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
    parser.add_argument("--minutes", type=float, default=45.0, help="duration of the load in minutes (default: 45)")


async def measure(options: argparse.Namespace) -> tuple[str, bool]:
    """Return the section of the report, and whether the result is good."""
    host = machine.description()
    outcome = await _run(options.minutes * 60)
    return soak_report.section(outcome, host, images=options.images), soak_report.is_good(outcome)


class _Watched:
    """A sampled process."""

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


# --- clients of the admission server


_REQUEST_PERIOD = 0.1
_BAD_PERIOD = 1.75
"""Period of each kind of misbehaviour, in seconds."""
_CONNECTION_REQUESTS = 200
"""Requests after which a client opens a new connection."""
_PATIENCE = 5.0
_GARBAGE = b"GET / HTTP/1.1\r\nHost: you are not speaking TLS\r\n\r\n"


class Clients:
    """Clients of the server at `port`."""

    def __init__(self, port: int, loads: Sequence[Reviews]) -> None:
        self._port = port
        self._loads = loads
        self._requests = itertools.count()
        self._session: aiohttp.ClientSession | None = None
        self._trusting = ssl.create_default_context()
        self._trusting.check_hostname = False
        self._trusting.verify_mode = ssl.CERT_NONE
        self._distrusting = ssl.create_default_context()
        bad: Mapping[str, Callable[[], Awaitable[None]]] = {
            "connections without a byte": self._leave_at_once,
            "handshakes in no TLS": self._speak_no_tls,
            "handshakes broken off": self._break_handshake,
            "handshakes without trust": self._distrust,
            "connections reset in the header": self._break_header,
            "connections closed in the body": self._break_body,
            "connections reset before the answer": self._leave_before_answer,
        }
        self.steps: Sequence[Step] = (
            Step("requests", _REQUEST_PERIOD, self._ask),
            *(Step(name, _BAD_PERIOD, partial(_patiently, act)) for name, act in bad.items()),
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _ask(self) -> None:
        number = next(self._requests)
        if number % _CONNECTION_REQUESTS == 0 or self._session is None:
            await self.close()
            limit = aiohttp.ClientTimeout(total=_PATIENCE * 2)
            connector = aiohttp.TCPConnector(ssl=self._trusting)
            self._session = aiohttp.ClientSession(connector=connector, timeout=limit)
        load = self._loads[number % len(self._loads)]
        url = f"https://{HOST}:{self._port}{load.path}"
        async with self._session.post(url, data=load.body, headers={"Content-Type": "application/json"}) as answer:
            answer.raise_for_status()
            await answer.read()

    # --- misbehaviour

    async def _leave_at_once(self) -> None:
        async with self._connection():
            pass

    async def _speak_no_tls(self) -> None:
        async with self._connection() as (reader, writer):
            writer.write(_GARBAGE)
            with contextlib.suppress(OSError):
                await reader.read()

    async def _break_handshake(self) -> None:
        """Break the handshake after the first message, or after the server's answer to it."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self._trusting.wrap_bio(incoming, outgoing, server_hostname=HOST)
        with contextlib.suppress(ssl.SSLWantReadError):
            tls.do_handshake()
        async with self._connection() as (reader, writer):
            writer.write(outgoing.read())
            if random.random() < 0.5:  # noqa: S311 - not a secret
                await reader.read(100)
            _reset(writer)

    async def _distrust(self) -> None:
        with contextlib.suppress(ssl.SSLError):
            async with self._connection(self._distrusting):
                pass

    async def _break_header(self) -> None:
        async with self._connection(self._trusting) as (_, writer):
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Le")
            await writer.drain()
            _reset(writer)

    async def _break_body(self) -> None:
        async with self._connection(self._trusting) as (_, writer):
            head, body = self._message()
            writer.write(head + body[: len(body) // 2])
            await writer.drain()

    async def _leave_before_answer(self) -> None:
        async with self._connection(self._trusting) as (_, writer):
            head, body = self._message()
            writer.write(head + body)
            await writer.drain()
            _reset(writer)

    def _message(self) -> tuple[bytes, bytes]:
        load = random.choice(self._loads)  # noqa: S311 - not a secret
        head = f"POST {load.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(load.body)}\r\n\r\n".encode(), load.body

    @contextlib.asynccontextmanager
    async def _connection(
        self, tls: ssl.SSLContext | None = None
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection(HOST, self._port, ssl=tls)
        try:
            yield reader, writer
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def _patiently(act: Callable[[], Awaitable[None]]) -> None:
    async with asyncio.timeout(_PATIENCE):
        await act()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Reset the connection: without lingering the kernel sends a RST in place of a FIN."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


# --- the measurement


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
            with contextlib.suppress(OSError):  # a busy machine; the next sample counts
                await asyncio.to_thread(each.sample, self._began)

    async def _break(self) -> None:
        """End watches in one of several ways; one time in five reset all connections."""
        if random.random() < 0.2:  # noqa: S311 - not a secret
            self._proxy.drop_all_connections()
        else:
            self._proxy.end_watches(random.choice(_WATCH_ENDS))  # noqa: S311 - not a secret

    def _writes(self, seconds: float) -> dict[tuple[str, str], int]:
        """Writes of both processes in that time."""
        with contextlib.closing(self._cluster.audit()) as audit:
            mark = audit.mark()
            time.sleep(seconds)
            return audit.count(since=mark, user_agent=USER_AGENT, verbs=WRITES)


@contextlib.asynccontextmanager
async def _repeating(act: Callable[[], Awaitable[None]], period: float) -> AsyncIterator[None]:
    """Repeat the action during the block, which ends if it fails."""

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
    """Requests and limits in the manifests."""
    documents = yaml.safe_load_all((_BASE / program / f"{program}.yaml").read_text())
    deployment = next(each for each in documents if each["kind"] == "Deployment")
    resources = deployment["spec"]["template"]["spec"]["containers"][0]["resources"]
    requests, most = resources["requests"], resources["limits"]
    return f"requests {requests['cpu']} CPU and {requests['memory']}, limit {most['memory']}"
