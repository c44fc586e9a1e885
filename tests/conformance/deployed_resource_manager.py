"""A resource manager at work: its processes, run from what a gardenlet has written for them."""

import asyncio
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from config.resource_manager import decode
from devcluster.cluster import Cluster
from kit.deployments import until
from kit.managed_resources import install_crd
from kit.objects import bundle, config_map, managed_resource, obj
from kit.processes.agent import AgentProcess
from kit.processes.deployed_pods import Change, DeployedPod
from kit.world import Place
from kube.objects import Object, metadata
from localprocesses.pki import Authority
from webhooks.registry import enabled

NAME = "gardener-resource-manager"
KINDS = {"customresourcedefinitions": "CustomResourceDefinition", "networks": "Network"}
MOST_MEMORY = 75 << 20


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


@contextmanager
def seed_cluster(namespaces: Iterable[str], priorities: Iterable[str]) -> Iterator[Cluster]:
    """With a Node of zone `0`, these Namespaces, and these PriorityClasses."""
    with Cluster(nodes=1) as own:
        everywhere = Place(own, "")
        (node,) = everywhere.list("Node")
        everywhere.patch("Node", metadata(node)["name"], {"metadata": {"labels": {"topology.kubernetes.io/zone": "0"}}})
        for namespace in namespaces:
            everywhere.create(obj("Namespace", namespace))
        for name in priorities:
            own.api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": 1})
        install_crd(own)
        yield own


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
