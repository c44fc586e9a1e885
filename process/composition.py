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
from functools import partial
from typing import Generic, TypeVar

from prometheus_client.registry import Collector

from config.blocks import Configuration
from kube.election import ElectionSettings, LeaderElector, LeadershipLost, new_identity
from kube.events import EventRecorder
from process import tracing
from process.caches import CacheCollector, problem
from process.clusters import Clusters, lines
from process.description import Description
from process.memory import MemoryReturn
from process.metrics import metrics_server
from process.parts import CacheUser, Election, EventWriter, Metrics, ReadyCaches, Sessions
from process.probes import HealthCheck, informer_sync, probe_server
from process.runner import Component, Groups
from process.server import HttpServer
from process.version import user_agent

C = TypeVar("C", bound=Configuration)


class Composition(Generic[C]):
    """The clusters of a process and all that depends on nothing else; `groups` adds what the program has besides.

    Raises: ConfigurationError: a cluster can't be connected to.
    """

    abort_on = (LeadershipLost,)

    def __init__(self, program: Description[C], config: C, *, version: str, environment: Mapping[str, str]) -> None:
        self.config = config
        self._program = program
        self._user_agent = user_agent(program.component.name, version)
        self._lines = lines(program.component.connections(config), environment=environment)
        self.recorders: dict[str, EventRecorder] = {}
        """They write Events into a cluster, also after leadership ended; names of one cluster have the same one."""
        for line in self._lines:
            recorder = EventRecorder(line.client(user_agent=self._user_agent), component=program.component.name)
            self.recorders.update(dict.fromkeys(line.names, recorder))
        self._elector = self._new_elector() if program.elects and config.leader_election.leader_elect else None
        guard = self._elector.tenure.guard if self._elector else None
        self.clusters = Clusters(user_agent=self._user_agent, write_guard=guard)
        for line in self._lines:
            self.clusters.connect(line)

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
            [EventWriter(recorder) for recorder in set(self.recorders.values())],
            [Election(self._elector)] if self._elector else [],
            work,
        ]

    def describe_leader(self, annotations: Mapping[str, str]) -> None:
        """Has the Lease say these while this replica leads."""
        if self._elector:
            self._elector.annotations = annotations

    def _new_elector(self) -> LeaderElector:
        settings, (first, *_) = self.config.leader_election, self._lines
        lease = ElectionSettings(
            namespace=settings.resource_namespace,
            name=settings.resource_name,
            lease_duration=settings.lease_duration,
            renew_deadline=settings.renew_deadline,
            retry_period=settings.retry_period,
            resource_lock=settings.resource_lock,
        )
        # Without a rate limit: renewals must not queue behind the work.
        user_agent = f"{self._user_agent}/leader-election"
        client = first.client(user_agent=user_agent, limited=False)
        return LeaderElector(client, lease, identity=new_identity(), recorder=self.recorders[first.names[0]])

    def _metrics(self) -> HttpServer:
        server, profiling = self.config.server.metrics, self.config.debugging.enable_profiling
        return metrics_server(host=server.bind_address, port=server.port, profiling=profiling)

    def _probes(self, checks: Sequence[HealthCheck]) -> HttpServer:
        names = [cluster.name for cluster in self._program.component.clusters]
        caches = [
            informer_sync(
                f"{name}-informer-sync" if len(names) > 1 else "informer-sync", partial(problem, self.clusters[name])
            )
            for name in names
        ]
        server = self.config.server.health_probes
        return probe_server(readyz=[*checks, *caches], host=server.bind_address, port=server.port)
