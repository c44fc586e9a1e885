"""What all programs have, put together from their configuration.

    sessions        to the API servers; spans, if they are wanted
    servers         /metrics, /healthz, /readyz, and what else the program serves to people
    caches          which every replica fills, to be able to work at once
    events          written until the last moment
    election        if the program has a leader: what follows starts when this replica leads
    work            what the program is for

Each starts when the one before is ready, and they stop in reverse.
"""

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from prometheus_client.registry import Collector

from config.blocks import Configuration
from kube.runtime.client import Client
from kube.runtime.election import ElectionSettings, LeaderElector, LeadershipLost, new_identity
from process import tracing
from process.caches import CacheCollector, SyncChecks
from process.clusters import Clusters, endpoints
from process.description import Description
from process.memory import MemoryReturn
from process.metrics import metrics_server
from process.parts import CacheUser, Election, Events, Metrics, ReadyCaches, Sessions
from process.probes import HealthCheck, probe_server
from process.runner import Component, Groups
from process.server import HttpServer
from process.version import user_agent

C = TypeVar("C", bound=Configuration)


class Composition(Generic[C]):
    """The clusters of a process and all that depends on nothing else; `groups` adds what the program has besides.

    Those that are there at the start are connected; the program opens and closes others in `clusters` while it runs.

    Raises: ConfigurationError: a cluster can't be connected to.
    """

    abort_on = (LeadershipLost,)

    def __init__(self, program: Description[C], config: C, *, version: str, environment: Mapping[str, str]) -> None:
        self.config = config
        self._program = program
        self._user_agent = user_agent(program.component.name, version)
        self._elector: LeaderElector | None = None
        elects = program.elects and config.leader_election.leader_elect
        self.clusters = Clusters(
            user_agent=self._user_agent,
            component=program.component.name,
            write_guard=self._may_write if elects else None,
        )
        for endpoint in endpoints(program.component.connections(config), environment=environment):
            self.clusters.open(endpoint)
        if elects:
            self._elector = self._new_elector()

    def groups(
        self,
        *,
        work: Sequence[Component],
        checks: Sequence[HealthCheck] = (),
        servers: Sequence[HttpServer] = (),
        caches: Sequence[CacheUser] = (),
        ready: Sequence[Component] = (),
        metrics: Sequence[Collector] = (),
    ) -> Groups:
        """All components, in the order of their start.

        Args:
            work: what the program is for; if it elects, only of the leader.
            checks: of readiness, beside those of the caches.
            servers: started with those of metrics and probes.
            caches: what every replica watches beside what is watched already.
            ready: started with the caches.
            metrics: beside those of caches; computed when they are scraped.

        Raises: OSError: the address of a server is taken.
        """
        config = self.config
        grace_period, filling = config.graceful_shutdown_timeout, config.controllers.cache_sync_timeout
        caches_behind = CacheCollector(self.clusters, prefix=self._program.component.metrics_prefix)
        servers = [self._metrics(), self._probes(checks), *servers]
        for server in servers:
            server.bind()
        return [
            [
                *tracing.parts(config.tracing, service=self._program.name, grace_period=grace_period),
                Sessions(self.clusters),
            ],
            [Metrics([caches_behind, *metrics]), *servers, MemoryReturn()],
            [ReadyCaches(self.clusters, timeout=filling, users=caches), *ready],
            [Events(self.clusters)],
            [Election(self._elector)] if self._elector else [],
            work,
        ]

    def describe_leader(self, annotations: Mapping[str, str]) -> None:
        """Has the Lease say these while this replica leads."""
        if self._elector:
            self._elector.annotations = annotations

    def _may_write(self) -> float:
        assert self._elector is not None
        return self._elector.tenure.guard()

    def _new_elector(self) -> LeaderElector:
        settings, name = self.config.leader_election, self._program.component.clusters[0].name
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
        return LeaderElector(client, lease, identity=new_identity(), recorder=self.clusters.recorder(name))

    def _metrics(self) -> HttpServer:
        server, profiling = self.config.server.metrics, self.config.debugging.enable_profiling
        return metrics_server(host=server.bind_address, port=server.port, profiling=profiling)

    def _probes(self, checks: Sequence[HealthCheck]) -> HttpServer:
        configured = [cluster.name for cluster in self._program.component.clusters]
        informers, server = SyncChecks(self.clusters, configured=configured), self.config.server.health_probes
        return probe_server(readyz=lambda: [*checks, *informers()], host=server.bind_address, port=server.port)
