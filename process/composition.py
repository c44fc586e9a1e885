"""Common parts of all programs, built from their configuration.

    sessions        to the API servers; spans, if enabled
    servers         /metrics, /healthz, /readyz, and pages of the program for users
    caches          filled by every replica, to be able to work at once
    events          written until the last moment
    serving         servers of the program's purpose: every replica answers
    election        if the program has a leader: the rest starts when this replica leads
    work            the control loops

Each starts when the one before is ready, and they stop in reverse.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, Self, TypeVar

from prometheus_client.registry import REGISTRY, Collector, CollectorRegistry

from kube.runtime.client import Client
from kube.runtime.election import ElectionSettings, LeaderElector, LeadershipLost, new_identity
from process import tracing
from process.caches import CacheCollector, RefusalCollector, SyncChecks, fill
from process.clusters import Clusters, distinct, endpoints
from process.configuration.blocks import Configuration, ElectingConfiguration, LeaderElection
from process.configuration.component import Component as ProgramComponent
from process.memory import MemoryReturn
from process.metrics import metrics_server
from process.probes import HealthCheck, probe_server
from process.runner import Component, Groups, cancelled
from process.server import Handler, HttpServer
from process.version import user_agent

C = TypeVar("C", bound=Configuration)
IDENTITY = "LEADER_IDENTITY"
"""Variable with the identity in elections, for a supervisor that never runs two processes with the same one: a
restarted process then leads at once, without waiting for its own Lease to expire.
"""


class CacheUser(Protocol):
    """Holds stores of clusters while the process runs."""

    async def start(self) -> None:
        """Acquire stores; may wait for those that are not needed at the start."""

    async def close(self) -> None:
        """Release the stores."""


class Server(Component, Protocol):
    """A server whose address is bound before anything is started."""

    def bind(self) -> None:
        """Bind the address.

        Raises:
            OSError: the address is taken; the message names it.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Own parts of a program, in addition to the common ones. The sum of two is one process with both.

    Attributes:
        alive: liveness checks, in addition to an answer of the process.
        checks: readiness checks, in addition to those of the caches.
        servers: started with those of metrics and probes.
        caches: watches of every replica, in addition to the existing ones.
        ready: started with the caches.
        metrics: in addition to those of caches; computed during a scrape.
        pages: served with the metrics, by the first part of their path.
        serving: servers of every replica that start when all of the above is ready.
        work: only of the leader, if the program elects one.
    """

    alive: Sequence[HealthCheck] = ()
    checks: Sequence[HealthCheck] = ()
    servers: Sequence[HttpServer] = ()
    caches: Sequence[CacheUser] = ()
    ready: Sequence[Component] = ()
    metrics: Sequence[Collector] = ()
    pages: Mapping[str, Handler] = field(default_factory=dict)
    serving: Sequence[Server] = ()
    work: Sequence[Component] = ()

    def __add__(self, other: Self) -> "Parts":
        return Parts(
            alive=[*self.alive, *other.alive],
            checks=[*self.checks, *other.checks],
            servers=[*self.servers, *other.servers],
            caches=[*self.caches, *other.caches],
            ready=[*self.ready, *other.ready],
            metrics=[*self.metrics, *other.metrics],
            pages={**self.pages, **other.pages},
            serving=[*self.serving, *other.serving],
            work=[*self.work, *other.work],
        )


class Composition(Generic[C]):
    """Clusters of a process and the parts that depend on nothing else; `groups` adds the program's own parts.

    Configured clusters are connected; the program opens and closes others in `clusters` while it runs.

    Args:
        service: name of the service in spans.
        elects: whether the program has a leader.

    Raises:
        ConfigurationError: a cluster cannot be connected to.
    """

    abort_on = (LeadershipLost,)

    def __init__(
        self,
        config: C,
        *,
        component: ProgramComponent[C],
        service: str,
        elects: bool,
        version: str,
        environment: Mapping[str, str],
    ) -> None:
        self.config, self.version = config, version
        self._component, self._service = component, service
        self._user_agent = user_agent(component.name, version)
        self._elector: LeaderElector | None = None
        election = config.leader_election if elects and isinstance(config, ElectingConfiguration) else None
        elects = election is not None and election.leader_elect
        self.clusters = Clusters(
            user_agent=self._user_agent,
            component=component.name,
            write_guard=self._may_write if elects else None,
        )
        for endpoint in endpoints(component.connections(config), environment=environment):
            self.clusters.open(endpoint)
        if election is not None and elects:
            self._elector = self._new_elector(election, environment.get(IDENTITY) or new_identity())

    def groups(self, parts: Parts) -> Groups:
        """Return all components, in the order of their start.

        Raises:
            OSError: the address of a server is taken.
        """
        config, grace_period = self.config, self.config.graceful_shutdown_timeout
        prefix = self._component.metrics_prefix
        of_caches = [CacheCollector(self.clusters, prefix=prefix), RefusalCollector(self.clusters, prefix=prefix)]
        servers = [self._metrics(parts), self._probes(parts), *parts.servers]
        for server in (*servers, *parts.serving):
            server.bind()
        return [
            [
                *tracing.parts(config.tracing, service=self._service, version=self.version, grace_period=grace_period),
                AtStop("sessions", self.clusters.close_all),
            ],
            [Metrics([*of_caches, *parts.metrics]), *servers, MemoryReturn()],
            [ReadyCaches(self.clusters, config, users=parts.caches), *parts.ready],
            [AtStop("events", self.clusters.drain)],
            parts.serving,
            [Election(self._elector)] if self._elector else [],
            parts.work,
        ]

    def describe_leader(self, annotations: Mapping[str, str]) -> None:
        """Set annotations of the Lease while this replica leads."""
        if self._elector:
            self._elector.annotations = annotations

    def _may_write(self) -> float:
        assert self._elector is not None
        return self._elector.tenure.guard()

    def _new_elector(self, settings: LeaderElection, identity: str) -> LeaderElector:
        name = self._component.clusters[0].name
        lease = ElectionSettings(
            namespace=settings.resource_namespace,
            name=settings.resource_name,
            lease_duration=settings.lease_duration,
            renew_deadline=settings.renew_deadline,
            retry_period=settings.retry_period,
            resource_lock=settings.resource_lock,
        )
        # Without a rate limit: renewals must not queue behind the work.
        client = Client(self.clusters[name].transport, user_agent=f"{self._user_agent}/leader-election")
        return LeaderElector(client, lease, identity=identity, recorder=self.clusters.recorder(name))

    def _metrics(self, parts: Parts) -> HttpServer:
        server, profiling = self.config.server.metrics, self.config.debugging.enable_profiling
        return metrics_server(host=server.bind_address, port=server.port, profiling=profiling, pages=parts.pages)

    def _probes(self, parts: Parts) -> HttpServer:
        configured = [cluster.name for cluster in self._component.clusters]
        informers, server = SyncChecks(self.clusters, configured=configured), self.config.server.health_probes
        return probe_server(
            healthz=parts.alive,
            readyz=lambda: [*parts.checks, *informers()],
            host=server.bind_address,
            port=server.port,
        )


class AtStop:
    """Component without a start that has work to do when the process stops."""

    def __init__(self, name: str, stop: Callable[[], Awaitable[None]]) -> None:
        self.name = name
        self._stop = stop

    async def start(self) -> None:
        pass

    async def wait(self) -> None:
        pass

    async def stop(self) -> None:
        await self._stop()


class Metrics:
    """Computes metrics during a scrape while the program runs."""

    name = "metrics"

    def __init__(self, collectors: Sequence[Collector], *, registry: CollectorRegistry = REGISTRY) -> None:
        self._collectors = collectors
        self._registry = registry

    async def start(self) -> None:
        for collector in self._collectors:
            self._registry.register(collector)

    async def wait(self) -> None:
        pass

    async def stop(self) -> None:
        for collector in self._collectors:
            self._registry.unregister(collector)


class ReadyCaches:
    """Caches of every replica: those that are filling already, and those of the users."""

    name = "caches"

    def __init__(self, clusters: Clusters, config: Configuration, *, users: Sequence[CacheUser] = ()) -> None:
        self._clusters = clusters
        self._config = config
        self._users = users

    async def start(self) -> None:
        timeout, path = self._config.cache_sync_timeout, self._config.cache_sync_timeout_path
        await fill(self._start_users(), self._clusters, timeout=timeout, path=path)

    async def wait(self) -> None:
        pass

    async def stop(self) -> None:
        for user in self._users:
            await user.close()
        for cluster in distinct(self._clusters).values():
            await cluster.caches.close()

    async def _start_users(self) -> None:
        for user in self._users:
            await user.start()


class Election:
    """Starts when this process leads; losing the lead is its failure."""

    name = "leader election"

    def __init__(self, elector: LeaderElector) -> None:
        self._elector = elector
        self._leads = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._running = asyncio.create_task(self._elector.run(self._lead), name="leader election")
        leads = asyncio.create_task(self._leads.wait())
        try:
            await asyncio.wait((self._running, leads), return_when=asyncio.FIRST_COMPLETED)
        finally:
            leads.cancel()
        if self._running.done():
            self._running.result()

    async def wait(self) -> None:
        await _ended(self._running)

    async def stop(self) -> None:
        """Release the lease; all work that depends on it has stopped before."""
        if self._running is not None:
            await cancelled(self._running)

    async def _lead(self) -> None:
        self._leads.set()
        await asyncio.Event().wait()


async def _ended(task: asyncio.Task[None] | None) -> None:
    """Return or raise as the task does, but cancelling this does not cancel the task."""
    if task is not None:
        await asyncio.wait((task,))
        if not task.cancelled():
            task.result()
