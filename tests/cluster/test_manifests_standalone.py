"""The overlay without Gardener does what the pages for newcomers promise, with the rights that it has.

It looks after the whole cluster, so it has one of its own.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster.cluster import Cluster
from kit.eventually import eventually
from kit.objects import config_map, deployment
from kit.processes.deployed_pods import DeployedPod
from kit.world import Place
from kube.errors import KubeError
from kube.objects import Object, condition
from localprocesses.ports import free_port

PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs" / "production.md"
NAMESPACE = "resource-manager"
AGENT = f"system:serviceaccount:{NAMESPACE}:gardener-resource-manager"

pytestmark = [
    pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl"),
    pytest.mark.timeout(600),
]


@pytest.fixture
def own(devcluster_run: object) -> Iterator[Cluster]:
    with Cluster(nodes=1) as cluster:
        yield cluster


def run(cluster: Cluster, command: str, *, stdin: str = "", directory: Path = PROJECT) -> str:
    """As on the page, where the plugin is installed."""
    arguments = shlex.split(command)
    if arguments[:2] == ["kubectl", "mr"]:
        arguments = [sys.executable, "-m", "kubectl.mr", *arguments[2:]]
    done = subprocess.run(
        arguments,
        cwd=directory,
        # kubectl keeps its cache at home.
        env={
            **os.environ,
            "KUBECONFIG": str(cluster.kubeconfig),
            "HOME": str(cluster.state),
            "PYTHONPATH": str(PROJECT),
        },
        input=stdin,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def running_agent(place: Place) -> Object | None:
    pods = place.api.get(f"{place.path('Pod')}?labelSelector=app%3Dgardener-resource-manager-agent")["items"]
    return next((pod for pod in pods if (condition(pod, "Ready") or {}).get("status") == "True"), None)


def deployed(cluster: Cluster, pod: Object, directory: Path) -> DeployedPod:
    def with_a_page_of_its_own(config: dict[str, Any]) -> None:
        config["server"]["statusPage"]["port"] = free_port()

    return DeployedPod(cluster, pod, directory, change=with_a_page_of_its_own)


def test_one_command_installs_all_that_a_managed_resource_without_a_class_needs(own: Cluster, tmp_path: Path) -> None:
    run(own, "kubectl apply --server-side -k manifests/overlays/standalone")
    pod = eventually(lambda: running_agent(Place(own, NAMESPACE)), "a pod", passing=(KubeError,))
    with closing(own.audit()) as audit, deployed(own, pod, tmp_path).start("agent") as agent:
        agent.wait_until_ready()
        manifests = [
            config_map("hello", {"greeting": "hello"}, namespace="default"),
            deployment("web", namespace="default", replicas=1),
        ]
        run(own, "kubectl mr create hello -n default -f -", stdin=yaml.safe_dump_all(manifests))
        run(own, "kubectl mr wait hello -n default")
        checked = run(own, "kubectl mr check -A")
        assert "✔ an agent leads in namespace resource-manager, for the class resources (the default)" in checked
        assert "✔ 1 of 1 ManagedResource ready" in checked
        run(own, "kubectl -n default delete managedresource hello --timeout=60s")
        assert Place(own, "default").find("ConfigMap", "hello") is None
        calls = [call for call in audit.calls(leases=True, watches=True) if call.user == AGENT]
    assert calls
    assert [call for call in calls if call.status == 403] == []


# --- docs/production.md


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [text for named, text in found if named == language]


def write_overlay(directory: Path) -> None:
    """The one of the page, without the Prometheus operator."""
    text, role = blocks("yaml")
    overlay = yaml.safe_load(text)
    assert [Path(each).name for each in overlay.pop("components")] == ["service-monitor", "alerts"]
    overlay["images"][0]["digest"] = f"sha256:{'0' * 64}"
    (directory / "my-overlay").mkdir()
    (directory / "my-overlay" / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    (directory / role.split()[1]).write_text(role)
    # kustomize reads no files outside of the root by links, so the page's place for the project has a copy.
    shutil.copytree(PROJECT / "manifests", directory / "resource-manager" / "manifests")


def test_the_steps_to_production_are_as_the_page_states(own: Cluster, tmp_path: Path) -> None:
    commands = [line for block in blocks("") for line in block.splitlines()]
    builds = [command for command in commands if command.startswith("docker ")]
    assert [command.split()[1] for command in builds] == ["build", "push"]
    install, rollout, *others = commands[len(builds) :]
    write_overlay(tmp_path)
    (tmp_path / "hello.yaml").write_text(yaml.safe_dump(config_map("hello", {"k": "v"}, namespace="default")))
    run(own, install, directory=tmp_path)
    assert "successfully rolled out" in run(own, f"{rollout} --timeout=100s", directory=tmp_path)
    pod = eventually(lambda: running_agent(Place(own, NAMESPACE)), "a pod", passing=(KubeError,))
    assert pod["spec"]["containers"][0]["image"] == f"registry.example.com/resource-manager@sha256:{'0' * 64}"
    with deployed(own, pod, tmp_path / "pod").start("agent") as agent:
        agent.wait_until_ready()
        printed = [run(own, command, directory=tmp_path) for command in others]
        refused = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "refused"}}
        run(own, "kubectl mr create refused -n default -f -", stdin=yaml.safe_dump(refused))
        default = Place(own, "default")
        eventually(lambda: default.condition("refused", "ResourcesApplied").get("reason") == "ApplyFailed")
        message = default.condition("refused", "ResourcesApplied")["message"]
    assert "v1/Namespace//refused" in message
    assert f'User "{AGENT}" cannot' in message
    assert [command.split()[2] for command in others] == ["check", "create", "wait"]
    assert "✔ an agent leads in namespace resource-manager" in printed[0]
    assert default.get("ConfigMap", "hello")["data"] == {"k": "v"}
