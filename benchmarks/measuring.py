"""Common parts of sections: a cluster with an agent, a client of their own, and a meter of the agent's usage."""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.program import USER_AGENT, Agent, Program
from benchmarks.workload import install_crd
from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kube.runtime.cache import Caches
from kube.runtime.client import Client
from kube.runtime.connection import load_kubeconfig
from kube.runtime.transport import Transport
from localprocesses.local import LocalProcessError, wait_until

QUIET_SECONDS = 3.0
"""Seconds until consequences of a phase are over, such as health checks and events."""
WRITES = ("create", "update", "patch", "delete", "deletecollection")
_NO_NEWS_SECONDS = 5.0
"""Seconds without a change until the next check: the condition may have raised an error meanwhile."""


@asynccontextmanager
async def running(
    *, nodes: int = 0, controllers: Mapping[str, Any] | None = None, sections: Mapping[str, Any] | None = None
) -> AsyncIterator[tuple[Cluster, Agent, Audit]]:
    """Cluster that serves ManagedResources, agent that is not started yet, and audit log of the API server."""
    async with Cluster(nodes=nodes) as cluster:
        await asyncio.to_thread(install_crd, cluster)
        with (
            tempfile.TemporaryDirectory() as directory,
            Agent(cluster, Path(directory), controllers=controllers, sections=sections) as agent,
            contextlib.closing(cluster.audit()) as audit,
        ):
            yield cluster, agent, audit


@asynccontextmanager
async def connected(cluster: Cluster, *, namespaces: Sequence[str] = ()) -> AsyncIterator[tuple[Client, Caches]]:
    """Client whose calls do not count as the agent's, and its caches, of all namespaces unless some are named."""
    async with Transport(load_kubeconfig(cluster.kubeconfig)) as transport:
        client = Client(transport, user_agent="benchmark")
        caches = Caches(client, namespaces=namespaces)
        try:
            yield client, caches
        finally:
            await caches.close()


async def start(agent: Agent) -> float:
    """Start the agent, wait until it leads and is quiet, and return the time of the start."""
    began = agent.start()
    await asyncio.to_thread(agent.wait_until_ready)
    await asyncio.sleep(QUIET_SECONDS)
    return began


async def passed(agent: Program, passes: int, controller: str = "managedresource", *, within: float = 600.0) -> None:
    """Wait until the controller has made that many passes.

    Polls are rare enough: with many ManagedResources, an answer costs the agent a tenth of a second.
    """

    def have_passed() -> bool:
        requested = time.monotonic()
        if agent.passes(controller) >= passes:
            return True
        time.sleep(10 * (time.monotonic() - requested))
        return False

    what = f"{passes} passes of {controller}"
    await asyncio.to_thread(wait_until, have_passed, what=what, within=within, pause=0.1, explain=agent.log_end)


class News:
    """Waits until a condition holds, and checks it at each notification of a change."""

    def __init__(self) -> None:
        self._news = asyncio.Event()

    def notify(self, _: object) -> None:
        """Notify of a change; to subscribe to stores."""
        self._news.set()

    async def until(
        self,
        holds: Callable[[], bool],
        *,
        what: str,
        within: float = 600.0,
        pause: float = 0.0,
        explain: Callable[[], str] = str,
    ) -> float:
        """Return the time when the condition holds; checks are at least `pause` seconds apart, for expensive ones.

        Raises:
            LocalProcessError: it never holds; with the explanation.
        """
        try:
            async with asyncio.timeout(within):
                while not holds():
                    self._news.clear()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._news.wait(), _NO_NEWS_SECONDS)
                    await asyncio.sleep(pause)
        except TimeoutError:
            raise LocalProcessError(f"timed out after {within:.0f} s waiting for {what}{explain()}") from None
        return time.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Usage of the agent in a phase; memory in MiB."""

    name: str
    calls: dict[tuple[str, str], int]
    seconds: float | None
    ready: float | None = None
    """Seconds until /readyz succeeded, after a start."""
    cpu: float
    resident: float
    peak: float
    note: str = ""

    @property
    def memory(self) -> str:
        return f"{self.resident:.0f} ({self.peak:.0f})"


class Meter:
    """Measures phases one after the other; `user_agent` is the prefix of the user agent of its calls."""

    def __init__(self, agent: Program, audit: Audit, *, user_agent: str = USER_AGENT) -> None:
        self._agent = agent
        self._audit = audit
        self._user_agent = user_agent
        self.mark = 0
        self._cpu, self._began = 0.0, 0.0

    def start(self, *, fresh: bool = False) -> None:
        """Begin a phase; with `fresh` the process is not started yet, and all its usage counts."""
        if not fresh:
            self._agent.forget_peak()
        self.mark = self._audit.mark()
        self._cpu = 0.0 if fresh else self._agent.cpu_seconds()
        self._began = time.monotonic()

    def calls(self) -> dict[tuple[str, str], int]:
        """Calls of the agent, by verb and resource."""
        return self._audit.count(since=self.mark, user_agent=self._user_agent)

    async def stop(
        self,
        name: str,
        *,
        at: float | None = None,
        ready: float | None = None,
        note: str = "",
        quiet: float = QUIET_SECONDS,
    ) -> Phase:
        """End the phase `at` that time; calls and CPU of the agent just after that count."""
        await asyncio.sleep(quiet)
        return Phase(
            name=name,
            seconds=None if at is None else at - self._began,
            ready=None if ready is None else ready - self._began,
            cpu=self._agent.cpu_seconds() - self._cpu,
            calls=self.calls(),
            resident=self._agent.resident_mib(),
            peak=self._agent.peak_mib(),
            note=note,
        )

    async def restart(self, *, passes: int, controller: str = "managedresource", within: float = 600.0) -> Phase:
        """Restart the agent, and wait for its passes; all CPU of the process until then counts."""
        await asyncio.to_thread(self._agent.stop)
        self.start(fresh=True)
        self._began = self._agent.start()
        ready = await asyncio.to_thread(self._agent.wait_until_ready)
        await passed(self._agent, passes, controller, within=within)
        at = time.monotonic()
        return await self.stop("restart", at=at, ready=ready, note=f"{writes(self.calls())} writes")


def writes(counts: Mapping[tuple[str, str], int]) -> int:
    """Number of calls that write, without Events."""
    return sum(n for (verb, resource), n in counts.items() if verb in WRITES and resource != "events")
