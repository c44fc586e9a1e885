"""A gardenlet enters a garden by a bootstrap token, and stays there: real programs, between two real clusters.

The garden's controller manager signs what its controller for certificates approves.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest

from agent.controller_manager.certificate_signing_request import declare
from agent.gardenlet.bootstrap.entrance import enter
from agent.gardenlet.bootstrap.rotation import GARDEN
from agent.gardenlet.bootstrap.rules.unfinished import Unfinished
from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api.garden import SEEDS
from gardener.garden.seeds import LEASE_NAMESPACE
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.gardenlet_bootstrap import BOOTSTRAP, KUBECONFIG, QUICK, Entry
from kit.processes.agent import AgentEnded, AgentProcess
from kit.world import connected
from kube.clock import utc_now
from kube.errors import NotFound, Unreachable
from kube.objects import Object, annotations, condition, uid
from kube.resources import LEASES, NODES
from kube.runtime.transport import Transport
from process import clusters as process_clusters
from process.runner import StartError

pytestmark = pytest.mark.timeout(600)

RENEW: Object = {"metadata": {"annotations": {"gardener.cloud/operation": "renew"}}}


@pytest.fixture(scope="module")
def seed(devcluster_run: RunClusters) -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def entry(garden: Garden, seed: Cluster) -> Entry:
    return Entry(garden, seed)


@pytest.fixture
async def approving(garden: Garden) -> AsyncIterator[None]:
    async with connected(garden.cluster) as operator, run_garden_controller(declare, operator):
        yield


async def ready(entry: Entry, gardenlet: AgentProcess) -> None:
    """Waits for the Seed to be so. A gardenlet that has ended shows what it reported."""

    def is_ready() -> bool:
        if gardenlet.process.poll() is not None:
            raise AgentEnded(gardenlet.output)
        found = condition(entry.garden.get(SEEDS, entry.name), "GardenletReady")
        return found is not None and found["status"] == "True"

    await soon(is_ready, "the Seed to be ready", passing=(NotFound,))


async def test_a_token_leads_to_a_certificate_a_seed_and_the_next_certificate(entry: Entry, approving: None) -> None:
    identity = entry.token_id
    entry.put(BOOTSTRAP, entry.with_token(identity))
    with entry.process() as gardenlet:
        await ready(entry, gardenlet)
        secret = entry.secret(KUBECONFIG)
        assert list(secret["data"]) == ["kubeconfig"]
        assert "annotations" not in secret["metadata"]
        assert not entry.exists(BOOTSTRAP)
        assert not entry.has_token(identity)
        assert [gardenlet.probe(path)[0] for path in ("/readyz", "/healthz")] == [200, 200]

        first = entry.stored()
        entry.patch(KUBECONFIG, RENEW)
        await soon(lambda: entry.stored().content != first.content, "another certificate")
        assert "annotations" not in entry.secret(KUBECONFIG)["metadata"]
        lease = entry.garden.get(LEASES, entry.name, namespace=LEASE_NAMESPACE)
        await soon(
            lambda: entry.garden.get(LEASES, entry.name, namespace=LEASE_NAMESPACE) != lease, "the Lease to be renewed"
        )
        assert gardenlet.process.poll() is None, "it goes on without a restart"


async def test_a_gardenlet_that_waits_for_an_approval_lives_and_is_not_ready(entry: Entry) -> None:
    entry.put(BOOTSTRAP, entry.with_token(entry.token_id))
    with entry.process() as gardenlet:
        gardenlet.wait_for_log("Waiting for the approval of a certificate for the garden")
        assert [gardenlet.probe(path)[0] for path in ("/readyz", "/healthz")] == [500, 200]
        assert gardenlet.stop() == 0, "it ends when it is requested to"


async def test_what_a_killed_gardenlet_has_begun_is_finished_by_the_next_one(entry: Entry, approving: None) -> None:
    identity = entry.token_id
    entry.put(BOOTSTRAP, entry.with_token(identity))
    with entry.process() as gardenlet:
        await soon(lambda: entry.exists(KUBECONFIG), "the certificate to be stored")
        gardenlet.kill()
    first = entry.stored().content
    with entry.process() as gardenlet:
        await ready(entry, gardenlet)
    assert entry.stored().content == first
    assert not annotations(entry.secret(KUBECONFIG))
    assert not entry.exists(BOOTSTRAP)
    assert not entry.has_token(identity)


async def test_any_token_leads_to_a_new_seed_and_is_removed(entry: Entry, approving: None) -> None:
    identity = secrets.token_hex(3)
    entry.put(BOOTSTRAP, entry.with_token(identity))
    async with entry.access(pace=QUICK) as access:
        await enter(access, entry.seed_config)
    assert not entry.has_token(identity)
    assert not annotations(entry.secret(KUBECONFIG))


async def test_a_service_account_leads_to_a_new_seed_and_is_removed(entry: Entry, approving: None) -> None:
    entry.put(BOOTSTRAP, entry.with_account())
    assert entry.has_account()
    async with entry.access(pace=QUICK) as access:
        await enter(access, entry.seed_config)
    assert not entry.has_account()
    assert not annotations(entry.secret(KUBECONFIG))
    assert not entry.exists(BOOTSTRAP)


async def test_bootstrap_credentials_are_removed_also_when_the_request_is_gone(entry: Entry) -> None:
    identity = entry.token_id
    bootstrap = entry.put(BOOTSTRAP, entry.with_token(identity))
    left = Unfinished(request="seed-csr-gone", user=f"system:bootstrap:{identity}", bootstrap_uid=uid(bootstrap))
    valid = entry.with_certificate(since=utc_now(), lifetime=timedelta(hours=1))
    entry.put(KUBECONFIG, valid, annotations=left.as_annotations())
    async with entry.access(pace=QUICK) as access:
        await enter(access, entry.seed_config)
    assert not entry.has_token(identity)
    assert not entry.exists(BOOTSTRAP)
    assert not annotations(entry.secret(KUBECONFIG))


def is_over(entry: Entry) -> bool:
    life = entry.stored().life
    assert life is not None
    return life.is_over(utc_now())


async def test_a_certificate_that_expires_while_the_garden_is_away_is_replaced_when_it_is_back(
    entry: Entry, approving: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    away: set[str] = set()

    class Road(Transport):
        def send(self, method: str, path: str, **options: Any) -> Any:
            if self.host in away:
                raise Unreachable("the garden is away")
            return super().send(method, path, **options)

    monkeypatch.setattr(process_clusters, "Transport", Road)
    content = entry.with_certificate(since=utc_now(), lifetime=timedelta(seconds=4))
    entry.put(KUBECONFIG, content)
    async with entry.access(pace=QUICK) as access:
        rotation = await enter(access, entry.seed_config)
        await rotation.start()
        try:
            away.add(access.clusters[GARDEN].transport.host)
            entry.put(BOOTSTRAP, entry.with_token(entry.token_id))
            await soon(lambda: is_over(entry), "the certificate to expire")
            await asyncio.sleep(0.5)
            assert entry.stored().content == content
            away.clear()
            await soon(lambda: not access.credentials.problem, "another certificate")
            await soon(lambda: entry.stored().content != content, "another certificate")
            assert await access.clusters[GARDEN].client.get(SEEDS, entry.name)
        finally:
            await rotation.stop()


async def test_all_that_does_not_fit_the_cluster_is_reported_together(entry: Entry) -> None:
    configured = entry.seed_config
    configured["spec"]["networks"] = {"nodes": "10.65.0.0/16", "pods": "10.64.0.0/16", "services": "10.1.0.0/16"}
    node = {"metadata": {"name": entry.name}, "status": {"addresses": [{"type": "InternalIP", "address": "10.9.9.9"}]}}
    entry.seed.api.create(NODES.path(), node)
    entry.put(BOOTSTRAP, entry.with_token())
    try:
        async with entry.access(pace=QUICK) as access:
            with pytest.raises(StartError) as refused:
                await enter(access, configured)
    finally:
        entry.seed.api.request("DELETE", NODES.path(name=entry.name))
    text = str(refused.value)
    assert 'incorrect node network specified in seed configuration (cluster node="10.9.9.9" vs.' in text
    assert "incorrect service network specified in seed configuration (cluster service=" in text
    assert entry.exists(BOOTSTRAP), "nothing is begun"
