"""The clusters of a process, by name.

Where two of them are the same, seen by the same user and restricted to the same namespaces, they share everything: the
session, the rate limit, the watches with their memory, and what is known of kinds.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from config.blocks import ClientConnection
from kube.cache import Caches
from kube.client import Client, RoundTripper
from kube.clock import utc_now
from kube.connection import Connection, in_cluster, load_kubeconfig
from kube.discovery import Discovery
from kube.limiter import TokenBucket
from kube.metrics import rest_client_rate_limiter_duration_seconds
from kube.transport import Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One cluster, as all of this process share it."""

    transport: RoundTripper
    client: Client
    """Limited by the connection's rate. Refuses to write when this process may not lead any more, and what comes from
    caches that may be of another past."""
    caches: Caches
    discovery: Discovery
    namespaces: tuple[str, ...]
    """What the caches are restricted to; empty: all."""
    clock: Callable[[], datetime] = utc_now
    """The time of its API server."""


@dataclass(frozen=True, slots=True)
class Line:
    """A session to a cluster with its names there, and the rate limit of all that goes over it."""

    names: tuple[str, ...]
    transport: Transport
    limiter: TokenBucket
    settings: ClientConnection

    @classmethod
    def to(cls, connection: Connection, settings: ClientConnection, *names: str) -> "Line":
        transport = Transport(connection)
        waited = rest_client_rate_limiter_duration_seconds.labels(host=transport.host)
        limiter = TokenBucket(qps=settings.qps, burst=settings.burst, observe=waited.observe)
        return cls(names, transport, limiter, settings)

    def client(self, *, user_agent: str, limited: bool = True) -> Client:
        """A client that asks nobody whether it may write."""
        return Client(self.transport, user_agent=user_agent, limiter=self.limiter if limited else None)

    def cluster(self, *, user_agent: str, write_guard: Callable[[], float] | None = None) -> Cluster:
        """The cluster as control loops see it."""
        client = Client(self.transport, user_agent=user_agent, limiter=self.limiter, write_guard=write_guard)
        settings = self.settings
        caches = Caches(client, namespaces=settings.namespaces, resync_period=settings.cache_resync_period)
        client.consistency = caches
        return Cluster(
            transport=self.transport,
            clock=self.transport.clock,
            client=client,
            caches=caches,
            discovery=Discovery(client),
            namespaces=settings.namespaces,
        )


def lines(settings: Mapping[str, ClientConnection], *, environment: Mapping[str, str]) -> list[Line]:
    """To what the connections of the configuration point at; names of one cluster are together.

    Raises: ConfigurationError: a kubeconfig, or the Pod's service account, can't be used.
    """
    connections: dict[str, Connection] = {}
    found: list[Line] = []
    for name, wanted in settings.items():
        kubeconfig = wanted.kubeconfig
        connection = connections.get(kubeconfig) or _connection(kubeconfig, environment)
        connections[kubeconfig] = connection
        for index, other in enumerate(found):
            if same_cluster(other.transport.connection, other.settings, connection, wanted):
                found[index] = Line.to(connection, merged(other.settings, wanted), *other.names, name)
                break
        else:
            found.append(Line.to(connection, wanted, name))
    return found


def _connection(kubeconfig: str, environment: Mapping[str, str]) -> Connection:
    return load_kubeconfig(Path(kubeconfig)) if kubeconfig else in_cluster(environment=environment)


def same_cluster(
    one: Connection, one_settings: ClientConnection, other: Connection, other_settings: ClientConnection
) -> bool:
    """Whether one set of watches serves both."""
    return one.identity == other.identity and set(one_settings.namespaces) == set(other_settings.namespaces)


def merged(one: ClientConnection, other: ClientConnection) -> ClientConnection:
    """The settings of a connection that serves both: the more generous limit, the more frequent resync."""
    unlimited = one.qps < 0 or other.qps < 0
    return replace(
        one,
        qps=-1.0 if unlimited else max(one.qps, other.qps),
        burst=max(one.burst, other.burst),
        cache_resync_period=min(one.cache_resync_period, other.cache_resync_period),
    )


class Clusters(Mapping[str, Cluster]):
    """The clusters that a process is connected to; some are configured, others may come and go.

    Args: write_guard: of the clients; see `kube.client.Client`.
    """

    def __init__(self, *, user_agent: str, write_guard: Callable[[], float] | None = None) -> None:
        self._user_agent = user_agent
        self._write_guard = write_guard
        self._clusters: dict[str, Cluster] = {}

    def __getitem__(self, name: str) -> Cluster:
        return self._clusters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._clusters)

    def __len__(self) -> int:
        return len(self._clusters)

    def connect(self, line: Line) -> Cluster:
        """From now on there is this cluster, under all names of the line; nothing is sent yet."""
        cluster = line.cluster(user_agent=self._user_agent, write_guard=self._write_guard)
        self._clusters.update(dict.fromkeys(line.names, cluster))
        return cluster

    async def disconnect(self, name: str) -> None:
        """Ends watches and session; who holds stores of the cluster has given them back."""
        cluster = self._clusters[name]
        self._clusters = {other: each for other, each in self._clusters.items() if each is not cluster}
        await cluster.caches.close()
        await cluster.transport.close()

    async def close(self) -> None:
        for name in distinct(self):
            await self.disconnect(name)


def distinct(clusters: Mapping[str, Cluster]) -> dict[str, Cluster]:
    """Each cluster once, by the first of its names, which is the one in messages and metrics."""
    found: dict[int, tuple[str, Cluster]] = {}
    for name, cluster in clusters.items():
        found.setdefault(id(cluster), (name, cluster))
    return dict(found.values())
