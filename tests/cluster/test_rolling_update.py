"""A new version of the webhooks is rolled out under load, as the manifests state, and every request is answered.

What a Deployment, kubelets and EndpointSlices do is done here with real processes: a new replica must be ready before an
old one is requested to go; an old one is still chosen for a while, until everybody knows; its `preStop` runs, then it gets
SIGTERM. Configuration, strategy and life cycle are those of the manifests. API servers may not do without an answer, and
the webhook has to know ServiceAccounts, so a replica that reports too early that it is ready would show, too.
"""

import asyncio
import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from kit.eventually import eventually
from kit.objects import obj, pod
from kit.processes.webhooks import WebhookProcess
from kit.webhook_installation import (
    NAMESPACE,
    ROLE,
    Balancer,
    Creations,
    create_namespace,
    install,
    make_certificates,
    mount_certificate,
)
from kit.world import Place
from kube.errors import ApiError
from kube.objects import Object
from kube.runtime.client import Client

pytestmark = pytest.mark.timeout(600)

MANIFESTS = Path(__file__).parents[2] / "manifests"
CONFIG: Object = yaml.safe_load((MANIFESTS / "instances/runtime/config.yaml").read_text())
DEPLOYMENT: Object = next(
    document
    for document in yaml.safe_load_all((MANIFESTS / "base/webhooks/webhooks.yaml").read_text())
    if document["kind"] == "Deployment"
)
POD: Object = DEPLOYMENT["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
SPREADING_SECONDS = 3.0
"""For so long an old replica still gets new connections: kube-proxies hear of its end one after another."""
MOUNTED = b'"kube-api-access-gardener"'
LOAD = pod("loaded", serviceAccountName="not-mounted")
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All"


@pytest.fixture(scope="module")
def cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    with Cluster() as own:
        create_namespace(own, NAMESPACE, labels=ROLE)
        Place(own, NAMESPACE).create(obj("ServiceAccount", "not-mounted", automountServiceAccountToken=False))
        yield own


def replica(cluster: Cluster) -> WebhookProcess:
    sections: dict[str, Any] = {name: CONFIG[name] for name in ("leaderElection", "controllers")}
    return WebhookProcess(CONFIG["webhooks"], kubeconfig=cluster.kubeconfig, certificate=False, **sections)


def test_the_manifests_replace_one_by_one_and_give_everybody_time_to_know() -> None:
    """What the test below does by hand."""
    assert DEPLOYMENT["spec"]["replicas"] == 2
    assert DEPLOYMENT["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert {CONTAINER[probe]["httpGet"]["path"] for probe in ("startupProbe", "readinessProbe")} == {"/readyz"}
    assert "gracefulShutdownTimeout" not in CONFIG


async def test_a_rolling_update_under_load_fails_no_request(cluster: Cluster, client: Client) -> None:
    with contextlib.ExitStack() as stack:
        old = [replica(cluster) for _ in range(2)]
        new = []
        await asyncio.to_thread(make_certificates, old[0], cluster)
        for each in old:
            await start(each, cluster, stack)
        async with Balancer(*old) as balancer:
            await asyncio.to_thread(install, old[0], cluster, port=balancer.port)
            await asyncio.to_thread(eventually, lambda: is_changed(cluster))
            async with Creations(client, NAMESPACE, pod=LOAD, proof=MOUNTED, pause=0.05) as load:
                await load.more(30)
                async with asyncio.TaskGroup() as ends:
                    for going in old:
                        surging = replica(cluster)
                        new.append(surging)
                        await start(surging, cluster, stack)
                        balancer.replicas.append(surging)
                        await asyncio.to_thread(eventually, lambda surging=surging: balancer.chooses(surging))
                        ends.create_task(end(going, balancer))
                await load.more(30)
        requested = [each.metric("controller_runtime_webhook_requests_total") or 0 for each in new]
    assert load.failures == []
    assert [each.exit_code for each in old] == [0, 0]
    assert all(requested)


async def start(server: WebhookProcess, cluster: Cluster, stack: contextlib.ExitStack) -> None:
    """Until it is ready; the stack ends it."""
    await asyncio.to_thread(mount_certificate, server, cluster)
    stack.enter_context(server)
    await server.until_ready()


async def end(server: WebhookProcess, balancer: Balancer) -> None:
    """What is done with a Pod that was deleted; both begin at once."""
    async with asyncio.timeout(POD["terminationGracePeriodSeconds"] + 30), asyncio.TaskGroup() as both:
        both.create_task(forget(server, balancer))
        both.create_task(terminate(server))


async def forget(server: WebhookProcess, balancer: Balancer) -> None:
    await asyncio.sleep(SPREADING_SECONDS)
    balancer.replicas.remove(server)


async def terminate(server: WebhookProcess) -> None:
    before_stop = await asyncio.create_subprocess_exec(*CONTAINER["lifecycle"]["preStop"]["exec"]["command"])
    assert await before_stop.wait() == 0
    server.signal(signal.SIGTERM)
    await asyncio.to_thread(server.wait)


def is_changed(cluster: Cluster) -> bool:
    with contextlib.suppress(ApiError):
        made = cluster.api.create(PODS, LOAD)
        return MOUNTED.decode().strip('"') in [volume["name"] for volume in made["spec"].get("volumes", ())]
    return False
