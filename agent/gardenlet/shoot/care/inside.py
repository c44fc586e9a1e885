"""Checks inside a Shoot's cluster: the health of its API server in each check; lists only now and then.

Nothing is watched there, and only results are kept: lists are read page by page. Obsolete objects are removed
afterwards, so that conditions do not wait for it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from agent.gardenlet.common.shoot_clusters import NoConnectionError, ShootClusters
from agent.gardenlet.shoot.care import old_authority
from agent.gardenlet.shoot.care.rules import garbage
from agent.gardenlet.shoot.care.rules.conditions import has_workers
from agent.gardenlet.shoot.care.rules.nodes import (
    OF_AGENTS,
    NodeProblem,
    agent_problem,
    configuration_problem,
    configurations_in,
    expiry_problem,
    kept_of,
    lease_end,
)
from agent.gardenlet.shoot.care.rules.observed import ApiServer, Inside, Probe
from agent.gardenlet.shoot.care.rules.old_authority import is_checked
from agent.gardenlet.shoot.care.webhooks import PAGE, Webhooks
from gardener import keys
from gardener.garden.shoots import operation_of
from gardener.operations import DELETE
from kube.errors import ApiError, Conflict, KubeError, NotFound
from kube.objects import Key, Object, key, mapping, mappings, spec, text, uid
from kube.paths import at
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, LEASES, NODES, PODS, SECRETS, Resource
from kube.runtime.client import Client, Form, Selection
from process.clusters import Cluster

_PROBE_SECONDS, _TUNNEL_SECONDS = 10.0, 5.0
_INSPECTION_SECONDS = 30.0
"""Short enough that the result is written before the next check."""
KUBECONFIG_SECONDS = 3600.0
"""Seconds for which a working kubeconfig is not read again."""
_CONFIGURATIONS = f"{keys.ROLE}=operating-system-config"
_KUBE_SYSTEM, _NODE_LEASES = "kube-system", "kube-node-lease"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


async def probe(clusters: ShootClusters, namespace: str, shoot: Key) -> Probe:
    """Probe the health of an API server. Args: namespace: of its control plane."""
    try:
        async with clusters.use(namespace, checked_within=KUBECONFIG_SECONDS) as cluster:
            await cluster.client.request("GET", "/healthz", timeout=_PROBE_SECONDS)
    except NoConnectionError as error:
        return Probe(ApiServer.UNREACHABLE, f'error creating new ClientSet for key "{shoot}": {error}')
    except ApiError as error:
        message = f"API server /healthz endpoint responded with status code {error.status}: {error}"
        return Probe(ApiServer.UNHEALTHY, message)
    except KubeError as error:
        return Probe(ApiServer.NO_ANSWER, f"API server /healthz endpoint request failed: {error}")
    return Probe(ApiServer.HEALTHY)


@dataclass(eq=False, slots=True, kw_only=True)
class Inspection:
    """Args:
    seed: client of the seed.
    has_tunnels: whether API servers reach Nodes through a tunnel.
    """

    clusters: ShootClusters
    seed: Client
    webhooks: Webhooks
    clock: Callable[[], datetime]
    has_tunnels: bool = True

    async def inspect(self, namespace: str, rolled_out: Object, shoot: Object) -> Inside:
        """List and check the objects in a Shoot; the result reports a failure in the Shoot as its problem.

        Raises:
            KubeError: the seed failed.
        """
        old, users = await old_authority.in_seed(self.seed, namespace) if is_checked(shoot) else (None, [])
        try:
            async with (
                asyncio.timeout(_INSPECTION_SECONDS),
                self.clusters.use(namespace, checked_within=KUBECONFIG_SECONDS) as cluster,
            ):
                client = cluster.client
                inside = Inside(
                    webhooks=[each async for each in self.webhooks.findings(client, namespace, shoot)],
                    converted=[each async for each in _converted(client)],
                    users_of_old=[*users, *await old_authority.in_shoot(client, old)] if old else None,
                )
                return await self._with_nodes(client, rolled_out, inside) if has_workers(rolled_out) else inside
        except (NoConnectionError, KubeError) as error:
            return Inside(problem=str(error))
        except TimeoutError:
            return Inside(problem=f"its objects were not listed within {_INSPECTION_SECONDS:g} s")

    async def _with_nodes(self, client: Client, rolled_out: Object, inside: Inside) -> Inside:
        """Add Nodes and problems of Nodes, Leases and tunnel; Leases count at the time when they were listed."""
        nodes = await _nodes(client)
        tunnel_problem = await _tunnel_problem(client) if self.has_tunnels else None
        if not nodes:
            return replace(inside, nodes=nodes, tunnel_problem=tunnel_problem)
        selection = Selection(namespace=_KUBE_SYSTEM, label_selector=_CONFIGURATIONS)
        secrets = await client.list(SECRETS, selection, form=Form.METADATA)
        of_agents = {
            key(each).name.removeprefix(OF_AGENTS): lease_end(each)
            async for each in _listed(client, LEASES, _KUBE_SYSTEM)
            if key(each).name.startswith(OF_AGENTS)
        }
        of_nodes = [lease_end(each) async for each in _listed(client, LEASES, _NODE_LEASES)]
        of_configurations = configuration_problem(rolled_out, nodes, configurations_in(secrets))
        return replace(
            inside,
            nodes=nodes,
            nodes_problem=of_configurations or agent_problem(nodes, of_agents, now=self.clock()),
            leases_problem=expiry_problem(of_nodes, now=self.clock()),
            tunnel_problem=tunnel_problem,
        )

    # --- garbage collection

    async def collect(self, namespace: str, shoot: Object, inside: Inside) -> None:
        """Remove obsolete pods and Leases; a failure is only logged. Args: inside: the preceding inspection."""
        if inside.problem:
            return
        try:
            async with (
                asyncio.timeout(_INSPECTION_SECONDS),
                self.clusters.use(namespace, checked_within=KUBECONFIG_SECONDS) as cluster,
            ):
                await _collect_pods(cluster, "" if operation_of(shoot) == DELETE else _KUBE_SYSTEM)
                if inside.nodes is not None:
                    await _collect_leases(cluster.client, {key(each).name for each in inside.nodes})
        except (NoConnectionError, KubeError, TimeoutError) as error:
            log.warning("Cannot look for obsolete objects", shoot=str(key(shoot)), error=error)


async def _collect_pods(cluster: Cluster, namespace: str) -> None:
    client, failed = cluster.client, Selection(namespace=namespace, field_selector="status.phase=Failed")
    async for page in client.pages(PODS, failed, limit=PAGE):
        for each in page:
            if garbage.is_stale(each):
                await remove(client, PODS, key(each), uid(each))
    async for page in client.pages(PODS, Selection(namespace=namespace), form=Form.METADATA):
        for each in page:
            if garbage.is_overdue(garbage.leaving_since(each), now=cluster.deletion_clock()):
                await remove(client, PODS, key(each), uid(each), grace_seconds=0)


async def _collect_leases(client: Client, nodes: Collection[str]) -> None:
    async for page in client.pages(LEASES, Selection(namespace=_NODE_LEASES), form=Form.METADATA):
        for each in page:
            if garbage.is_left(each, nodes):
                await remove(client, LEASES, key(each), uid(each))


async def remove(
    client: Client, resource: Resource, name: Key, expected_uid: str, *, grace_seconds: int | None = None
) -> None:
    """Delete an obsolete object if its uid is unchanged; a failure is only logged."""
    try:
        await client.delete(resource, name, uid=expected_uid, grace_seconds=grace_seconds)
    except (Conflict, NotFound):
        return
    except KubeError as error:
        log.warning("Cannot remove an obsolete object", kind=resource.kind, name=str(name), error=error)


async def _listed(client: Client, kind: Resource, namespace: str = "") -> AsyncIterator[Object]:
    async for page in client.pages(kind, Selection(namespace=namespace), limit=PAGE):
        for each in page:
            yield each


async def _converted(client: Client) -> AsyncIterator[str]:
    """Names of CustomResourceDefinitions with several stored versions and a conversion webhook."""
    async for each in _listed(client, CUSTOM_RESOURCE_DEFINITIONS):
        by_webhook = at(each, "spec", "conversion", "strategy") == "Webhook"
        if by_webhook and len(at(each, "status", "storedVersions") or ()) > 1:
            yield key(each).name


async def _nodes(client: Client) -> list[Object]:
    return [kept_of(each) async for each in _listed(client, NODES)]


async def _tunnel_problem(client: Client) -> NodeProblem | None:
    """Problem of the API server reaching kubelets through tunnel pods, which connect its network to that of Nodes.

    The API server requests the end of such a pod's log from its kubelet.
    """
    found = await client.list(PODS, Selection(namespace=_KUBE_SYSTEM, label_selector="type=tunnel"))
    if not found:
        return NodeProblem("NoTunnelDeployed", "no tunnels are currently deployed to perform health-check on")
    why = "none of its pods is running"
    for each in filter(_runs, found):
        path = PODS.path(namespace=_KUBE_SYSTEM, name=key(each).name, subresource="log")
        container = next((text(one.get("name")) for one in mappings(spec(each).get("containers"))), "")
        parameters = {"container": container, "tailLines": "1", "limitBytes": "1"}
        try:
            await client.request("GET", path, params=parameters, accept="*/*", timeout=_TUNNEL_SECONDS)
        except KubeError as error:
            why = str(error)
        else:
            return None
    return NodeProblem("TunnelConnectionBroken", f"Tunnel connection has not been established: {why}")


def _runs(pod: Object) -> bool:
    return mapping(pod.get("status")).get("phase") == "Running"
