"""The connections of a process: to the source cluster and to the target cluster, or one that is both.

Where both are the same cluster, seen by the same user and restricted to the same namespaces, everything is shared: the
session, the rate limit, the watches with their memory, and what is known of kinds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from config.schema import ClientConnection
from kube.cache import Caches
from kube.client import Client, Transport
from kube.connection import Connection, in_cluster, load_kubeconfig
from kube.discovery import Discovery
from kube.errors import ApiError
from kube.limiter import TokenBucket


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One cluster, as all of this process share it; source and target may be the same."""

    transport: Transport
    client: Client
    """Limited by the connection's rate, and refuses to write when this process may not lead any more."""
    caches: Caches
    discovery: Discovery
    namespaces: tuple[str, ...]
    """What the caches are restricted to; empty: all."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A cluster to connect to, and with which settings."""

    connection: Connection
    settings: ClientConnection


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Source and target; the same object if everything is shared."""

    source: Endpoint
    target: Endpoint

    @property
    def are_one(self) -> bool:
        return self.source is self.target


def endpoints(source: ClientConnection, target: ClientConnection, *, environment: Mapping[str, str]) -> Endpoints:
    """What the configuration points at. A target without a kubeconfig is the source.

    Raises:
        ConfigurationError: a kubeconfig, or the Pod's service account, can't be used.
    """
    source_connection = _connection(source.kubeconfig, environment)
    target_path = target.kubeconfig or source.kubeconfig
    shared_file = target_path == source.kubeconfig
    target_connection = source_connection if shared_file else _connection(target_path, environment)
    if same_cluster(source_connection, source, target_connection, target):
        both = Endpoint(source_connection, merged(source, target))
        return Endpoints(both, both)
    return Endpoints(Endpoint(source_connection, source), Endpoint(target_connection, target))


def _connection(kubeconfig: str, environment: Mapping[str, str]) -> Connection:
    return load_kubeconfig(Path(kubeconfig)) if kubeconfig else in_cluster(environment=environment)


def same_cluster(
    source: Connection, source_settings: ClientConnection, target: Connection, target_settings: ClientConnection
) -> bool:
    """Whether one set of watches serves both."""
    same_namespaces = set(source_settings.namespaces) == set(target_settings.namespaces)
    return source.identity == target.identity and same_namespaces


def merged(source: ClientConnection, target: ClientConnection) -> ClientConnection:
    """The settings of a connection that serves both: the more generous limit, the more frequent resync."""
    unlimited = source.qps < 0 or target.qps < 0
    return ClientConnection(
        kubeconfig=source.kubeconfig,
        qps=-1.0 if unlimited else max(source.qps, target.qps),
        burst=max(source.burst, target.burst),
        namespaces=source.namespaces,
        cache_resync_period=min(source.cache_resync_period, target.cache_resync_period),
    )


@dataclass(frozen=True, slots=True)
class Line:
    """A session to a cluster and the rate limit of all that goes over it."""

    transport: Transport
    limiter: TokenBucket
    settings: ClientConnection

    @classmethod
    def to(cls, endpoint: Endpoint) -> "Line":
        settings = endpoint.settings
        return cls(Transport(endpoint.connection), TokenBucket(qps=settings.qps, burst=settings.burst), settings)

    def client(self, *, user_agent: str, limited: bool = True) -> Client:
        """A client that asks nobody whether it may write."""
        return Client(self.transport, user_agent=user_agent, limiter=self.limiter if limited else None)

    def cluster(self, *, user_agent: str, write_guard: Callable[[], float] | None) -> Cluster:
        """The cluster as control loops see it."""
        client = Client(self.transport, user_agent=user_agent, limiter=self.limiter, write_guard=write_guard)
        settings = self.settings
        return Cluster(
            transport=self.transport,
            client=client,
            caches=Caches(client, namespaces=settings.namespaces, resync_period=settings.cache_resync_period),
            discovery=Discovery(client),
            namespaces=settings.namespaces,
        )


async def health_status(client: Client) -> int:
    """The status with which an API server answers `GET /healthz`."""
    try:
        await client.request("GET", "/healthz", accept="*/*")
    except ApiError as error:
        return error.status
    return 200
