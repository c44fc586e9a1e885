"""Connections to the clusters of Shoots: opened on demand, closed when unused for a while.

    async with shoots.use("shoot--dev--rose", version="1.30.2") as cluster:
        await cluster.client.list(...)

The kubeconfig is in the Shoot's namespace in the seed, and the resource manager renews its token. So it is read again
before a use, but not before each: the connection continues with new credentials, and is replaced for another server.
Nothing of a Shoot is watched, and only connections in use are kept.
"""

import asyncio
import base64
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kube.errors import KubeError, NotFound
from kube.objects import Key, string_map
from kube.resources import SECRETS
from kube.runtime.client import Client
from kube.runtime.connection import Connection, connection_of_kubeconfig
from kube.runtime.controller import ReconcileError
from kube.runtime.kubeconfig import ConfigurationError
from kube.runtime.server_version import server_version
from process.clusters import Cluster, Clusters, Endpoint
from process.configuration.blocks import ClientConnection

IDLE_SECONDS = 300.0
_CHECK_SECONDS = 5.0
_EXTERNAL, _INTERNAL = "gardener", "gardener-internal"


async def _resolves(name: str) -> bool:
    try:
        await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return True


class NoConnectionError(ReconcileError):
    """The cluster can't be reached yet, or not any more; the text has the reason."""


@dataclass(slots=True)
class _Open:
    """An open connection. Times are monotonic."""

    cluster: Cluster
    server: str
    kubeconfig: bytes
    checked: float
    users: int = 0
    closing: asyncio.Task[None] | None = None


class ShootClusters:
    """Connections to Shoots.

    Args:
        seed: client of the seed.
        clusters: of this process; those of Shoots have the names of their namespaces.
        settings: of each connection.
        resolves: whether the name of a Service in the seed can be resolved here.
        now: monotonic seconds.
        idle: seconds after which an unused connection is closed.
    """

    def __init__(
        self,
        seed: Client,
        clusters: Clusters,
        settings: ClientConnection,
        *,
        resolves: Callable[[str], Awaitable[bool]] = _resolves,
        now: Callable[[], float] = time.monotonic,
        idle: float = IDLE_SECONDS,
    ) -> None:
        self._seed, self._clusters, self._settings = seed, clusters, settings
        self._resolves, self._now, self._idle = resolves, now, idle
        self._open: dict[str, _Open] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._none_yet = set[str]()

    @asynccontextmanager
    async def use(
        self, namespace: str, *, version: str = "", checked_within: float = _CHECK_SECONDS
    ) -> AsyncIterator[Cluster]:
        """Connect to the cluster of a Shoot.

        Args:
            namespace: of the Shoot in the seed.
            version: required version of Kubernetes; empty for any.
            checked_within: seconds for which a working kubeconfig is not read again.

        Raises:
            NoConnectionError: there is no kubeconfig, or the version differs.
        """
        async with self._locks.setdefault(namespace, asyncio.Lock()):
            opened = await self._opened(namespace, checked_within)
        opened.users += 1
        try:
            if version:
                await self._demand(namespace, opened, version)
            yield opened.cluster
        except KubeError:
            opened.checked = float("-inf")  # the kubeconfig may be the cause
            raise
        finally:
            opened.users -= 1
            if not opened.users and self._open.get(namespace) is opened:
                opened.closing = asyncio.create_task(self._close_idle(namespace, opened))

    def expect_none(self, namespace: str) -> None:
        """Fail without a request until `expect` is called, because there is no kubeconfig yet."""
        self._none_yet.add(namespace)

    def expect(self, namespace: str) -> None:
        self._none_yet.discard(namespace)

    async def drop(self, namespace: str) -> None:
        """Close the connection to a cluster that is deleted or hibernated."""
        self._none_yet.discard(namespace)
        self._locks.pop(namespace, None)
        if (opened := self._open.pop(namespace, None)) is not None:
            if opened.closing is not None:
                opened.closing.cancel()
            await self._clusters.close(namespace)

    async def close(self) -> None:
        for namespace in list(self._open):
            await self.drop(namespace)

    async def _close_idle(self, namespace: str, opened: _Open) -> None:
        await asyncio.sleep(self._idle)
        opened.closing = None
        if not opened.users and self._open.get(namespace) is opened:
            await self.drop(namespace)

    async def _opened(self, namespace: str, checked_within: float) -> _Open:
        """Return the connection, with the current kubeconfig."""
        opened = self._open.get(namespace)
        if opened is not None and opened.closing is not None:
            opened.closing.cancel()
            opened.closing = None
        if opened is not None and self._now() - opened.checked < checked_within:
            return opened
        kubeconfig, connection = await self._current(namespace)
        checked = self._now()
        if opened is not None and opened.server == connection.server:
            if opened.kubeconfig != kubeconfig:
                self._clusters.replace(namespace, connection)
            opened.kubeconfig, opened.checked = kubeconfig, checked
            return opened
        if opened is not None:
            self._open.pop(namespace)
            await self._clusters.close(namespace)
        cluster = self._clusters.open(Endpoint((namespace,), connection, self._settings))
        self._open[namespace] = _Open(cluster, connection.server, kubeconfig, checked)
        return self._open[namespace]

    async def _current(self, namespace: str) -> tuple[bytes, Connection]:
        """Read the current kubeconfig.

        Raises:
            NoConnectionError: there is none, or it is invalid.
            KubeError: it can't be read.
        """
        if namespace in self._none_yet:
            raise NoConnectionError("the shoot has no kubeconfig yet; it is created with its control plane")
        name = _INTERNAL if await self._resolves(f"kube-apiserver.{namespace}.svc") else _EXTERNAL
        try:
            secret = await self._seed.get(SECRETS, Key(namespace, name))
        except NotFound as error:
            raise NoConnectionError(f'Secret "{name}" not found') from error
        try:
            kubeconfig = base64.b64decode(string_map(secret.get("data")).get("kubeconfig", ""))
            connection = connection_of_kubeconfig(kubeconfig, origin=f"of Secret {namespace}/{name}")
        except (ConfigurationError, ValueError) as error:
            raise NoConnectionError(str(error)) from error
        if await connection.credentials.authorization() is None:
            raise NoConnectionError("token for shoot kubeconfig was not populated yet")
        return kubeconfig, connection

    async def _demand(self, namespace: str, opened: _Open, version: str) -> None:
        """Check the version of the API server.

        Raises:
            NoConnectionError: it is not the version that was rolled out.
        """
        found = await server_version(opened.cluster.client)
        if found.removeprefix("v") != version:
            opened.checked = float("-inf")
            raise NoConnectionError(f"the API server of {namespace} runs version {found}, expected v{version}")
