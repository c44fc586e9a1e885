"""Each command in docs/real-clusters.md, from its top to its bottom, on two API servers that are empty at first.

The charts are those of a release. Pods of the programs, and of the resource manager of the seed, are real processes with
the rights, files and configuration that the charts give them. An extension, installed from a chart in a registry, is
simulated with its rights, as is what a cloud does for Services. Other pods do nothing: the operation of the Shoot goes as
far as its etcd. Copying images is recorded only.
"""

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest
import yaml

from components.registry import images_of_workers
from config.gardenlet.schema import KUBERNETES_PROGRAMS
from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api.extensions import INFRASTRUCTURES
from gardener.api.garden import SHOOTS
from gardener.garden.shoots import last_operation
from kit.chart_registry import FakeRegistry
from kit.deployments import is_available, pod_of, reported_bundle, serve_at, until
from kit.eventually import PATIENCE
from kit.processes.deployed_pods import DeployedPod
from kit.simulated_extensions import CHART, extension, load_balancers
from kit.world import Place
from kube.errors import NotFound
from kube.objects import metadata, text
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, ENDPOINTS, NAMESPACES, NODES, SECRETS, Resource
from localprocesses.helm_program import find_or_build
from localprovider.seeds.configuration import API_SERVER
from release.__main__ import manifests_and_charts
from release.plan import Release

pytestmark = [
    pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl"),
    pytest.mark.timeout(900),
]

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "real-clusters.md").read_text()
WEBHOOKS, CONTAINER = "garden-gardener-resource-manager", "gardener-resource-manager"
_TOKENS_API = "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.authentication.gardener.cloud"
ROLES = ("controller-manager", "scheduler")
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SKOPEO = '#!/bin/sh\necho "$@" >> "$COPIED"\n'
_VECTOR = {
    *("pause-container", "etcd-druid", "hyperkube", *KUBERNETES_PROGRAMS, *images_of_workers()),
    *("istio-istiod", "istio-proxy", "nginx-ingress-controller-seed", "ingress-default-backend"),
}
TECHNICAL_ID = "shoot--dev--rose"
_OWN_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


class Followed:
    """The terminal of an operator, in a directory with the files of a release."""

    def __init__(self, directory: Path, garden: Cluster, seed: Cluster) -> None:
        self.directory = directory
        programs = directory / "bin"
        programs.mkdir()
        (programs / "helm").symlink_to(find_or_build())
        (programs / "skopeo").write_text(_SKOPEO)
        (programs / "skopeo").chmod(0o755)
        (directory / ".venv").symlink_to(PROJECT / ".venv")
        for name, cluster in (("garden", garden), ("seed", seed)):
            shutil.copy(cluster.kubeconfig, directory / f"{name}.kubeconfig")
        vector = [{"name": name, "repository": f"source.example.com/{name}", "tag": "v1"} for name in sorted(_VECTOR)]
        (directory / "containers.yaml").write_text(yaml.safe_dump({"images": vector}))
        for version in ("0.1.0", "0.2.0"):
            release = Release(version=version, revision="", registry="", base="")
            (directory / "dist").mkdir(exist_ok=True)
            manifests_and_charts(release, PROJECT, directory / "dist", digest="")
        path = f"{programs}:{PROJECT / '.venv' / 'bin'}:{os.environ['PATH']}"
        self.copied = directory / "copied"
        self._environment: Mapping[str, str] = {
            **os.environ,
            "PATH": path,
            "HOME": str(directory),
            "PYTHONPATH": str(PROJECT),
            "COPIED": str(self.copied),
        }

    def run(self, command: str) -> str:
        """Output; later commands see the variables that it exports."""
        kept = self.directory / "environment"
        done = subprocess.run(
            ["bash", "-c", f"{command}\nstatus=$?; env -0 > {kept}; exit $status"],
            cwd=self.directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        self._environment = dict(line.split("=", 1) for line in kept.read_text().split("\0") if line)
        return done.stdout


def commands() -> Iterator[str]:
    for body in _BLOCK.findall(PAGE):
        yield from body.strip().splitlines()


class Operated:
    """Two clusters, and what a test does for them instead of nodes: `after` a command of the page."""

    def __init__(self, garden: Cluster, seed: Cluster, directory: Path, stack: contextlib.ExitStack) -> None:
        self.garden, self.seed, self._directory = garden, seed, directory
        self._pods, self._of_resource_manager = 0, 0
        self._of_garden, self._of_gardenlet, self._of_seed = (
            stack.enter_context(contextlib.ExitStack()) for _ in range(3)
        )
        self._place, self._at_seed = Place(garden, "garden"), Place(seed, "garden")
        self.after: Mapping[str, Callable[[], None]] = {
            "install garden ": self._start_admission,
            "install garden-controllers ": self._start_controllers,
            "install gardenlet ": self._start_seed,
            "wait seed meadow": self._check_bootstrap,
            "why shoot rose": self._check_operation,
            "upgrade gardenlet ": self._check_upgrade,
            "rollback gardenlet$": self._start_gardenlet,
            "rollback garden$": self._check_rollback,
            "delete seed meadow": self._check_seed,
            "delete -f garden/crds": self._check_definitions,
        }

    def _pod(self, place: Place, name: str, **labels: str) -> DeployedPod:
        cluster = self.garden if place is self._place else self.seed
        self._pods += 1
        return DeployedPod(cluster, pod_of(place, **labels), self._directory / f"{name}-{self._pods}")

    def _start_admission(self) -> None:
        until(partial(is_available, self._place, WEBHOOKS), "the admission server to be available")
        server = self._pod(self._place, "webhooks", app=WEBHOOKS)
        certificates = self._of_garden.enter_context(server.start("certificates"))
        certificates.wait_for(lambda: reported_bundle(self.garden, WEBHOOKS), what="the CA in configurations")
        webhooks = self._of_garden.enter_context(server.start(CONTAINER))
        serve_at(self._place, server.webhook_port, name=WEBHOOKS)
        # Without tokens, namespaces are not deleted, since their content is not known.
        self.garden.api.patch(_TOKENS_API, {"spec": {"service": {"port": server.tokens_port}}})
        webhooks.wait_until_ready()

    def _start_controllers(self) -> None:
        for role in ROLES:
            pod = self._pod(self._place, role, app="gardener", role=role)
            self._of_garden.enter_context(pod.start(f"gardener-{role}")).wait_until_ready()

    def _start_seed(self) -> None:
        self._start_gardenlet()
        manager = self._pod(self._at_seed, "resource-manager", app=CONTAINER)
        self._of_seed.enter_context(manager.start(CONTAINER))
        self._of_resource_manager = manager.webhook_port

    async def route(self) -> None:
        """Lead the Service of the seed's resource manager to its process, again whenever the gardenlet has written it."""
        while True:
            await asyncio.sleep(0.5)
            if port := self._of_resource_manager:
                with contextlib.suppress(NotFound):
                    await asyncio.to_thread(serve_at, self._at_seed, port, name=CONTAINER)

    def _start_gardenlet(self) -> None:
        """In place of an older one."""
        self._of_gardenlet.close()
        until(partial(is_available, self._at_seed, "gardenlet"), "the gardenlet to be available")
        pod = self._pod(self._at_seed, "gardenlet", app="gardener", role="gardenlet")
        self._of_gardenlet.enter_context(pod.start("gardenlet"))

    def _check_bootstrap(self) -> None:
        """The token is gone, and the certificate is there."""
        assert self._at_seed.get(SECRETS, "gardenlet-kubeconfig")["data"]
        with pytest.raises(NotFound):
            self._at_seed.get(SECRETS, "gardenlet-kubeconfig-bootstrap")
        tokens = self.garden.api.get(f"{SECRETS.path(namespace='kube-system')}")["items"]
        assert not [each for each in tokens if each.get("type") == "bootstrap.kubernetes.io/token"]

    def _check_operation(self) -> None:
        """The extension has answered, and the operation has come to etcd."""
        path = SHOOTS.path(namespace="garden-dev", name="rose")
        infrastructure = INFRASTRUCTURES.path(namespace=TECHNICAL_ID, name="rose")

        def has_begun() -> bool:
            last = last_operation(self.garden.api.get(path))
            assert (last.get("type"), "etcd" in text(last.get("description"))) == ("Create", True)
            assert last_operation(self.seed.api.get(infrastructure)).get("state") == "Succeeded"
            return True

        until(has_begun, "the operation to come to etcd", state=lambda: self.garden.api.get(path)["status"])

    def images(self) -> dict[str, str]:
        """Images of the programs, by their Deployments."""
        places = [(self._place, (WEBHOOKS, *(f"gardener-{role}" for role in ROLES))), (self._at_seed, ("gardenlet",))]
        return {
            name: place.get(DEPLOYMENTS, name)["spec"]["template"]["spec"]["containers"][0]["image"]
            for place, names in places
            for name in names
        }

    def _check_upgrade(self) -> None:
        assert {image.rpartition(":")[2] for image in self.images().values()} == {"v0.2.0"}
        self._start_gardenlet()

    def _check_rollback(self) -> None:
        """The pods are others, whose tokens are valid, and the Service has the ports of the chart."""
        assert {image.rpartition(":")[2] for image in self.images().values()} == {"v0.1.0"}
        self._of_garden.close()
        self._start_admission()
        self._start_controllers()

    def _check_seed(self) -> None:
        """Only the gardenlet is left."""

        def is_empty() -> bool:
            assert not names(self.seed, CUSTOM_RESOURCE_DEFINITIONS)
            assert names(self.seed, NAMESPACES) == {"garden", *_OWN_NAMESPACES}
            return True

        until(is_empty, "the seed to be empty")
        self._of_gardenlet.close()
        self._of_seed.close()

    def _check_definitions(self) -> None:
        assert not names(self.garden, CUSTOM_RESOURCE_DEFINITIONS)


def names(cluster: Cluster, resource: Resource) -> set[str]:
    return {metadata(each)["name"] for each in cluster.api.get(resource.path())["items"]}


async def test_the_page_leads_from_empty_clusters_to_a_shoot_and_back(
    devcluster_run: RunClusters, tmp_path: Path
) -> None:
    registry = FakeRegistry()
    registry.tag("v1.0.0", CHART)
    with Cluster(nodes=2) as garden, Cluster(nodes=2) as seed, contextlib.ExitStack() as stack:
        make_real(seed)
        async with registry.serving(), asyncio.TaskGroup() as tasks:
            operated = Operated(garden, seed, tmp_path, stack)
            simulated = [
                tasks.create_task(operated.route()),
                tasks.create_task(extension(seed, tmp_path, "provider-example")),
                tasks.create_task(load_balancers(seed, "192.0.2.10")),
            ]
            await asyncio.to_thread(follow, operated, Followed(tmp_path, garden, seed), f"{registry.host}/mirror")
            for each in simulated:
                each.cancel()


def make_real(seed: Cluster) -> None:
    """Add what clusters with nodes have: the address of the API server, and zones."""
    seed.api.apply(ENDPOINTS.path(namespace="default", name="kubernetes"), API_SERVER)
    for node in names(seed, NODES):
        seed.api.patch(NODES.path(name=node), {"metadata": {"labels": {"topology.kubernetes.io/zone": "region-1a"}}})


def follow(operated: Operated, followed: Followed, mirror: str) -> None:
    for command in commands():
        print(command, flush=True)
        followed.run(command.replace("=registry.example.com/mirror", f"={mirror}"))
        for pattern, done in operated.after.items():
            if re.search(pattern, command):
                done()
    versioned = 1 + len(KUBERNETES_PROGRAMS)
    assert len(followed.copied.read_text().splitlines()) == len(_VECTOR) + versioned + 1
