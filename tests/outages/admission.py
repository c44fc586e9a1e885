"""Webhook servers that are taken over while Pods are created: two of them, behind what chooses as a Service does."""

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from devcluster.cluster import Cluster
from kit.objects import pod
from kit.processes.webhooks import WebhookProcess
from kit.webhook_installation import (
    NAMESPACE,
    ROLE,
    Balancer,
    Creations,
    create_namespace,
    has_seccomp_profile,
    install,
    make_certificates,
    mount_certificate,
    replica,
)
from kube.errors import KubeError
from kube.objects import Object
from kube.runtime.client import Client
from kube.runtime.connection import load_kubeconfig
from kube.runtime.transport import Transport
from outages.stage import Outcome

_WEBHOOKS: Object = {"seccompProfile": {"enabled": True}}
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All"
_ENOUGH = 100
"""Pods that have to be created afterwards without a failure."""


@dataclass(slots=True)
class Servers:
    servers: list[WebhookProcess]
    balancer: Balancer
    load: Creations


@contextlib.asynccontextmanager
async def serving(cluster: Cluster) -> AsyncIterator[Servers]:
    """Both serve, and Pods are created."""
    await asyncio.to_thread(create_namespace, cluster, NAMESPACE, labels=ROLE)
    servers = [replica(_WEBHOOKS, cluster), replica(_WEBHOOKS, cluster)]
    await asyncio.to_thread(make_certificates, servers[0], cluster)
    async with contextlib.AsyncExitStack() as stack:
        for server in servers:
            mount_certificate(server, cluster)
            stack.enter_context(server)
        for server in servers:
            stack.callback(server.signal, signal.SIGKILL)
        for server in servers:
            await server.until_ready()
        balancer = await stack.enter_async_context(Balancer(*servers))
        await asyncio.to_thread(install, servers[0], cluster, port=balancer.port)
        async with asyncio.timeout(60):
            while not await asyncio.to_thread(_is_asked, cluster):
                await asyncio.sleep(0.1)
        transport = await stack.enter_async_context(Transport(load_kubeconfig(cluster.kubeconfig)))
        load = await stack.enter_async_context(Creations(Client(transport, user_agent="load"), NAMESPACE, pause=0.01))
        await load.more(_ENOUGH)
        yield Servers(servers, balancer, load)


def _is_asked(cluster: Cluster) -> bool:
    with contextlib.suppress(KubeError):
        return has_seccomp_profile(cluster.api.create(_PODS, pod("p")))
    return False


async def killed(stage: Servers) -> Outcome:
    """One of them, without a word."""
    victim = stage.servers[0]
    victim.signal(signal.SIGKILL)
    return await _outcome(stage, time.monotonic())


async def rolled(stage: Servers) -> Outcome:
    """One after the other, as a Deployment does it."""
    for server in stage.servers:
        await asyncio.to_thread(server.stop)
        server.start()
        async with asyncio.timeout(60):
            while not stage.balancer.chooses(server):
                await asyncio.sleep(0.1)
    return await _outcome(stage, time.monotonic())


async def _outcome(stage: Servers, ended: float) -> Outcome:
    """Until Pods are created, one after another, and none fails."""
    failed = 0
    while True:
        try:
            await _created(stage.load)
            break
        except _Failed as error:
            failed += error.count
            last = time.monotonic()
    recovered = last - ended if failed else 0.0
    return Outcome(max(recovered, 0.0), f"{failed} Pods not admitted" if failed else "nothing")


class _Failed(Exception):
    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


async def _created(load: Creations) -> None:
    goal = load.created + _ENOUGH
    async with asyncio.timeout(120):
        while load.created < goal:
            if load.failures:
                count = len(load.failures)
                load.failures.clear()
                raise _Failed(count)
            await asyncio.sleep(0.02)
