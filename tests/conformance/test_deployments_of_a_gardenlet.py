"""The resource manager by its image alone: what a gardenlet deploys for the original's, with the image replaced.

Deployment, configuration, Secrets, roles and webhook configurations are those that a gardenlet of v1.104.3 wrote, and
it would write them again: nothing in them can be changed. Certificates, tokens and addresses are of this cluster.
"""

import asyncio
import base64
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import yaml

from config.resource_manager import decode
from devcluster.cluster import Cluster
from kit.deployments import pod_of, until
from kit.managed_resources import install_crd
from kit.objects import bundle, config_map, encoded, managed_resource, obj, secret
from kit.processes.agent import AgentProcess
from kit.processes.deployed_pods import Change, DeployedPod
from kit.world import Place
from kube.objects import Object, annotations, metadata
from localprocesses.pki import Authority
from webhooks.registry import enabled

NAME = "gardener-resource-manager"
RECORDED = Path(__file__).parent / "gardenlet"
NAMESPACES = {"seed": "garden", "shoot": "shoot--local--a"}
PRIORITIES = ("gardener-system-critical", "gardener-system-400")
KINDS = {"customresourcedefinitions": "CustomResourceDefinition", "networks": "Network"}
MOST_MEMORY = 75 << 20
TOKENS = "serviceaccount.resources.gardener.cloud"

pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Deployed:
    """A resource manager of a gardenlet, without its processes."""

    place: Place
    authority: Authority
    webhooks: list[Object]
    """Of its webhook configurations."""
    pod: Object

    def container(self, directory: Path, change: Change = lambda _: None) -> DeployedPod:
        return DeployedPod(self.place.cluster, self.pod, directory, change=change)


@pytest.fixture(scope="module")
def own_cluster(devcluster_run: object) -> Iterator[Cluster]:
    with Cluster(nodes=1) as own:
        everywhere = Place(own, "")
        (node,) = everywhere.list("Node")
        everywhere.patch("Node", metadata(node)["name"], {"metadata": {"labels": {"topology.kubernetes.io/zone": "0"}}})
        for namespace in NAMESPACES.values():
            everywhere.create(obj("Namespace", namespace))
        for name in PRIORITIES:
            own.api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": 1})
        install_crd(own)
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


def is_ready_as_a_whole(process: AgentProcess) -> bool:
    checks = process.probe("/readyz?verbose")[1]
    return "[+]webhook-server ok" in checks and "informer-sync ok" in checks and "[-]" not in checks


def assert_all_of_it_works(
    deployed: Deployed, container: DeployedPod, process: AgentProcess, *, resource_class: str
) -> None:
    place, target = deployed.place, Place(deployed.place.cluster, "kube-system")
    process.wait_until_ready().wait_until_leading()
    # Who begins to lead watches more, and is not ready until that is known.
    process.wait_for(lambda: is_ready_as_a_whole(process), what="all of it to be ready")
    name = f"applied-{container.webhook_port}"
    place.create(bundle(name, config_map(name, namespace=target.namespace)))
    place.create(managed_resource(name, spec={"class": resource_class} if resource_class else {}))
    until(lambda: target.find("ConfigMap", name), "the ManagedResource to be applied")
    until(lambda: place.condition(name, "ResourcesHealthy").get("status") == "True", "it to be healthy")
    asyncio.run(ask_every_webhook(deployed, container))
    assert process.resident_bytes <= MOST_MEMORY
    place.delete("ManagedResource", name)
    until(lambda: not place.find("ManagedResource", name), "the ManagedResource to be gone")


async def ask_every_webhook(deployed: Deployed, container: DeployedPod) -> None:
    """As the API server does: it expects a certificate of the CA for the name in the webhook configuration.

    For a Shoot without workers the gardenlet registers more than it enables.
    """
    trusting = ssl.create_default_context(cadata=deployed.authority.bundle.decode())
    answers: dict[str, int] = {}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting)) as session:
        for webhook in deployed.webhooks:
            host, path = address(webhook["clientConfig"])
            for rule in webhook["rules"]:
                url = f"https://127.0.0.1:{container.webhook_port}{path}"
                async with session.post(url, json=review(rule), server_hostname=host) as answer:
                    answers[path] = answer.status
                    if answer.status == 200:
                        assert (await answer.json())["response"]["uid"] == "u"
    config = decode(container.config_file.read_bytes()).config
    served = {webhook.path for webhook in enabled(config.webhooks)}
    assert served
    assert answers == {path: 200 if path in served else 404 for path in answers}


def address(client_config: Object) -> tuple[str, str]:
    """Host and path."""
    if "service" in client_config:
        service = client_config["service"]
        return f"{service['name']}.{service['namespace']}.svc", service["path"]
    url = urlsplit(client_config["url"])
    return str(url.hostname), url.path


def review(rule: Object) -> Object:
    (operation, *_), group, version = rule["operations"], rule["apiGroups"][0], rule["apiVersions"][-1]
    resource = rule["resources"][0]
    kind = KINDS.get(resource, resource.removesuffix("s").capitalize())
    about = {"apiVersion": f"{group}/{version}".removeprefix("/"), "kind": kind, "metadata": {"name": "n"}, "spec": {}}
    request = {
        "uid": "u",
        "kind": {"group": group, "version": version, "kind": kind},
        "resource": {"group": group, "version": version, "resource": resource},
        "operation": operation,
        "name": "n",
        "namespace": "default",
        "userInfo": {"username": "ann"},
        "oldObject" if operation == "DELETE" else "object": about,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
