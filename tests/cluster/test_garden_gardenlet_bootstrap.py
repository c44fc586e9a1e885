"""A gardenlet enters a garden by a bootstrap token, and stays there: real programs, between two real clusters.

The garden's controller manager signs what its controller for certificates approves.
"""

from collections.abc import AsyncIterator, Iterator

import pytest

from agent.controller_manager.certificate_signing_request import declare
from devcluster.cluster import Cluster
from devcluster.pytest_plugin import RunClusters
from gardener.api.garden import SEEDS
from gardener.garden.seeds import LEASE_NAMESPACE
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.gardenlet_bootstrap import BOOTSTRAP, KUBECONFIG, Entry
from kit.processes.agent import AgentEnded, AgentProcess
from kit.world import connected
from kube.errors import NotFound
from kube.objects import Object, condition
from kube.resources import LEASES

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
    """Waits for the Seed to be so. A gardenlet that has ended shows what it said."""

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
