"""What the admission server consists of, put together from its configuration.

    sessions        to one API server or two; spans, if they are wanted
    servers         /metrics, /healthz, /readyz
    facts           what handlers know of the clusters, and the certificate
    webhooks        the HTTPS server

Each starts when the one before is ready, and they stop in reverse. There is no leader: every replica serves.

With several worker processes each of them has all of this but the servers, and the first process has nothing else; see
`webhooks.workers`.
"""

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from config.schema import ResourceManagerConfiguration
from process import tracing
from process.cache_metrics import caches_behind
from process.caches import by_name, fill
from process.clusters import Cluster, Line, endpoints, health_status
from process.memory import MemoryReturn
from process.metrics import metrics_server
from process.parts import Sessions
from process.probes import (
    HealthCheck,
    ReadyWatches,
    WatchState,
    apiserver_check,
    informer_sync,
    informer_sync_liveness,
    probe_server,
)
from process.runner import Component, Groups
from process.server import listen
from webhooks.facts import Facts
from webhooks.routes import disabled, enabled, routes
from webhooks.server import Requests, serving_check, webhook_server
from webhooks.tls import ServingCertificate, directory_of

SERVICE = "resource-manager-webhooks"
"""What traces call this program."""
SERVING = "webhook-server"
SOURCE_SYNC, TARGET_SYNC = "source-informer-sync", "target-informer-sync"
HEALTHZ = ("apiserver-healthz", SOURCE_SYNC, TARGET_SYNC)
READYZ = (SERVING, SOURCE_SYNC, TARGET_SYNC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a process is told from outside."""

    config: ResourceManagerConfiguration
    user_agent: str
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What answers API servers, and how it is doing."""

    first: Sequence[Component]
    """What starts before anything is sent or served."""
    groups: Groups
    healthz: list[HealthCheck]
    readyz: list[HealthCheck]


class Knowledge:
    """The facts that handlers read; ready when all are there."""

    name = "facts"

    def __init__(self, facts: Facts, *, timeout: float) -> None:
        self._facts = facts
        self._clusters = by_name(facts.source, facts.target)
        self._timeout = timeout

    async def start(self) -> None:
        await fill(self._facts.start(), self._clusters, timeout=self._timeout)

    async def wait(self) -> None:
        pass

    async def stop(self) -> None:
        await self._facts.close()
        for cluster in self._clusters.values():
            await cluster.caches.close()


def take_address(config: ResourceManagerConfiguration) -> socket.socket:
    """The socket that webhooks are served at. Raises OSError."""
    server = config.server.webhooks
    return listen("webhooks", server.bind_address, server.port)


async def compose(setup: Setup) -> Groups:
    """The components of a process that does everything itself, in the order of their start.

    Raises:
        ConfigurationError: a cluster can't be connected to.
        OSError: the address of a server is taken.
    """
    config = setup.config
    serving = compose_serving(setup, take_address(config))
    metrics, probes = config.server.metrics, config.server.health_probes
    servers = [
        metrics_server(host=metrics.bind_address, port=metrics.port, profiling=config.debugging.enable_profiling),
        probe_server(healthz=serving.healthz, readyz=serving.readyz, host=probes.bind_address, port=probes.port),
    ]
    for server in servers:
        server.bind()
    return [serving.first, servers, *serving.groups]


def compose_serving(setup: Setup, listening: socket.socket) -> Serving:
    """What serves webhooks at a socket. Raises ConfigurationError."""
    config = setup.config
    ends = endpoints(config.source_client_connection, config.target_client_connection, environment=setup.environment)
    source_line = Line.to(ends.source)
    target_line = source_line if ends.are_one else Line.to(ends.target)
    source = source_line.cluster(user_agent=setup.user_agent, write_guard=None)
    target = source if ends.are_one else target_line.cluster(user_agent=setup.user_agent, write_guard=None)

    caches_behind.follow({name: cluster.caches for name, cluster in by_name(source, target).items()})
    facts = Facts(config, source, target)
    table = routes(config, facts)
    certificate = ServingCertificate(directory_of(config.server.webhooks.tls.server_cert_dir))
    server = webhook_server(
        Requests(enabled(table), disabled(table)),
        listening,
        tls=certificate.context,
        grace_period=config.graceful_shutdown_timeout,
    )
    health_client = source_line.client(user_agent=setup.user_agent, limited=False)
    healthz = [apiserver_check(lambda: health_status(health_client))]
    readyz = [serving_check(SERVING, server)]
    for name, cluster in ((SOURCE_SYNC, source), (TARGET_SYNC, target)):
        watches = _needed_watches(cluster)
        readyz.append(informer_sync(name, ReadyWatches(watches)))
        healthz.append(informer_sync_liveness(name, _all_synced(watches)))
    knowledge = Knowledge(facts, timeout=config.controllers.cache_sync_timeout)
    return Serving(
        first=[
            *tracing.parts(config.tracing, service=SERVICE, grace_period=config.graceful_shutdown_timeout),
            Sessions({source_line.transport, target_line.transport}),
        ],
        groups=[[knowledge, certificate], [server, MemoryReturn()]],
        healthz=healthz,
        readyz=readyz,
    )


def _needed_watches(cluster: Cluster) -> Callable[[], Iterator[WatchState]]:
    """Without those of kinds that may not exist."""

    def states() -> Iterator[WatchState]:
        for store in cluster.caches.stores():
            if store.needed_at_start:
                yield WatchState(
                    str(store.view.resource), store.synced.is_set(), store.started_at, needed_at_start=True
                )

    return states


def _all_synced(watches: Callable[[], Iterator[WatchState]]) -> Callable[[], bool]:
    return lambda: all(watch.synced for watch in watches())
