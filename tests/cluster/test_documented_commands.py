"""Every command in README and docs works as it stands, from top to bottom, in a fresh checkout.

The commands of one block run in one shell, since they set variables for each other. `SERVERS` run until they log that
they are ready; `LEFT_OUT` states of the others who runs them, or why they can't be run here. Beside the checkout are the
files that the pages ask the reader to have, and an agent runs as in a cluster where it is installed.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster.cluster import Cluster
from kit.eventually import eventually
from kit.managed_resources import install_crd
from kit.processes.agent import HEAD, AgentProcess, sole_configuration
from kit.processes.webhooks import make_certificate
from localprocesses.ports import free_port

pytestmark = [pytest.mark.usefixtures("devcluster_run"), pytest.mark.timeout(600)]

PROJECT = Path(__file__).parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{path.name}" for path in (PROJECT / "docs").glob("*.md"))]
_FIRST = ("README.md", "docs/production.md", "docs/install.md", "docs/garden-api.md", "docs/garden.md")
"""They find a cluster without webhooks, and make namespaces and kinds that others name."""
_LAST = ("docs/webhooks-installing.md",)
"""From then on API servers ask webhooks that are not there."""
_FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_STARTS = re.compile(
    r"(?:[A-Z_]+=\S+ )*(?:\(umask|[A-Z]+=\$\(|(?:kubectl|make|docker|export|cosign|oras|kustomize|python|skopeo|helm|tar|install)\s|\.venv/)"
)

SERVERS = re.compile(r"\.venv/bin/python -m (agent --config|webhooks --config|webhooks certificates .*--watch)")
_READY = re.compile("Starting workers|Updated current TLS certificate|Issued a certificate")
_NEEDS_AN_ENGINE = "needs a container engine"
_BUILDS = "builds for minutes"
LEFT_OUT = {
    r"make demo": "test_demo.py and test_demo_of_garden.py run what it runs",
    r"make (setup|check|test|coverage|format|help)": "runs this test, or what everybody runs first",
    r"docker ": _NEEDS_AN_ENGINE,
    r"make publish|cosign |skopeo |helm install \S+ oci:": "needs a registry",
    r"make release|helm install \S+ dist/|tar -xzf dist/|install dist/": "test_release_installed.py makes and installs one",
    r"\.venv/bin/kubectl-mr admit -f service.yaml": "test_extending.py runs it with the page's code",
    r"\.venv/bin/python -m tests\.campaign (--minutes|--quick)": "faults/test_campaign.py runs a short one",
    r"\.venv/bin/python -m (tests\.outages|tests\.fuzz|benchmarks)": "measures or searches for minutes",
    r"\.venv/bin/pytest|(CRASH_SWEEP|WEBHOOK_FUZZ_EXAMPLES)=": "these are tests themselves",
    r"\.venv/bin/pip install": "needs an index",
    r"\.venv/bin/python -m devcluster (up --name old|build)": _BUILDS,
    r"\.venv/bin/python -m devcluster up .*--shoots": "test_shoots_on_this_computer.py starts one",
    r"kubectl mr |pip ": "test_kubectl_mr_docs.py runs the page",
    r"kubectl gardener |\(umask 077; kubectl gardener|kubectl --kubeconfig s.kubeconfig": "test_garden_why.py, test_garden_operations.py, test_garden_kubeconfigs.py, test_gardenlet_flows.py, test_garden_on_real_clusters.py",
    r"KUBECONFIG=seed.kubeconfig ": "test_box_of_seed.py and test_local_provider_extensions.py start them",
    r"kubectl -(n|-namespace) garden (create|annotate) secret (generic )?gardenlet-kubeconfig": (
        "test_garden_gardenlet_bootstrap.py and test_garden_gardenlet_credentials.py do that"
    ),
    r"kubectl -n garden create secret generic workload-identity-issuer": "test_garden_workload_identity_tokens.py",
    r"kubectl auth can-i .* --as-group gardener.cloud:system:seeds": "test_garden_seed_rights.py asks for all rights",
    r"kubectl create -f - --raw /apis/authentication": "test_garden_workload_identity_tokens.py asks for tokens",
    r"kubectl -n garden-dev annotate shoot rose \S+/force-deletion": "test_shoot_force_deletion.py does that",
    r"kubectl patch shoot rose -n garden-dev": "faults/test_garden_gardenlet_move_kills.py takes a Shoot over in this way",
    r"kubectl --kubeconfig=\$SEED -n shoot--dev--rose (get|annotate) (events|etcd)": "test_shoot_etcd_restore.py does that",
    r"kubectl -n garden port-forward": "needs containers",
    r"kubectl (annotate|delete) infrastructures": "test_crd_deletion_protection.py, with such a definition",
}
"""By how they begin."""
_FOLLOWED = {
    "docs/first-managed-resource.md": "test_first_managed_resource.py follows the page",
    "docs/moving-shoots.md": "test_shoot_moves.py moves one",
    "docs/real-clusters.md": "test_garden_on_real_clusters.py follows the page",
    "docs/rotation.md": "test_shoot_life.py rotates what one has",
    "docs/shoots-on-this-computer.md": "test_shoots_on_this_computer.py follows the page",
}
_OF_PRODUCTION = re.compile(r"kubectl mr (check -A|create hello|wait hello)")


@dataclass(frozen=True, slots=True)
class Block:
    page: str
    line: int
    commands: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: str) -> Iterator[Block]:
    text = (PROJECT / page).read_text()
    for match in _FENCED.finditer(text):
        commands = tuple(_commands(match[2])) if match[1] in {"", "sh"} else ()
        if commands:
            yield Block(page, text.count("\n", 0, match.start()) + 1, commands)


def _commands(body: str) -> Iterator[str]:
    """The commands of a block; of one with prompts what follows them, without what they print."""
    lines = [line.strip() for line in body.replace("\\\n", " ").splitlines()]
    if any(line.startswith("$ ") for line in lines):
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    for line in lines:
        command = re.sub(r"\s+#\s.*", "", re.sub(r"\s+", " ", line)) if "  # " in line or "   #" in line else line
        if _STARTS.match(command):
            yield re.sub(r" {2,}", " ", command)


_ORDER = [*_FIRST, *(page for page in PAGES if page not in (*_FIRST, *_LAST)), *_LAST]
ALL = [block for page in _ORDER for block in blocks(page)]


def reason(command: str, page: str) -> str:
    """Why a command is not run here; empty if it is."""
    if page in _FOLLOWED:
        return _FOLLOWED[page]
    if page == "docs/production.md" and _OF_PRODUCTION.match(command):
        return ""
    return next((why for start, why in LEFT_OUT.items() if re.match(start, command)), "")


# --- what the reader has


def _definition(kind: str, plural: str) -> dict[str, Any]:
    """Of a kind of the Prometheus operator."""
    group = "monitoring.coreos.com"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def _server(**ports: int) -> dict[str, Any]:
    return {name: {"bindAddress": "127.0.0.1", "port": port or free_port()} for name, port in ports.items()}


def _component(group: str, kind: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{group}.config.gardener.cloud/v1alpha1",
        "kind": kind,
        "leaderElection": {"leaderElect": False},
        "server": _server(healthProbes=0, metrics=0),
    }


_WORKLOAD = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: default}
data: {a: b}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec:
  containers: [{name: c, image: registry.example.com/web:v1}]
  volumes: [{name: v, configMap: {name: web}}]
"""
_SHOOT = "devcluster/demo/shoot.yaml"
_FIRST_MANAGED_RESOURCE = PROJECT / "docs/first-managed-resource.md"
_YAML = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


class Reader:
    """A user with a checkout, a cluster and what the pages ask for."""

    def __init__(self, cluster: Cluster, home: Path) -> None:
        self.cluster = cluster
        self.checkout = home / "resource-manager"
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", ":!tests"],
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            check=True,
        ).stdout.decode()
        for name in filter(None, listed.split("\0")):
            if (PROJECT / name).is_file():
                (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(PROJECT / name, self.checkout / name)
        for name in (".venv", "tests"):
            (self.checkout / name).symlink_to(PROJECT / name)
        self._environment = {
            **os.environ,
            "PATH": f"{PROJECT / '.venv/bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.checkout),
            "KUBECONFIG": str(cluster.kubeconfig),
        }

    def directory(self, page: str) -> Path:
        return self.checkout.parent if page == "docs/production.md" else self.checkout

    def write(self, page: str, files: Mapping[str, Any]) -> None:
        for name, content in files.items():
            path = self.directory(page) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content))

    def run(self, script: str, *, page: str = "") -> None:
        # A new kind is explained some seconds after it is served; a reader does not type faster.
        done = self._run(script, page)
        if done.returncode and "explain" in script:
            done = eventually(lambda: self._succeeded(script, page), script)
        assert done.returncode == 0, f"{script}\n{done.stdout}"

    def _succeeded(self, script: str, page: str) -> "subprocess.CompletedProcess[str] | None":
        done = self._run(script, page)
        return None if done.returncode else done

    def _run(self, script: str, page: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.directory(page),
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )

    def serve(self, command: str, log: Path) -> None:
        """Until it is ready; then it ends as it should."""
        with (
            log.open("wb") as output,
            subprocess.Popen(
                ["bash", "-c", f"{command.replace('/path/to/kubeconfig', str(self.cluster.kubeconfig))}"],
                cwd=self.checkout,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process,
        ):
            try:
                eventually(lambda: _READY.search(log.read_text()) or process.poll(), command, state=log.read_text)
                assert process.poll() is None, log.read_text()
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
                process.wait(60)

    def prepare(self, page: str) -> None:
        """Tools that the page expects."""
        kubeconfig = self.cluster.kubeconfig.read_text()
        webhooks = {
            **HEAD,
            "leaderElection": {"leaderElect": False, "resourceNamespace": "garden"},
            "server": {
                **_server(healthProbes=0, metrics=0),
                "webhooks": {**_server(webhooks=0)["webhooks"], "tls": {"serverCertDir": str(self.checkout / "certs")}},
            },
            "webhooks": {"seccompProfile": {"enabled": True}},
        }
        certificate, key = make_certificate("documented")
        text = (PROJECT / page).read_text()
        examples = [body.replace("<digest>", "0" * 64) for body in _YAML.findall(text)]
        files: dict[str, dict[str, Any]] = {
            "docs/controller-manager.md": {
                "garden.kubeconfig": kubeconfig,
                "controller-manager.yaml": _component("controllermanager", "ControllerManagerConfiguration"),
            },
            "docs/scheduler.md": {
                "garden.kubeconfig": kubeconfig,
                "scheduler.yaml": _component("scheduler", "SchedulerConfiguration"),
            },
            "docs/garbage-collection.md": {
                "deployment.yaml": _WORKLOAD,
                "config.yaml": "",
                "kustomization.yaml": {"resources": ["deployment.yaml"]},
            },
            "docs/garden.md": {"shoot.yaml": (PROJECT / _SHOOT).read_text()},
            "docs/install.md": {"target.yaml": kubeconfig},
            "docs/operations.md": {"config.yaml": webhooks},
            "docs/production.md": {
                **dict(zip(("my-overlay/kustomization.yaml", "my-overlay/managed-kinds.yaml"), examples, strict=False)),
                "hello.yaml": {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "h", "namespace": "default"},
                },
            },
            "docs/webhooks.md": {
                "config.yaml": webhooks,
                "certs/tls.crt": certificate.decode(),
                "certs/tls.key": key.decode(),
            },
            "docs/webhooks-installing.md": {"config.yaml": webhooks, "ca.crt": certificate.decode()},
        }
        self.write(page, files.get(page, {}))
        if page == "docs/install.md":
            self.run("kubectl create namespace shoot--project--name")
        if page == "docs/garden.md":
            self.run("kubectl create namespace garden-dev")
            shoot = yaml.safe_load((PROJECT / _SHOOT).read_text())
            shoot["spec"]["cloudProfile"]["kind"] = "CloudProfile"  # webhooks fill it in
            self.cluster.api.create("/apis/core.gardener.cloud/v1beta1/namespaces/garden-dev/shoots", shoot)
        if page.startswith("docs/managed-resource") or page == "docs/migration.md":
            self.run("kubectl apply --server-side -k manifests/overlays/runtime")
        if page == "docs/migration.md":
            lease = {"holderIdentity": "gardener-resource-manager-agent"}
            self.cluster.api.create(
                "/apis/coordination.k8s.io/v1/namespaces/garden/leases",
                {"metadata": {"name": "gardener-resource-manager"}, "spec": lease},
            )
        if page == "docs/multi-tenancy.md":
            self.run("kubectl create namespace team-a; kubectl -n team-a create serviceaccount deployer")
        if page.startswith("docs/managed-resource"):
            hello, issuers = (
                next(body for body in _YAML.findall(_FIRST_MANAGED_RESOURCE.read_text()) if body.startswith("# hello")),
                {
                    "apiVersion": "resources.gardener.cloud/v1alpha1",
                    "kind": "ManagedResource",
                    "metadata": {
                        "name": "issuers",
                        "namespace": "garden",
                        "annotations": {"resources.gardener.cloud/depends-on": "cert-manager:healthy, networking"},
                    },
                    "spec": {"secretRefs": [{"name": "hello"}]},
                },
            )
            for obj in [*yaml.safe_load_all(hello), issuers]:
                self.cluster.api.apply(_path(obj), obj)


def _path(obj: dict[str, Any]) -> str:
    group = "/api/v1" if obj["kind"] == "Secret" else "/apis/resources.gardener.cloud/v1alpha1"
    return f"{group}/namespaces/{obj['metadata']['namespace']}/{obj['kind'].lower()}s/{obj['metadata']['name']}"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with Cluster(nodes=1) as own:
        install_crd(own)
        for kind, plural in (("ServiceMonitor", "servicemonitors"), ("PrometheusRule", "prometheusrules")):
            own.api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _definition(kind, plural))
        controllers = {"health": {"readyCondition": True}}
        election = {"leaderElect": True, "resourceNamespace": "default"}
        config = sole_configuration(controllers=controllers, leaderElection=election)
        with AgentProcess(config, kubeconfig=own.kubeconfig) as agent:
            agent.wait_until_ready()
            yield Reader(own, tmp_path_factory.mktemp("home"))


@pytest.mark.parametrize("page", dict.fromkeys(block.page for block in ALL))
def test_the_commands_of_a_page_work(page: str, reader: Reader, tmp_path: Path) -> None:
    reader.prepare(page)
    for block in (block for block in ALL if block.page == page):
        commands = [command for command in block.commands if not reason(command, page)]
        servers = [command for command in commands if SERVERS.match(re.sub(r"^\S+=\S+ ", "", command))]
        for command in servers:
            reader.serve(command, tmp_path / "log")
        if script := "\n".join(command for command in commands if command not in servers):
            reader.run(script, page=page)


def test_each_reason_is_of_some_command() -> None:
    commands = [command for block in ALL for command in block.commands]
    assert [start for start in LEFT_OUT if not any(re.match(start, command) for command in commands)] == []
