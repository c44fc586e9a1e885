"""The resource manager by its image alone: what a gardenlet deploys for the original's, with the image replaced.

Deployment, configuration, Secrets, roles and webhook configurations are those that a gardenlet of v1.104.3 wrote, and
it would write them again: nothing in them can be changed. Certificates, tokens and addresses are of this cluster.
"""

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.deployed_resource_manager import (
    NAME,
    Deployed,
    ask_every_webhook,
    assert_all_of_it_works,
    seed_cluster,
)
from devcluster.cluster import Cluster
from kit.deployments import pod_of, until
from kit.objects import encoded, secret
from kit.processes.deployed_pods import Change
from kit.world import Place
from kube.objects import Object, annotations
from localprocesses.pki import Authority

RECORDED = Path(__file__).parent / "gardenlet"
NAMESPACES = {"seed": "garden", "shoot": "shoot--local--a"}
PRIORITIES = ("gardener-system-critical", "gardener-system-400")
TOKENS = "serviceaccount.resources.gardener.cloud"

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def own_cluster(devcluster_run: object) -> Iterator[Cluster]:
    with seed_cluster(NAMESPACES.values(), PRIORITIES) as own:
        yield own


def deploy(cluster: Cluster, recording: str) -> Deployed:
    place, authority = Place(cluster, NAMESPACES[recording]), Authority.create("ca")
    webhooks: list[Object] = []
    recorded_objects = yaml.safe_load_all((RECORDED / f"{recording}.yaml").read_text())
    # There is a token only of an account that is there.
    for recorded in sorted(recorded_objects, key=lambda each: each["kind"] != "ServiceAccount"):
        if "webhooks" in recorded:
            webhooks += recorded["webhooks"]
        else:
            place.create(filled_in(recorded, place, authority))
    return Deployed(place, authority, webhooks, pod_of(place, NAME))


@pytest.fixture(scope="module")
def of_seed(own_cluster: Cluster) -> Deployed:
    return deploy(own_cluster, "seed")


@pytest.fixture(scope="module")
def of_shoot(own_cluster: Cluster) -> Deployed:
    return deploy(own_cluster, "shoot")


def filled_in(recorded: Object, place: Place, authority: Authority) -> Object:
    """With certificates and tokens, which are not recorded."""
    if recorded["kind"] != "Secret":
        return recorded
    data = recorded["data"]
    match sorted(data):
        case ["tls.crt", "tls.key"]:
            pair = authority.issue_server([NAME, f"{NAME}.{place.namespace}", f"{NAME}.{place.namespace}.svc"])
            data = {"tls.crt": pair.certificate, "tls.key": pair.key}
        case ["bundle.crt"]:
            data = {"bundle.crt": authority.bundle}
        case ["kubeconfig"]:
            ca = until(lambda: place.get("ConfigMap", "kube-root-ca.crt")["data"]["ca.crt"], "the CA of the cluster")
            kubeconfig = data["kubeconfig"].replace("https://kube-apiserver", place.cluster.url)
            data = {"kubeconfig": kubeconfig.replace("<certificate>", base64.b64encode(ca.encode()).decode())}
        case ["token"]:
            data = {"token": token(place.cluster, **account_of(recorded))}
    return {**recorded, "data": encoded(data)}


def account_of(access: Object) -> dict[str, str]:
    return {part: annotations(access)[f"{TOKENS}/{part}"] for part in ("name", "namespace")}


def token(cluster: Cluster, *, name: str, namespace: str) -> str:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    return str(cluster.api.create(path, {"spec": {}})["status"]["token"])


# --- the tests


def test_the_container_of_a_seed_runs_controllers_and_webhooks(of_seed: Deployed, tmp_path: Path) -> None:
    container = of_seed.container(tmp_path)
    with container.start(NAME) as process:
        assert_all_of_it_works(of_seed, container, process, resource_class="seed")
    assert process.exit_code == 0


def with_workers(config: dict[str, Any]) -> None:
    config |= yaml.safe_load((RECORDED / "workers.yaml").read_text())


@pytest.mark.parametrize("change", [lambda _: None, with_workers], ids=["without workers", "with workers"])
def test_the_container_of_a_shoot_runs_controllers_and_webhooks(
    of_shoot: Deployed, tmp_path: Path, change: Change
) -> None:
    container = of_shoot.container(tmp_path, change)
    with container.start(NAME) as process:
        assert_all_of_it_works(of_shoot, container, process, resource_class="")
    assert process.exit_code == 0


def test_every_replica_serves_webhooks(of_seed: Deployed, tmp_path: Path) -> None:
    leading, other = (of_seed.container(tmp_path / name) for name in ("leading", "other"))
    with leading.start(NAME) as leader:
        leader.wait_until_ready().wait_until_leading()
        with other.start(NAME) as follower:
            follower.wait_until_ready()
            assert not follower.is_leading()
            asyncio.run(ask_every_webhook(of_seed, other))


def test_secrets_of_the_class_garden_are_the_gardenlets(of_shoot: Deployed, tmp_path: Path) -> None:
    place = of_shoot.place
    marks = {"resources.gardener.cloud/purpose": "token-requestor"}
    account = {f"{TOKENS}/name": "client", f"{TOKENS}/namespace": "kube-system"}
    classes = {"of-gardenlet": "garden", "of-shoot": "shoot"}
    for name, of in classes.items():
        place.create(secret(name, labels={**marks, "resources.gardener.cloud/class": of}, annotations=account))
    with of_shoot.container(tmp_path).start(NAME):
        until(lambda: place.get("Secret", "of-shoot").get("data"), "a token for the Secret of the class shoot")
        assert not place.get("Secret", "of-gardenlet").get("data")
