"""Clusters of a process, by name: connections to them open, are replaced and close while it runs.

    open       a session with all that uses it: client, rate limit, caches, known kinds, Events
    replace    other credentials for the same server; everything continues with them, watches too
    close      waiting Events are written, watches and session end

`subscribe` is for code that follows the connections. Two configured clusters that are the same, with the same user and
restricted to the same namespaces, become one with two names.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from kube.clock import utc_now
from kube.runtime.cache import Caches
from kube.runtime.client import Client, RoundTripper
from kube.runtime.connection import Connection, in_cluster, load_kubeconfig
from kube.runtime.discovery import Discovery
from kube.runtime.events import EventRecorder
from kube.runtime.limiter import TokenBucket
from kube.runtime.metrics import forget_host, rest_client_rate_limiter_duration_seconds
from kube.runtime.transport import Transport
from kube.runtime.watch import Timings
from process.configuration.blocks import ClientConnection

_DRAIN_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One cluster, shared within this process."""

    transport: RoundTripper
    client: Client
    """Limited by the connection's rate. Refuses writes after the loss of leadership, and while its caches may predate a
    rewind of the cluster's history."""
    caches: Caches
    discovery: Discovery
    namespaces: tuple[str, ...]
    """Namespaces that the caches are restricted to; empty for all."""
    clock: Callable[[], datetime] = utc_now
    """Time of its API server."""
    deletion_clock: Callable[[], datetime] = utc_now
    """Earliest time of all clocks: a deletion that depends on time waits for it."""

    @property
    def authority(self) -> bytes:
        """CA bundle of its API server, PEM; empty for the system's authorities."""
        return self.transport.connection.authority


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Connection to a cluster with user and limits, and its names in this process."""

    names: tuple[str, ...]
    connection: Connection
    settings: ClientConnection


def endpoints(settings: Mapping[str, ClientConnection], *, environment: Mapping[str, str]) -> list[Endpoint]:
    """Return the endpoints of the configured connections; names of one cluster are together.

    Raises:
        ConfigurationError: a kubeconfig, or the Pod's service account, is unusable.
    """
    connections: dict[str, Connection] = {}
    found: list[Endpoint] = []
    for name, wanted in settings.items():
        kubeconfig = wanted.kubeconfig
        connection = connections.get(kubeconfig) or _connection(kubeconfig, environment)
        connections[kubeconfig] = connection
        for index, other in enumerate(found):
            if same_cluster(other.connection, other.settings, connection, wanted):
                found[index] = Endpoint((*other.names, name), connection, merged(other.settings, wanted))
                break
        else:
            found.append(Endpoint((name,), connection, wanted))
    return found


def _connection(kubeconfig: str, environment: Mapping[str, str]) -> Connection:
    return load_kubeconfig(Path(kubeconfig)) if kubeconfig else in_cluster(environment=environment)


def same_cluster(
    one: Connection, one_settings: ClientConnection, other: Connection, other_settings: ClientConnection
) -> bool:
    """Whether one set of watches serves both."""
    return one.identity == other.identity and set(one_settings.namespaces) == set(other_settings.namespaces)


def merged(one: ClientConnection, other: ClientConnection) -> ClientConnection:
    """Return the settings of a connection that serves both: the more generous limit, the more frequent resync."""
    unlimited = one.qps < 0 or other.qps < 0
    return replace(
        one,
        qps=-1.0 if unlimited else max(one.qps, other.qps),
        burst=max(one.burst, other.burst),
        cache_resync_period=min(one.cache_resync_period, other.cache_resync_period),
    )


class _Session:
    """One open cluster, with the parts that have to be closed."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        user_agent: str,
        component: str,
        write_guard: Callable[[], float] | None,
        timings: Timings | None,
        on_history_rewound: Callable[[], None],
    ) -> None:
        settings, self.transport = endpoint.settings, Transport(endpoint.connection)
        waited = rest_client_rate_limiter_duration_seconds.labels(host=self.transport.host)
        limiter = TokenBucket(qps=settings.qps, burst=settings.burst, observe=waited.observe)
        client = Client(self.transport, user_agent=user_agent, limiter=limiter, write_guard=write_guard)
        caches = Caches(
            client,
            namespaces=settings.namespaces,
            resync_period=settings.cache_resync_period,
            timings=timings,
            on_history_rewound=on_history_rewound,
        )
        client.consistency = caches
        self.cluster = Cluster(
            transport=self.transport,
            clock=self.transport.clock,
            deletion_clock=self.transport.clock.earliest,
            client=client,
            caches=caches,
            discovery=Discovery(client),
            namespaces=settings.namespaces,
        )
        # Events are written even after leadership has ended.
        unguarded = Client(self.transport, user_agent=user_agent, limiter=limiter)
        self.recorder = EventRecorder(unguarded, component=component)
        self._recording = asyncio.create_task(self.recorder.run(), name="event recorder")

    async def drain(self) -> None:
        await self.recorder.drain(_DRAIN_SECONDS)

    async def close(self) -> None:
        await self.drain()
        self._recording.cancel()
        await asyncio.wait((self._recording,))
        await self.cluster.caches.close()
        await self.transport.close()


class Clusters(Mapping[str, Cluster]):
    """Clusters that a process is connected to.

    Args:
        component: source of Events.
        write_guard: of the clients; see `kube.runtime.client.Client`.
        timings: of watches.
    """

    def __init__(
        self,
        *,
        user_agent: str,
        component: str,
        write_guard: Callable[[], float] | None = None,
        timings: Timings | None = None,
    ) -> None:
        self.history_rewound = asyncio.Event()
        """Set when the history of a cluster was rewound, see `kube.runtime.cache`."""
        self._new_session = partial(
            _Session,
            user_agent=user_agent,
            component=component,
            write_guard=write_guard,
            timings=timings,
            on_history_rewound=self.history_rewound.set,
        )
        self._sessions: dict[str, _Session] = {}
        self._handlers: list[Callable[[], None]] = []

    def __getitem__(self, name: str) -> Cluster:
        return self._sessions[name].cluster

    def __iter__(self) -> Iterator[str]:
        # Clusters may come and go while the caller iterates.
        return iter(tuple(self._sessions))

    def __len__(self) -> int:
        return len(self._sessions)

    def recorder(self, name: str) -> EventRecorder:
        """Return the recorder of Events in the cluster; names of one cluster share it."""
        return self._sessions[name].recorder

    def subscribe(self, handler: Callable[[], None]) -> Callable[[], None]:
        """Call the handler whenever a cluster was opened or closed; return a function that ends that."""
        self._handlers.append(handler)
        return lambda: self._handlers.remove(handler)

    def open(self, endpoint: Endpoint) -> Cluster:
        """Add a cluster under all its names; nothing is sent yet.

        Raises:
            ValueError: the name is taken.
        """
        if taken := [name for name in endpoint.names if name in self._sessions]:
            raise ValueError(f"cluster {taken[0]} already exists; close it first, or replace its connection")
        session = self._new_session(endpoint)
        self._sessions |= dict.fromkeys(endpoint.names, session)
        self._changed()
        return session.cluster

    def replace(self, name: str, connection: Connection) -> None:
        """Use other credentials for the same server from now on.

        Watches continue with them at the same position, and those waiting after a failure at once.

        Raises:
            ConfigurationError: it is another server; nothing is changed.
        """
        session = self._sessions[name]
        session.transport.replace(connection)
        session.cluster.caches.wake()

    async def close(self, name: str) -> None:
        """Remove the cluster, also under its other names. Waiting Events get a moment."""
        session = self._sessions[name]
        self._sessions = {other: each for other, each in self._sessions.items() if each is not session}
        self._changed()
        await session.close()
        if session.transport.host not in {each.transport.host for each in self._sessions.values()}:
            forget_host(session.transport.host)

    async def drain(self) -> None:
        """Give waiting Events a moment to be written."""
        await asyncio.gather(*(session.drain() for session in set(self._sessions.values())))

    async def close_all(self) -> None:
        for name in distinct(self):
            await self.close(name)

    def _changed(self) -> None:
        for handler in tuple(self._handlers):
            handler()


def distinct(clusters: Mapping[str, Cluster]) -> dict[str, Cluster]:
    """Return each cluster once, by the first of its names, which messages and metrics use."""
    found: dict[int, tuple[str, Cluster]] = {}
    for name, cluster in clusters.items():
        found.setdefault(id(cluster), (name, cluster))
    return dict(found.values())
