"""The resource manager as the gardenlet deploys it: its processes run from these objects, and all of it works."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from components import resource_manager
from components.control_plane import access_secret_name
from components.parts import GARDEN
from components.resource_manager import shoot
from components.secrets.configs import Given
from components.secrets.tables import generic_token_kubeconfig
from conformance.deployed_resource_manager import Deployed, assert_all_of_it_works, seed_cluster
from devcluster.cluster import Cluster
from gardener.api.kinds import SERVICE_MONITORS, VERTICAL_POD_AUTOSCALERS
from gardener.managed_resource.decode import decode_secrets
from gardener.managed_resource.plan import data_of
from kit import shoot_inputs
from kit.deployments import pod_of, until
from kit.kinds import serve
from kit.objects import encoded, secret
from kit.shoot_inputs import secret_name
from kit.world import Place
from kube.clock import utc_now
from localprocesses.pki import Authority

SERVER = secret_name("gardener-resource-manager-server")
SHOOT = "shoot--local--a"
BUNDLE, KUBECONFIG = secret_name("ca-bundle"), secret_name("generic-token-kubeconfig")

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def own_cluster(devcluster_run: object) -> Iterator[Cluster]:
    with seed_cluster([GARDEN, SHOOT], ["gardener-system-critical", "gardener-system-400"]) as own:
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


@pytest.fixture
def of_shoot(own_cluster: Cluster) -> Deployed:
    """Its Shoot is the cluster that it is in, too."""
    place, authority = Place(own_cluster, SHOOT), Authority.create("ca")
    pair = authority.issue_server([f"{resource_manager.NAME}.{SHOOT}"])
    place.create(secret(SERVER, {"tls.crt": pair.certificate, "tls.key": pair.key}, type="kubernetes.io/tls"))
    place.create(secret(BUNDLE, {"bundle.crt": authority.bundle}))
    ca = until(lambda: place.get("ConfigMap", "kube-root-ca.crt")["data"]["ca.crt"], "the CA of the cluster")
    config = generic_token_kubeconfig(SHOOT, ca.encode(), server=urlsplit(own_cluster.url).netloc)
    place.create(secret(KUBECONFIG, config.make(Given("name", None, utc_now())).data))
    contents = {"ca-bundle": {"bundle.crt": authority.bundle}}
    inputs = shoot_inputs.inputs(namespace=SHOOT, secrets=shoot_inputs.NamedSecrets(contents))
    everywhere = Place(own_cluster, "kube-system")
    everywhere.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": resource_manager.NAME}})
    managed, others = [], []
    for obj in shoot.COMPONENT.made(inputs):
        if obj["kind"] == "Secret" and obj["metadata"]["name"].startswith("managedresource-"):
            managed += [item.object for item in decode_secrets([data_of(obj)]).objects]
        elif obj["kind"] != "ManagedResource":
            others.append(obj)
    webhooks = [each for obj in managed for each in obj.get("webhooks", [])]
    for obj in [*others, *(obj for obj in managed if "webhooks" not in obj)]:
        if obj["metadata"]["name"] == access_secret_name(resource_manager.NAME):
            path = f"/api/v1/namespaces/kube-system/serviceaccounts/{resource_manager.NAME}/token"
            token = own_cluster.api.create(path, {"spec": {}})["status"]["token"]
            obj = {**obj, "data": encoded({"token": token})}  # noqa: PLW2901 - as the one before has left it
        place.create(obj)
    return Deployed(place, authority, webhooks, pod_of(place, resource_manager.NAME))


def test_that_of_a_shoot_applies_managed_resources_and_serves_its_webhook(of_shoot: Deployed, tmp_path: Path) -> None:
    container = of_shoot.container(tmp_path)
    with container.start(resource_manager.NAME) as process:
        assert_all_of_it_works(of_shoot, container, process, resource_class="")
    assert process.exit_code == 0
