"""What a gardenlet says of its flows: asked through the API server of its seed, or at an address."""

from typing import Any
from urllib.parse import quote, urlsplit

import orjson

from kube.errors import Forbidden, KubeError, NoStatus, Unauthorized
from kube.objects import Key, Object, mapping, mappings, spec, text
from kube.resources import LEASES, PODS, Resource
from kube.runtime.client import Client
from kube.runtime.connection import Connection, Fixed
from kubectl.errors import UserError
from kubectl.transport import PlainTransport

_LEASE = Key("garden", "gardenlet-leader-election")
_PORT = 2729
_USER_AGENT = "kubectl-gardener"
_FORWARD = (
    "forward a port to it: kubectl -n garden port-forward pod/NAME 2729, and use --gardenlet http://localhost:2729"
)

_RUNS = "does it run, and is this where it serves its metrics?"


async def flows_at(url: str, resource: Resource, own: Key) -> dict[str, Any]:
    """Raises UserError, KubeError."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.netloc or parts.query or parts.fragment:
        raise UserError(f"{url!r} is no address of a gardenlet", hint="such as http://localhost:2729")
    connection = Connection(server=url.rstrip("/"), tls=None, credentials=Fixed(), identity=(url,))
    async with PlainTransport(connection) as transport:
        return await _ask(Client(transport, user_agent=_USER_AGENT), "", resource, own)


async def flows_in(client: Client, resource: Resource, own: Key) -> dict[str, Any]:
    """Of the leader in the cluster of a seed. Raises UserError, KubeError."""
    pod = await _leader(client)
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    path = f"/api/v1/namespaces/{namespace}/pods/{name}:{_port(pod)}/proxy"
    return await _ask(client, path, resource, own)


async def _leader(client: Client) -> Object:
    lease = await client.find(LEASES, _LEASE.name, namespace=_LEASE.namespace)
    holder = text(spec(lease or {}).get("holderIdentity"))
    if not holder:
        hint = "name the kubeconfig of the cluster of the Seed by --seed-kubeconfig"
        raise UserError(f"no gardenlet holds the Lease {_LEASE} in this cluster", hint=hint)
    name = holder.rpartition("_")[0]
    pod = await client.find(PODS, name, namespace=_LEASE.namespace) if name else None
    if pod is None:
        hint = "ask its process: --gardenlet http://HOST:PORT, where it serves its metrics"
        raise UserError(f"the gardenlet {holder} is no pod of this cluster", hint=hint)
    return pod


def _port(pod: Object) -> int:
    for container in mappings(spec(pod).get("containers")):
        for port in mappings(container.get("ports")):
            if port.get("name") == "metrics" and isinstance(found := port.get("containerPort"), int):
                return found
    return _PORT


async def _ask(client: Client, prefix: str, resource: Resource, own: Key) -> dict[str, Any]:
    names = "/".join(quote(each, safe="") for each in (resource.kind.lower(), own.namespace, own.name) if each)
    try:
        body = await client.request("GET", f"{prefix}/flows/{names}", params={"format": "json"})
    except (Forbidden, Unauthorized):
        raise
    except KubeError as error:
        if isinstance(error, NoStatus) and error.status == 404:
            hint = (
                f"its leader remembers flows since its start; else: kubectl gardener why {resource.kind.lower()} NAME"
            )
            raise UserError(f"the gardenlet knows no flow of {resource.kind} {own}", hint=hint) from error
        raise UserError(f"the gardenlet can't be reached: {error}", hint=_FORWARD if prefix else _RUNS) from error
    try:
        return dict(mapping(orjson.loads(body)))
    except ValueError as error:
        raise UserError("the answer is not that of a gardenlet", hint=_RUNS) from error
