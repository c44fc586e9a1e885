"""The library works by its wheel alone: the controller of docs/controller-kit.md, in an environment without this checkout."""

import subprocess
from pathlib import Path

from devcluster.cluster import Cluster
from kit.eventually import eventually
from kit.library_wheels import environment, program_of
from kube.objects import mapping
from kube.resources import CONFIG_MAPS
from release.__main__ import CONTROLLER_KIT


def test_the_controller_of_the_page_greets_and_repairs(tmp_path: Path, cluster: Cluster, namespace: str) -> None:
    (tmp_path / "greeter.py").write_text(program_of("controller-kit.md", most_lines=30))
    path = CONFIG_MAPS.path(namespace=namespace)

    def greeting() -> object:
        return mapping(cluster.api.get(f"{path}/greeted").get("data")).get("greeting")

    cluster.api.create(path, {"metadata": {"name": "greeted", "labels": {"example.com/greet": ""}}})
    python = environment(tmp_path, CONTROLLER_KIT)
    with subprocess.Popen([python, "greeter.py", cluster.kubeconfig], cwd=tmp_path) as process:
        try:
            eventually(lambda: greeting() == "hello", "the greeting")
            cluster.api.patch(f"{path}/greeted", {"data": {"greeting": "bye"}})
            eventually(lambda: greeting() == "hello", "the greeting to be restored")
        finally:
            process.terminate()
