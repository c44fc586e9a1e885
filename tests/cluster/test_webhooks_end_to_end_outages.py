"""Admission while servers come and go and certificates change: no request fails that should not.

API servers reach the webhooks by an address behind which replicas are chosen as a Service does it. The cluster is one
of this file's own, since what is tried here stops every pod that webhooks are queried about.
"""

import asyncio
import base64
import contextlib
import datetime
import signal
import ssl
import subprocess
from collections.abc import Iterator

import pytest
from cryptography import x509

from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from kit.eventually import eventually
from kit.objects import encoded, pod
from kit.processes.webhooks import HOST, WebhookProcess
from kit.webhook_installation import (
    CA_SECRET,
    NAMESPACE,
    OURS,
    ROLE,
    SECRETS,
    SERVING,
    SERVING_SECRET,
    Balancer,
    Creations,
    create_namespace,
    has_seccomp_profile,
    install,
    make_certificates,
    mount_certificate,
    replica,
    start_command,
)
from kit.world import Place
from kube.clock import format_time
from kube.errors import ApiError, ServerFailure
from kube.objects import Object, annotations
from kube.resources import MUTATING_WEBHOOKS
from kube.runtime.client import Client
from kube.x509 import is_signed_by, load_certificates, make_ca, make_serving
from webhooks.certificates.keeper import BUNDLE, CA, CA_KEY, PUBLISHED_AT

pytestmark = pytest.mark.timeout(600)

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All"
MUTATING_CONFIGURATION = MUTATING_WEBHOOKS.path(name=OURS["app"])
WEBHOOKS: Object = {
    "podSchedulerName": {"enabled": True, "schedulerName": "bin-packing-scheduler"},
    "seccompProfile": {"enabled": True},
}
"""The first is queried about all pods and may fail, the second about those of namespaces with a role and must not."""
DAY = datetime.timedelta(days=1)


@pytest.fixture(scope="module")
def cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    with Cluster() as own:
        create_namespace(own, NAMESPACE, labels=ROLE)
        create_namespace(own, "without-role")
        yield own


@pytest.fixture
def replicas(cluster: Cluster) -> Iterator[list[WebhookProcess]]:
    """Two of them with one certificate, and no configuration yet."""
    one, other = replica(WEBHOOKS, cluster), replica(WEBHOOKS, cluster)
    make_certificates(one, cluster)
    for each in (one, other):
        mount_certificate(each, cluster)
    with one, other:
        for each in (one, other):
            each.wait_until_ready()
        yield [one, other]
        for each in (one, other):  # both at once: each takes its time
            each.signal(signal.SIGTERM)


@pytest.fixture(autouse=True)
def _no_configuration_stays(cluster: Cluster) -> Iterator[None]:
    yield
    garden = Place(cluster, NAMESPACE)
    garden.remove(MUTATING_WEBHOOKS, OURS["app"])
    for name in (CA_SECRET, SERVING_SECRET):
        garden.remove("Secret", name)


def is_changed(cluster: Cluster) -> bool:
    with contextlib.suppress(ApiError):
        return has_seccomp_profile(cluster.api.create(PODS, pod("p")))
    return False


def test_while_no_server_runs_failure_policies_decide(cluster: Cluster) -> None:
    server = replica(WEBHOOKS, cluster)
    make_certificates(server, cluster)
    mount_certificate(server, cluster)
    with server:
        server.wait_until_ready()
        install(server, cluster)
        eventually(lambda: is_changed(cluster))
        server.stop()

        with pytest.raises(ServerFailure, match=r'failed calling webhook "seccomp-profile.resources.gardener.cloud"'):
            cluster.api.create(PODS, pod("p"))
        elsewhere = cluster.api.create("/api/v1/namespaces/without-role/pods?dryRun=All", pod("p"))
        assert elsewhere["spec"]["schedulerName"] == "default-scheduler", "Ignore lets it through as it is"
        for labels in (OURS, {"static-pod": "true"}):
            cluster.api.create(PODS, pod("p", labels=labels))
        cluster.api.create(f"/api/v1/namespaces/{NAMESPACE}/configmaps?dryRun=All", {"metadata": {"name": "c"}})

        server.start().wait_until_ready()
        eventually(lambda: is_changed(cluster))


async def test_replicas_are_replaced_under_load_without_a_failed_request(
    cluster: Cluster, client: Client, replicas: list[WebhookProcess]
) -> None:
    async with Balancer(*replicas) as balancer:
        await asyncio.to_thread(install, replicas[0], cluster, port=balancer.port)
        await asyncio.to_thread(eventually, lambda: is_changed(cluster))
        async with Creations(client, NAMESPACE) as load:
            for each in replicas:
                await load.more(50)
                await stop(each)
                await load.more(50)
                each.start()
                await asyncio.to_thread(eventually, lambda each=each: balancer.chooses(each))
            await load.more(50)
    assert load.failures == []


async def stop(server: WebhookProcess) -> None:
    await asyncio.to_thread(server.stop)


async def test_certificates_are_renewed_under_load_without_a_failed_request(
    cluster: Cluster, client: Client, replicas: list[WebhookProcess]
) -> None:
    old = store_old_certificates(cluster)
    for each in replicas:
        mount_certificate(each, cluster)
    await asyncio.to_thread(eventually, lambda: all(is_shown(cluster, each) for each in replicas))
    async with Balancer(*replicas) as balancer, contextlib.AsyncExitStack() as stack:
        await asyncio.to_thread(install, replicas[0], cluster, port=balancer.port)
        await asyncio.to_thread(eventually, lambda: is_changed(cluster))
        load = await stack.enter_async_context(Creations(client, NAMESPACE))
        await load.more(50)

        connections = balancer.connections
        keeper = stack.enter_context(running_keeper(replicas[0], cluster))
        await asyncio.to_thread(eventually, lambda: old in trusted(cluster) and len(trusted(cluster)) == 2)
        # API servers make connections of their own for another bundle, which shows that they know it.
        await asyncio.to_thread(eventually, lambda: balancer.connections > connections)
        (new,) = set(trusted(cluster)) - {old}
        let_the_new_ca_settle(cluster)
        await asyncio.to_thread(eventually, lambda: is_signed_by(serving_certificate(cluster), new))
        for each in replicas:
            await asyncio.to_thread(mount_certificate, each, cluster)
        await asyncio.to_thread(eventually, lambda: all(is_shown(cluster, each) for each in replicas))
        await load.more(50)
        # Connections outlive the certificate that they began with; these have to be made again.
        await stop(replicas[0])
        await load.more(50)
        assert keeper.poll() is None
    assert load.failures == []


def store_old_certificates(cluster: Cluster) -> x509.Certificate:
    """A CA that is due to be renewed, as the keeper would have left it, and a server's certificate; returns the CA."""
    made_at = datetime.datetime.now(datetime.UTC) - 300 * DAY
    ca = make_ca("old", now=made_at, lifetime=365 * DAY)
    serving = make_serving(ca, [HOST], now=made_at + 280 * DAY, lifetime=90 * DAY)
    put(cluster, CA_SECRET, {CA: ca.certificate_pem, CA_KEY: ca.key_pem, BUNDLE: ca.certificate_pem}, made_at)
    put(cluster, SERVING_SECRET, dict(zip(SERVING, (serving.certificate_pem, serving.key_pem), strict=True)), made_at)
    return ca.certificate


def put(cluster: Cluster, name: str, data: dict[str, bytes], published_at: datetime.datetime) -> None:
    meta = {"labels": OURS, "annotations": {PUBLISHED_AT: format_time(published_at)}}
    cluster.api.patch(f"{SECRETS}/{name}", {"metadata": meta, "data": encoded(data)})


def let_the_new_ca_settle(cluster: Cluster) -> None:
    """Lets the minutes pass after which all API servers are taken to know it."""
    path = f"{SECRETS}/{CA_SECRET}"
    eventually(lambda: PUBLISHED_AT in annotations(cluster.api.get(path)))
    long_ago = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    cluster.api.patch(path, {"metadata": {"annotations": {PUBLISHED_AT: format_time(long_ago)}}})


@contextlib.contextmanager
def running_keeper(server: WebhookProcess, cluster: Cluster) -> Iterator[subprocess.Popen[str]]:
    with start_command("certificates", server, cluster, "--watch", f"--dns-name={HOST}") as process:
        try:
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=60)


def trusted(cluster: Cluster) -> tuple[x509.Certificate, ...]:
    """By which CAs the API server knows the webhooks."""
    webhooks = cluster.api.get(MUTATING_CONFIGURATION)["webhooks"]
    (bundle,) = {webhook["clientConfig"]["caBundle"] for webhook in webhooks}
    return load_certificates(base64.b64decode(bundle))


def serving_certificate(cluster: Cluster) -> x509.Certificate:
    (found,) = load_certificates(base64.b64decode(cluster.api.get(f"{SECRETS}/{SERVING_SECRET}")["data"]["tls.crt"]))
    return found


def is_shown(cluster: Cluster, server: WebhookProcess) -> bool:
    """Whether new connections get the certificate that is in the Secret."""
    shown = ssl.get_server_certificate((HOST, server.port), timeout=60)
    return load_certificates(shown.encode()) == (serving_certificate(cluster),)
