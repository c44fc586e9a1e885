"""Where it all happens: a source and a target cluster with a proxy before each, two agents and one of another class, two webhook
servers.

Agents and webhooks go through the proxies, users don't. API servers reach the webhooks at a balancer, which chooses
between the replicas that are ready.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from campaign.admissions import Users
from campaign.credentials import Account, Certificates
from campaign.manifests import Place
from campaign.model import CLASSES, SETTLED
from campaign.oracles import Excuse
from campaign.replicas import Clock, Replica
from campaign.world import World
from devcluster.cluster import Cluster
from devcluster.testing.proxy import FaultProxy
from kit.background import beside
from kit.managed_resources import install_crd
from kit.objects import pod
from kit.processes.agent import AgentProcess
from kit.processes.webhooks import WebhookProcess
from kit.proxied import proxy_to
from kit.webhook_installation import (
    NAMESPACE,
    ROLE,
    Balancer,
    create_namespace,
    install,
    make_certificates,
    mount_certificate,
)
from kit.world import connected
from kube.errors import KubeError
from kube.objects import Object
from kube.runtime.client import Client

LEASE = "gardener-resource-manager"
LEASE_SECONDS = 6.0
"""On an idle machine."""
AGENT_CONFIG: Object = {
    "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
    "kind": "ResourceManagerConfiguration",
    "logFormat": "json",
    "controllers": {
        "garbageCollector": {"enabled": True, "syncPeriod": "15s", "minimumObjectLifetime": "2s"},
        "networkPolicy": {
            "enabled": True,
            "namespaceSelectors": [{"matchLabels": {"campaign.example/policies": "true"}}],
        },
        "nodeCriticalComponents": {"enabled": True},
        "tokenRequestor": {"enabled": True},
    },
}
"""Periods of ManagedResources are the usual ones: what is to come true sooner must come true by watches."""
SECOND = 2
"""The number of the agent of the other class."""
SECOND_CONFIG: Object = AGENT_CONFIG | {
    "controllers": {"resourceClass": CLASSES[1], "managedResource": {"managedByLabelValue": CLASSES[1]}}
}
WEBHOOKS: Object = {
    "seccompProfile": {"enabled": True},
    "projectedTokenMount": {"enabled": True},
    "podTopologySpreadConstraints": {"enabled": True},
}
WEBHOOK_SECTIONS: Object = {
    "leaderElection": {"leaderElect": True, "resourceNamespace": NAMESPACE},
    # A part of it is how long a server that is to stop goes on serving: time for the balancer to see it.
    "gracefulShutdownTimeout": "12s",
}


@dataclass(slots=True)
class Stage:
    clusters: dict[str, Cluster]
    proxies: dict[str, FaultProxy]
    world: World
    agents: list[Replica[AgentProcess]]
    second: Replica[AgentProcess]
    """Of another class, so it leads as well."""
    webhooks: list[Replica[WebhookProcess]]
    accounts: dict[tuple[str, int], Account]
    """Of the agents, by cluster and number."""
    certificates: Certificates
    balancer: Balancer
    users: Users
    foreign: dict[Place, Object]
    patience: float
    """By how much everything may take longer than on an idle machine."""
    excuses: list[Excuse] = field(default_factory=list)
    writers: tuple[str, ...] = ()
    """The users as which agents and webhooks are known to API servers."""

    @property
    def replicas(self) -> list[Replica[Any]]:
        return [*self.agents, self.second, *self.webhooks]

    async def leader(self) -> Replica[AgentProcess] | None:
        for replica in self.agents:
            if await replica.is_leading():
                return replica
        return None

    async def until_ready(self, *, seconds: float = 60.0) -> None:
        """All replicas are, and one agent leads. Raises TimeoutError."""
        async with asyncio.timeout(seconds * self.patience):
            while await self.unready():
                await asyncio.sleep(0.2)

    async def unready(self) -> list[str]:
        """The replicas that are not ready; or that there is no leader."""
        ready = await asyncio.gather(*(replica.is_ready() for replica in self.replicas))
        found = [replica.name for replica, is_ready in zip(self.replicas, ready, strict=True) if not is_ready]
        if not found and not (await self.leader() and await self.second.is_leading()):
            found.append("the leader")
        return found

    @contextlib.contextmanager
    def excused(self, reason: str, *, after: float) -> Iterator[None]:
        """In the block, and so many seconds after it, an admission may fail at first."""
        begin = time.time()
        try:
            yield
        finally:
            self.excuses.append(Excuse(begin, time.time() + after * self.patience, reason))


@contextlib.asynccontextmanager
async def standing(directory: Path, *, seed: int, patience: float) -> AsyncIterator[Stage]:
    """The stage, ready for the first act; everything ends with the block."""
    async with contextlib.AsyncExitStack() as stack:
        source, target = await asyncio.gather(
            stack.enter_async_context(Cluster()), stack.enter_async_context(Cluster(nodes=2))
        )
        clusters = {"source": source, "target": target}
        proxies = {
            name: await stack.enter_async_context(proxy_to(cluster, seed=seed)) for name, cluster in clusters.items()
        }
        clients = {
            name: await stack.enter_async_context(connected(cluster, "campaign")) for name, cluster in clusters.items()
        }
        world = World(clients)
        for cluster in clusters.values():
            await asyncio.to_thread(create_namespace, cluster, NAMESPACE, labels=ROLE)
        await asyncio.to_thread(install_crd, source)
        foreign = await world.begin(clusters)

        accounts = {
            (name, number): Account(
                f"agent-{number}-{name}", cluster, world, url=proxies[name].url, directory=directory
            )
            for name, cluster in clusters.items()
            for number in (0, 1, SECOND)
        }
        of_webhooks = [
            Account(f"webhooks-{number}", target, world, url=proxies["target"].url, directory=directory)
            for number in (0, 1)
        ]
        await asyncio.gather(*(account.create() for account in (*accounts.values(), *of_webhooks)))

        agents = [_agent(number, accounts, directory, patience=patience) for number in (0, 1, SECOND)]
        webhooks = [_webhook(number, of_webhooks[number], directory) for number in (0, 1)]
        replicas: list[Replica[Any]] = [*agents, *webhooks]
        for replica in replicas:
            stack.callback(replica.end)
        certificates = await asyncio.to_thread(_certify, webhooks, target, world)
        for replica in replicas:
            await stack.enter_async_context(beside(replica.keep()))
        balancer = await stack.enter_async_context(Balancer(*(replica.process for replica in webhooks)))
        await stack.enter_async_context(beside(world.write_on()))
        stage = Stage(
            clusters=clusters,
            proxies=proxies,
            world=world,
            agents=agents[:SECOND],
            second=agents[SECOND],
            webhooks=webhooks,
            accounts=accounts,
            certificates=certificates,
            balancer=balancer,
            users=Users(clients["target"], patience=30 * patience),
            foreign=foreign,
            patience=patience,
            writers=tuple(account.user for account in (*accounts.values(), *of_webhooks)),
        )
        await stage.until_ready()
        await asyncio.to_thread(install, webhooks[0].process, target, port=balancer.port)
        await _until_asked(clients["target"], seconds=60 * patience)
        yield stage


def lease_seconds(patience: float) -> float:
    """A machine that is busy must not cost anybody the lead."""
    return LEASE_SECONDS + 4 * (patience - 1)


def _election(name: str, patience: float) -> Object:
    lease = lease_seconds(patience)
    times = {"leaseDuration": lease, "renewDeadline": lease * 2 / 3, "retryPeriod": lease / 12}
    return {
        "leaderElect": True,
        "resourceNamespace": NAMESPACE,
        "resourceName": name,
        **{name: f"{seconds:.1f}s" for name, seconds in times.items()},
    }


def _agent(
    number: int, accounts: dict[tuple[str, int], Account], directory: Path, *, patience: float
) -> Replica[AgentProcess]:
    clock = Clock(directory / f"clock-{number}")
    config, lease = (SECOND_CONFIG, f"{LEASE}-second") if number == SECOND else (AGENT_CONFIG, LEASE)
    process = AgentProcess(
        config | {"leaderElection": _election(lease, patience)},
        kubeconfig=accounts["source", number].kubeconfig,
        target_kubeconfig=accounts["target", number].kubeconfig,
        environment=clock.environment,
    )
    return Replica(f"agent-{number}", process, directory / f"agent-{number}.log", clock=clock)


def _webhook(number: int, account: Account, directory: Path) -> Replica[WebhookProcess]:
    process = WebhookProcess(WEBHOOKS, kubeconfig=account.kubeconfig, certificate=False, **WEBHOOK_SECTIONS)
    return Replica(f"webhooks-{number}", process, directory / f"webhooks-{number}.log")


def _certify(webhooks: list[Replica[WebhookProcess]], target: Cluster, world: World) -> Certificates:
    servers = [replica.process for replica in webhooks]
    make_certificates(servers[0], target)
    for server in servers:
        mount_certificate(server, target)
    return Certificates(target, world, [server.secret for server in servers])


async def _until_asked(client: Client, *, seconds: float) -> None:
    """API servers hear of webhook configurations a moment later."""
    path = f"/api/v1/namespaces/{SETTLED[0]}/pods"
    async with asyncio.timeout(seconds):
        while True:
            with contextlib.suppress(KubeError):
                answer = await client.request("POST", path, params={"dryRun": "All"}, body=pod("asked"))
                if b'"RuntimeDefault"' in answer:
                    return
            await asyncio.sleep(0.2)
