"""What the agent consists of, put together from its configuration.

    sessions        to one API server or two; spans, if they are wanted
    servers         /metrics, /healthz, /readyz; the status page, if it is wanted
    caches          of ManagedResources and their Secrets: every replica holds them, to be able to take over at once
    events          written until the last moment
    election        the groups below start when this replica leads
    controllers     bootstrap, then the control loops

Each starts when the one before is ready, and they stop in reverse.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from agent.changes import KEPT, RecentChanges
from agent.controllers import compose_controllers, hold_ready, optional_loops
from agent.kinds import CRDS_VIEW
from agent.managed_resource.source import Source
from agent.parts import Controllers, Election, EventWriter
from agent.status_page.knowledge import Knowledge
from config.schema import LeaderElection, ResourceManagerConfiguration
from kube.client import Client
from kube.election import ElectionSettings, LeaderElector, new_identity
from kube.events import EventRecorder
from process import tracing
from process.cache_metrics import caches_behind
from process.caches import by_name
from process.clusters import Cluster, Line, endpoints, health_status
from process.memory import MemoryReturn, keep_large_apart
from process.metrics import metrics_server
from process.parts import ReadyCaches, Sessions
from process.probes import (
    HealthCheck,
    ReadyWatches,
    WatchState,
    apiserver_check,
    informer_sync,
    informer_sync_liveness,
    probe_server,
)
from process.runner import Groups
from process.server import HttpServer
from process.version import COMPONENT

SERVICE = "resource-manager-agent"
"""What traces call this program."""


async def compose(config: ResourceManagerConfiguration, *, user_agent: str, environment: Mapping[str, str]) -> Groups:
    """The components of the agent in the order of their start.

    Raises:
        ConfigurationError: a cluster can't be connected to.
        OSError: the address of a server is taken.
    """
    keep_large_apart()
    optional_loops(config)
    ends = endpoints(config.source_client_connection, config.target_client_connection, environment=environment)
    source_line = Line.to(ends.source)
    target_line = source_line if ends.are_one else Line.to(ends.target)
    # Neither is subject to leadership: events are told after it ended, and health is everybody's.
    recorder = EventRecorder(source_line.client(user_agent=user_agent), component=COMPONENT)
    target_recorder = (
        recorder if ends.are_one else EventRecorder(target_line.client(user_agent=user_agent), component=COMPONENT)
    )
    elector = _elector(config.leader_election, source_line, user_agent, recorder)
    guard = elector.tenure.guard if elector else None
    source = source_line.cluster(user_agent=user_agent, write_guard=guard)
    target = source if ends.are_one else target_line.cluster(user_agent=user_agent, write_guard=guard)

    servers = [
        metrics_server(
            host=config.server.metrics.bind_address,
            port=config.server.metrics.port,
            profiling=config.debugging.enable_profiling,
        ),
        _probe_server(config, source, target, source_line.client(user_agent=user_agent, limited=False)),
    ]
    for server in servers:
        server.bind()
    clusters = by_name(source, target)
    caches_behind.follow({name: cluster.caches for name, cluster in clusters.items()})
    # From here on watches run: readiness must not see a moment without the watches it depends on.
    held = hold_ready(source)
    page = config.server.status_page
    changes = RecentChanges(limit=KEPT if page.port else 0)
    knowledge = _knowledge(config, held, changes)
    if page.port:
        # Imported only if it is wanted: that takes time.
        from agent.status_page.server import status_page_server

        servers.append(status_page_server(knowledge, host=page.bind_address, port=page.port))
        servers[-1].bind()
    return [
        [
            *tracing.parts(config.tracing, service=SERVICE, grace_period=config.graceful_shutdown_timeout),
            Sessions({source_line.transport, target_line.transport}),
        ],
        [*servers, MemoryReturn()],
        [ReadyCaches(clusters, timeout=config.controllers.cache_sync_timeout)],
        [EventWriter(each) for each in {recorder, target_recorder}],
        [Election(elector)] if elector else [],
        [
            Controllers(
                config=config,
                source=source,
                target=target,
                recorder=recorder,
                target_recorder=target_recorder,
                compose=partial(compose_controllers, held=held, knowledge=knowledge),
                changes=changes,
            )
        ],
    ]


def _elector(settings: LeaderElection, line: Line, user_agent: str, recorder: EventRecorder) -> LeaderElector | None:
    if not settings.leader_elect:
        return None
    lease = ElectionSettings(
        namespace=settings.resource_namespace,
        name=settings.resource_name,
        lease_duration=settings.lease_duration,
        renew_deadline=settings.renew_deadline,
        retry_period=settings.retry_period,
        resource_lock=settings.resource_lock,
    )
    # Without a rate limit: renewals must not queue behind the work.
    client = line.client(user_agent=f"{user_agent}/leader-election", limited=False)
    return LeaderElector(client, lease, identity=new_identity(), recorder=recorder)


def _knowledge(config: ResourceManagerConfiguration, held: Source, changes: RecentChanges) -> Knowledge:
    election = config.leader_election
    return Knowledge(
        managed_resources=held.managed_resources,
        secrets=held.secrets,
        changes=changes,
        resource_class=config.controllers.resource_class,
        lease=f"{election.resource_namespace}/{election.resource_name}" if election.leader_elect else "",
    )


# --- probes


def _probe_server(config: ResourceManagerConfiguration, source: Cluster, target: Cluster, client: Client) -> HttpServer:
    readyz: list[HealthCheck] = []
    healthz = [apiserver_check(lambda: health_status(client))]
    for name, cluster in (("source-informer-sync", source), ("target-informer-sync", target)):
        watches = _watches(cluster)
        readyz.append(informer_sync(name, ReadyWatches(watches)))
        healthz.append(informer_sync_liveness(name, _needed_are_synced(watches)))
    server = config.server.health_probes
    return probe_server(healthz=healthz, readyz=readyz, host=server.bind_address, port=server.port)


def _watches(cluster: Cluster) -> Callable[[], Iterator[WatchState]]:
    """The watches that readiness depends on: not that of CustomResourceDefinitions, which nothing has to wait for."""

    def states() -> Iterator[WatchState]:
        for store in cluster.caches.stores():
            if store.view != CRDS_VIEW:
                name = str(store.view.resource)
                yield WatchState(name, store.synced.is_set(), store.started_at, store.needed_at_start)

    return states


def _needed_are_synced(watches: Callable[[], Iterator[WatchState]]) -> Callable[[], bool]:
    """What a restart can mend; a kind that may not be listed, or a target that is down, is not of that sort."""
    return lambda: all(watch.synced for watch in watches() if watch.needed_at_start)
