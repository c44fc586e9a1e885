"""The resource manager as the gardenlet deploys it: its processes run from these objects, and all of it works."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.gardenlet.components import resource_manager
from agent.gardenlet.components.parts import GARDEN
from conformance.deployed_resource_manager import Deployed, assert_all_of_it_works, seed_cluster
from devcluster.cluster import Cluster
from gardener.api.kinds import SERVICE_MONITORS, VERTICAL_POD_AUTOSCALERS
from kit.deployments import pod_of
from kit.kinds import serve
from kit.objects import secret
from kit.world import Place
from localprocesses.pki import Authority

SERVER = "gardener-resource-manager-server-1"

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def own_cluster(devcluster_run: object) -> Iterator[Cluster]:
    with seed_cluster([GARDEN], ["gardener-system-critical"]) as own:
        serve(own, VERTICAL_POD_AUTOSCALERS, SERVICE_MONITORS)
        yield own


@pytest.fixture
def deployed(own_cluster: Cluster) -> Deployed:
    place, authority = Place(own_cluster, GARDEN), Authority.create("ca-seed")
    pair = authority.issue_server(list(resource_manager.DNS_NAMES))
    place.create(
        secret(SERVER, {"tls.crt": pair.certificate, "tls.key": pair.key}, type="kubernetes.io/tls", immutable=True)
    )
    values = resource_manager.Values(
        image="image", server_secret=SERVER, ca_bundle=authority.bundle.decode(), zones=["0"]
    )
    webhooks = []
    for obj in resource_manager.objects(values):
        if "webhooks" in obj:
            webhooks += obj["webhooks"]
        else:
            place.create(obj)
    return Deployed(place, authority, webhooks, pod_of(place, resource_manager.NAME))


def test_it_applies_managed_resources_and_serves_each_of_its_webhooks(deployed: Deployed, tmp_path: Path) -> None:
    container = deployed.container(tmp_path)
    with container.start(resource_manager.NAME) as process:
        assert_all_of_it_works(deployed, container, process, resource_class="seed")
    assert process.exit_code == 0
