"""Flows and next changes as reported by a gardenlet, through the API server of its seed, or at an address.

async with gardenlet_of(session, url, SHOOTS, Key("garden-dev", "rose")) as gardenlet:
    await gardenlet.flows(SHOOTS, Key("garden-dev", "rose"))
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from socket import gethostname
from typing import Any
from urllib.parse import quote, urlsplit

import orjson

from gardener.api.garden import MANAGED_SEEDS, SEEDS, SHOOTS
from gardener.difference_reports import REFUSED
from gardener.garden.domains import NAMESPACE
from gardener.garden.seeds import LEASE_NAMESPACE, local_gardenlet_url
from gardener.garden.shoots import responsible_seed
from kube.errors import ApiError, Forbidden, KubeError, NoStatus, TimedOut, Unauthorized
from kube.objects import Key, Object, mapping, mappings, spec, text
from kube.paths import at
from kube.resources import LEASES, PODS, Resource
from kube.runtime.client import Client
from kube.runtime.connection import Connection, Fixed
from kubectl.errors import UserError
from kubectl.garden.why.finding import about_it
from kubectl.reader import Reader
from kubectl.session import Session
from kubectl.transport import PlainTransport

_LEASE = Key("garden", "gardenlet-leader-election")
_PORT = 2729
_FLOWS_SECONDS = 10.0
"""Maximum time for an answer from memory. A process that is suspended accepts connections, and does not answer."""
_USER_AGENT = "kubectl-gardener"
_FORWARD = (
    "forward a port to it: kubectl -n garden port-forward pod/NAME 2729, and use --gardenlet http://localhost:2729"
)

_RUNS = "does it run, and is this where it serves its metrics?"


class NoFlow(UserError):
    """The gardenlet has not started a flow of the object since its own start."""


@dataclass(frozen=True, slots=True)
class Gardenlet:
    """Attributes: prefix: of all paths, for a proxy."""

    client: Client
    prefix: str = ""

    async def flows(self, resource: Resource, own: Key) -> dict[str, Any]:
        """Flows of an object. Raises NoFlow, UserError, KubeError."""
        hint = f"its leader remembers flows since its start; else: {about_it(resource, own)}"
        unknown = NoFlow(f"the gardenlet knows no flow of {resource.kind} {own}", hint=hint)
        return await self._ask(resource, own, unknown=unknown, timeout=_FLOWS_SECONDS)

    async def differences(self, resource: Resource, own: Key) -> dict[str, Any]:
        """Changes by the next reconciliation of an object. Raises UserError, KubeError."""
        hint = f"an older gardenlet, or one that does not lead; else: {about_it(resource, own)}"
        unknown = UserError(f"the gardenlet knows nothing of {resource.kind} {own}", hint=hint)
        return await self._ask(resource, own, "diff", unknown=unknown)

    async def _ask(
        self, resource: Resource, own: Key, *more: str, unknown: UserError, timeout: float | None = None
    ) -> dict[str, Any]:
        names = (resource.kind.lower(), own.namespace, own.name, *more)
        path = "/".join(quote(each, safe="") for each in names if each)
        try:
            body = await self.client.request(
                "GET", f"{self.prefix}/flows/{path}", params={"format": "json"}, timeout=timeout
            )
        except (Forbidden, Unauthorized):
            raise
        except KubeError as error:
            raise self._explained(error, unknown) from error
        try:
            return dict(mapping(orjson.loads(body)))
        except ValueError as error:
            raise UserError("the answer is not that of a gardenlet", hint=_RUNS) from error

    def _explained(self, error: KubeError, unknown: UserError) -> UserError:
        if isinstance(error, ApiError) and error.reason == REFUSED:
            return UserError(str(error))
        if isinstance(error, NoStatus) and error.status == HTTPStatus.NOT_FOUND:
            return unknown
        if isinstance(error, TimedOut):
            return UserError(f"the gardenlet does not answer in time: {error}", hint="is it suspended, or overloaded?")
        return UserError(f"the gardenlet can't be reached: {error}", hint=_FORWARD if self.prefix else _RUNS)


@asynccontextmanager
async def gardenlet_of(session: Session, url: str | None, resource: Resource, own: Key) -> AsyncIterator[Gardenlet]:
    """Gardenlet at the address, else that of the Shoot or Seed on this computer, unless flags name the cluster of the
    seed, else the leader in the cluster of the seed. Raises UserError, also if the object does not exist; KubeError.
    """
    garden = session.source.client
    if not url and session.target is session.source:
        with suppress(Forbidden):
            await Reader(garden).demand(resource, own)
        url = await local_url(garden, resource, own)
    if url:
        async with gardenlet_at(url) as found:
            yield found
    else:
        yield await gardenlet_in(session.target.client, await _cluster_hint(garden, resource, own))


@asynccontextmanager
async def gardenlet_at(url: str) -> AsyncIterator[Gardenlet]:
    """Gardenlet that serves its metrics at the address. Raises UserError."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.netloc or parts.query or parts.fragment:
        raise UserError(f"{url!r} is not a valid address of a gardenlet", hint="such as http://localhost:2729")
    connection = Connection(server=url.rstrip("/"), tls=None, credentials=Fixed(), identity=(url,))
    async with PlainTransport(connection) as transport:
        yield Gardenlet(Client(transport, user_agent=_USER_AGENT))


async def local_url(garden: Client, resource: Resource, own: Key) -> str:
    """Address of the gardenlet of a Shoot or Seed on this computer; empty if it is not here."""
    name = await _seed_name(garden, resource, own)
    lease = await Reader(garden).glance(LEASES, Key(LEASE_NAMESPACE, name)) if name else None
    return local_gardenlet_url(lease or {}, gethostname())


async def _seed_name(garden: Client, resource: Resource, own: Key) -> str:
    if resource == SEEDS:
        return own.name
    shoot = await Reader(garden).glance(SHOOTS, own)
    return responsible_seed(shoot) if shoot is not None else ""


async def _cluster_hint(garden: Client, resource: Resource, own: Key) -> str:
    """Remedy if the cluster of the seed is another one."""
    name = await _seed_name(garden, resource, own)
    found = await Reader(garden).glance(MANAGED_SEEDS, Key(NAMESPACE, name)) if name else None
    shoot = text(at(found or {}, "spec", "shoot", "name"))
    if not shoot:
        return "name the kubeconfig of the cluster of the Seed by --seed-kubeconfig"
    command = f"kubectl gardener kubeconfig {shoot} -n {NAMESPACE} --admin"
    return f"get its kubeconfig, and name it by --seed-kubeconfig: {command}"


async def gardenlet_in(client: Client, hint: str = "") -> Gardenlet:
    """Leader in the cluster of a seed, through its API server. Raises UserError, KubeError."""
    pod = await _leader(client, hint)
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    return Gardenlet(client, f"/api/v1/namespaces/{namespace}/pods/{name}:{_port(pod)}/proxy")


async def _leader(client: Client, hint: str) -> Object:
    lease = await client.find(LEASES, _LEASE)
    holder = text(spec(lease or {}).get("holderIdentity"))
    if not holder:
        raise UserError(f"no gardenlet holds the Lease {_LEASE} in this cluster", hint=hint)
    name = holder.rpartition("_")[0]
    pod = await client.find(PODS, Key(_LEASE.namespace, name)) if name else None
    if pod is None:
        hint = "connect to its process: --gardenlet http://HOST:PORT, where it serves its metrics"
        raise UserError(f"the gardenlet {holder} is not a pod of this cluster", hint=hint)
    return pod


def _port(pod: Object) -> int:
    for container in mappings(spec(pod).get("containers")):
        for port in mappings(container.get("ports")):
            if port.get("name") == "metrics" and isinstance(found := port.get("containerPort"), int):
                return found
    return _PORT
