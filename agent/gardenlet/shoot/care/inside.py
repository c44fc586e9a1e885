"""What is asked of a Shoot's own cluster: whether its API server is healthy, in each check; the rest only now and then.

Nothing is watched there and nothing kept but what the check came to: lists are read page by page, and what is of no use
is removed on the way.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime

import structlog

from agent.gardenlet.shoot.care import old_authority
from agent.gardenlet.shoot.care.rules import garbage
from agent.gardenlet.shoot.care.rules.conditions import has_workers
from agent.gardenlet.shoot.care.rules.nodes import (
    OF_AGENTS,
    NodeProblem,
    agent_problem,
    configuration_of,
    configuration_problem,
    expiry_problem,
    kept_of,
    lease_end,
)
from agent.gardenlet.shoot.care.rules.observed import ApiServer, Inside, Probe, WebhookFinding
from agent.gardenlet.shoot.care.rules.old_authority import is_checked as is_checked_for_old
from agent.gardenlet.shoot.care.rules.remediation import Reversals, corrected, is_remediated, lines_of
from agent.gardenlet.shoot.care.rules.webhooks import is_checked, problem_of
from agent.gardenlet.shoot_clusters import NoConnectionError, ShootClusters
from gardener import keys
from gardener.garden.shoots import operation_of
from gardener.operations import DELETE
from kube.errors import ApiError, Conflict, KubeError, NotFound
from kube.objects import Key, Object, key, uid
from kube.paths import at
from kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    LEASES,
    MUTATING_WEBHOOKS,
    NODES,
    PODS,
    SECRETS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from kube.runtime.client import Client, Form, Selection
from kube.runtime.events import EventRecorder

_PROBE_SECONDS, _INSPECTION_SECONDS = 10.0, 60.0
KUBECONFIG_SECONDS = 3600.0
"""For which a kubeconfig that works is not read again."""
_PAGE = 100
_CONFIGURATIONS = f"{keys.ROLE}=operating-system-config"
_KUBE_SYSTEM, _NODE_LEASES = "kube-system", "kube-node-lease"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


async def probe(clusters: ShootClusters, namespace: str, shoot: Key) -> Probe:
    """Whether an API server is healthy. Args: namespace: of its control plane."""
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
    seed: its client.
    remediates: whether webhooks are corrected.
    has_tunnels: whether API servers reach Nodes through pods, as they do but on this computer.
    """

    clusters: ShootClusters
    seed: Client
    remediates: bool
    recorder: EventRecorder
    clock: Callable[[], datetime]
    has_tunnels: bool = True
    _reversals: dict[str, dict[tuple[str, str], Reversals]] = field(default_factory=dict)
    """By namespace, and by kind and name of the configuration."""

    async def inspect(self, namespace: str, rolled_out: Object, shoot: Object) -> Inside:
        """What can't be listed in the Shoot is said in the result. Raises KubeError: of the seed."""
        old, users = await old_authority.in_seed(self.seed, namespace) if is_checked_for_old(shoot) else (None, [])
        try:
            async with (
                asyncio.timeout(_INSPECTION_SECONDS),
                self.clusters.use(namespace, checked_within=KUBECONFIG_SECONDS) as cluster,
            ):
                client = cluster.client
                webhooks = [each async for each in self._webhooks(client, namespace, shoot)]
                converted = [each async for each in _converted(client)]
                nodes = await _nodes(client) if has_workers(rolled_out) else []
                nodes_problem = await self._nodes_problem(client, rolled_out, nodes) if nodes else None
                users += await old_authority.in_shoot(client, old) if old else []
                tunnels = await _tunnels(client) if has_workers(rolled_out) and self.has_tunnels else None
                await self._collect(client, shoot, nodes)
        except (NoConnectionError, KubeError) as error:
            return Inside(problem=str(error))
        except TimeoutError:
            return Inside(problem=f"its objects were not listed within {_INSPECTION_SECONDS:g} s")
        return Inside(
            users_of_old=users if old else None,
            webhooks=webhooks,
            converted=converted,
            nodes=nodes,
            nodes_problem=nodes_problem,
            tunnels=tunnels,
        )

    def forget(self, namespace: str) -> None:
        self._reversals.pop(namespace, None)

    async def _nodes_problem(self, client: Client, rolled_out: Object, nodes: list[Object]) -> NodeProblem | None:
        """Of their configurations, agents and Leases; what is said of time counts when it is listed."""
        selection = Selection(namespace=_KUBE_SYSTEM, label_selector=_CONFIGURATIONS)
        secrets = await client.list(SECRETS, selection, form=Form.METADATA)
        of_agents = {
            key(each).name.removeprefix(OF_AGENTS): lease_end(each)
            async for each in _listed(client, LEASES, _KUBE_SYSTEM)
            if key(each).name.startswith(OF_AGENTS)
        }
        of_nodes = [lease_end(each) async for each in _listed(client, LEASES, _NODE_LEASES)]
        return (
            configuration_problem(rolled_out, nodes, dict(map(configuration_of, secrets)))
            or agent_problem(nodes, of_agents, now=self.clock())
            or expiry_problem(of_nodes, now=self.clock())
        )

    # --- webhooks

    async def _webhooks(self, client: Client, namespace: str, shoot: Object) -> AsyncIterator[WebhookFinding]:
        known = self._reversals.setdefault(namespace, {})
        seen = set()
        for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS):
            async for each in _listed(client, kind, managed_fields=self.remediates):
                name = (kind.kind, key(each).name)
                seen.add(name)
                if is_checked(each):
                    reversals = known.setdefault(name, Reversals()) if self.remediates else None
                    yield await self._finding(client, kind, each, shoot, reversals)
        for gone in known.keys() - seen:
            del known[gone]

    async def _finding(
        self, client: Client, kind: Resource, found: Object, shoot: Object, reversals: Reversals | None
    ) -> WebhookFinding:
        note = ""
        if reversals is not None:
            found, note = await self._remediated(client, kind, found, shoot, reversals)
        return WebhookFinding(
            kind=kind.kind,
            name=key(found).name,
            problem=problem_of(found),
            is_remediated=is_remediated(found),
            note=note,
        )

    async def _remediated(
        self, client: Client, kind: Resource, found: Object, shoot: Object, reversals: Reversals
    ) -> tuple[Object, str]:
        """The configuration as it is now, and why it is not corrected."""
        if (wanted := corrected(found)) is None:
            return found, reversals.text() if reversals.is_paused(self.clock()) else ""
        was_paused = reversals.is_paused(self.clock())
        if not reversals.may_correct(found, lines_of(wanted), own=_manager(client), now=self.clock()):
            if not was_paused:
                message = f'{kind.kind} "{key(found).name}" of the Shoot is not corrected any more: {reversals.text()}'
                self.recorder.event(shoot, "Warning", "WebhookRemediationReverted", message)
            return found, reversals.text()
        try:
            return await client.replace(kind, wanted), ""
        except (Conflict, NotFound):
            return found, ""
        except KubeError as error:
            log.warning("Cannot correct a webhook", shoot=str(key(shoot)), name=key(found).name, error=error)
            return found, ""

    # --- what is of no use

    async def _collect(self, client: Client, shoot: Object, nodes: list[Object]) -> None:
        is_leaving = operation_of(shoot) == DELETE
        namespace = "" if is_leaving else _KUBE_SYSTEM
        failed = Selection(namespace=namespace, field_selector="status.phase=Failed")
        async for page in client.pages(PODS, failed, limit=_PAGE):
            for each in page:
                if garbage.is_stale(each):
                    await remove(client, PODS, key(each), uid(each))
        async for page in client.pages(PODS, Selection(namespace=namespace), form=Form.METADATA):
            for each in page:
                if garbage.is_overdue(garbage.leaving_since(each), now=self.clock()):
                    await remove(client, PODS, key(each), uid(each), grace_seconds=0)
        if has_workers(shoot):
            names = {key(each).name for each in nodes}
            async for page in client.pages(LEASES, Selection(namespace=_NODE_LEASES), form=Form.METADATA):
                for each in page:
                    if garbage.is_left(each, names):
                        await remove(client, LEASES, key(each), uid(each))


def _manager(client: Client) -> str:
    """As which the API server records what this process writes."""
    return client.identity["User-Agent"].partition("/")[0]


async def remove(
    client: Client, resource: Resource, name: Key, its_uid: str, *, grace_seconds: int | None = None
) -> None:
    """Delete an object of no use, if it still is this one; a failure is only logged."""
    try:
        await client.delete(resource, name.name, namespace=name.namespace, uid=its_uid, grace_seconds=grace_seconds)
    except (Conflict, NotFound):
        return
    except KubeError as error:
        log.warning("Cannot remove what is of no use", kind=resource.kind, name=str(name), error=error)


async def _listed(
    client: Client, kind: Resource, namespace: str = "", *, managed_fields: bool = False
) -> AsyncIterator[Object]:
    async for page in client.pages(kind, Selection(namespace=namespace), limit=_PAGE, managed_fields=managed_fields):
        for each in page:
            yield each


async def _converted(client: Client) -> AsyncIterator[str]:
    """Names of definitions whose objects are stored in several versions, and converted by a webhook."""
    async for each in _listed(client, CUSTOM_RESOURCE_DEFINITIONS):
        by_webhook = at(each, "spec", "conversion", "strategy") == "Webhook"
        if by_webhook and len(at(each, "status", "storedVersions") or ()) > 1:
            yield key(each).name


async def _nodes(client: Client) -> list[Object]:
    return [kept_of(each) async for each in _listed(client, NODES)]


async def _tunnels(client: Client) -> int:
    """How many pods connect the API server with the network of the Nodes."""
    selection = Selection(namespace=_KUBE_SYSTEM, label_selector="type=tunnel")
    return len(await client.list(PODS, selection, form=Form.METADATA))
