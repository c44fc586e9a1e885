"""Each command in docs/real-clusters.md, from its top to its bottom, on two API servers that are empty at first.

The charts are those of a release. Pods of the programs are real processes with the rights, files and configuration that
the charts give them; those of the seed's components and of extensions do not run, so that the Shoot waits for a Seed.
Copying images is recorded only: there is no registry.
"""

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

from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from kit.deployments import is_available, pod_of, reported_bundle, serve_at, until
from kit.processes.deployed_pods import DeployedPod
from kit.world import Place
from kube.errors import NotFound
from kube.resources import DEPLOYMENTS, ENDPOINTS, SECRETS
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
_TOKENS_API, _TOKENS_PORT = "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.authentication.gardener.cloud", 10251
ROLES = ("controller-manager", "scheduler")
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SKOPEO = '#!/bin/sh\necho "$@" >> "$COPIED"\n'
_VECTOR = ("pause-container", "coredns", "etcd-druid", "gardener-node-agent", "hyperkube", "kube-apiserver")


_SEED_STAYS = "a Seed goes when its components are gone, which nothing runs here; test_box_of_seed.py removes one"
LEFT_OUT = {
    "wait shoot rose": "no Shoot is scheduled to a Seed whose bucket no extension has created",
    "delete seed meadow": _SEED_STAYS,
    "delete -f my-garden/extensions.yaml": _SEED_STAYS,
    "delete -f garden/crds": _SEED_STAYS,
}
"""By a part of the command."""


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
        vector = [{"name": name, "repository": f"source.example.com/{name}", "tag": "v1"} for name in _VECTOR]
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
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        self._environment = dict(line.split("=", 1) for line in kept.read_text().split("\0") if line)
        return done.stdout


def commands() -> Iterator[str]:
    for body in _BLOCK.findall(PAGE):
        yield from body.strip().splitlines()


class Operated:
    """Two clusters, and what a test does for them instead of nodes: `after` and `before` a command of the page."""

    def __init__(self, garden: Cluster, seed: Cluster, directory: Path, stack: contextlib.ExitStack) -> None:
        self.garden, self.seed, self._directory, self._stack = garden, seed, directory, stack
        self._pods = 0
        self._of_garden = stack.enter_context(contextlib.ExitStack())
        self._place, self._at_seed = Place(garden, "garden"), Place(seed, "garden")
        self.after: Mapping[str, Callable[[], None]] = {
            "install garden ": self._start_admission,
            "install garden-controllers ": self._start_controllers,
            "install gardenlet ": self._start_gardenlet,
            "wait seed meadow": self._check_bootstrap,
            "rollback garden$": self._start_again,
            "upgrade gardenlet ": self._check_upgrade,
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
        self.garden.api.patch(_TOKENS_API, {"spec": {"service": {"port": _TOKENS_PORT}}})
        webhooks.wait_until_ready()

    def _start_controllers(self) -> None:
        for role in ROLES:
            pod = self._pod(self._place, role, app="gardener", role=role)
            self._of_garden.enter_context(pod.start(f"gardener-{role}")).wait_until_ready()

    def _start_gardenlet(self) -> None:
        pod = self._pod(self._at_seed, "gardenlet", app="gardener", role="gardenlet")
        self._gardenlet = self._stack.enter_context(pod.start("gardenlet"))

    def _check_bootstrap(self) -> None:
        """The token is gone, and the certificate is there."""
        assert self._at_seed.get(SECRETS, "gardenlet-kubeconfig")["data"]
        with pytest.raises(NotFound):
            self._at_seed.get(SECRETS, "gardenlet-kubeconfig-bootstrap")
        tokens = self.garden.api.get(f"{SECRETS.path(namespace='kube-system')}")["items"]
        assert not [each for each in tokens if each.get("type") == "bootstrap.kubernetes.io/token"]

    def images(self) -> dict[str, str]:
        """Images of the programs, by their Deployments."""
        places = [(self._place, (WEBHOOKS, *(f"gardener-{role}" for role in ROLES))), (self._at_seed, ("gardenlet",))]
        return {
            name: place.get(DEPLOYMENTS, name)["spec"]["template"]["spec"]["containers"][0]["image"]
            for place, names in places
            for name in names
        }

    def _check_upgrade(self) -> None:
        assert set(self.images().values()) == {"registry.example.com/mirror/resource-manager:v0.2.0"}

    def _start_again(self) -> None:
        """The pods are others, whose tokens are valid, and the Service has the ports of the chart."""
        self._check_rollback()
        self._of_garden.close()
        self._start_admission()
        self._start_controllers()

    def _check_rollback(self) -> None:
        assert set(self.images().values()) == {"registry.example.com/mirror/resource-manager:v0.1.0"}


def test_the_page_leads_from_empty_clusters_to_a_shoot_and_back(devcluster_run: RunClusters, tmp_path: Path) -> None:
    with Cluster(nodes=2) as garden, Cluster(nodes=2) as seed, contextlib.ExitStack() as stack:
        seed.api.apply(ENDPOINTS.path(namespace="default", name="kubernetes"), API_SERVER)  # as in real clusters
        followed, operated = Followed(tmp_path, garden, seed), Operated(garden, seed, tmp_path, stack)
        for command in commands():
            print(command, flush=True)
            if any(each in command for each in LEFT_OUT):
                continue
            followed.run(command.replace("--timeout=2m", "--timeout=50s"))
            for pattern, done in operated.after.items():
                if re.search(pattern, command):
                    done()
        assert len(followed.copied.read_text().splitlines()) == len(_VECTOR) + 3
