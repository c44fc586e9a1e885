"""The library works by its wheel alone: the controller of docs/controller-kit.md, in an environment without this checkout."""

import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from devcluster.cluster import Cluster
from kit.eventually import eventually
from kit.packages import PROJECT
from kube.objects import mapping
from kube.resources import CONFIG_MAPS
from release.__main__ import library


def environment(directory: Path) -> Path:
    """The interpreter of one with the wheel and its dependencies."""
    library(PROJECT, directory)
    (wheel,) = directory.glob("*.whl")
    venv.create(directory / "environment", symlinks=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(directory / "environment")}))
    # Only the folder is added: *.pth files in it, such as that of an editable installation, have no effect.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    python = directory / "environment" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python), "install"]
    subprocess.run([*pip, "--quiet", "--no-deps", "--no-index", str(wheel)], check=True, timeout=120)
    return python


def test_the_controller_of_the_page_greets_and_repairs(tmp_path: Path, cluster: Cluster, namespace: str) -> None:
    (code,) = re.findall(
        r"^```python\n(.*?)^```$", (PROJECT / "docs" / "controller-kit.md").read_text(), re.MULTILINE | re.DOTALL
    )
    body = [line for line in code.splitlines() if line and not line.startswith(("import ", "from "))]
    assert len(body) <= 30
    (tmp_path / "greeter.py").write_text(code)
    path = CONFIG_MAPS.path(namespace=namespace)

    def greeting() -> object:
        return mapping(cluster.api.get(f"{path}/greeted").get("data")).get("greeting")

    cluster.api.create(path, {"metadata": {"name": "greeted", "labels": {"example.com/greet": ""}}})
    with subprocess.Popen([environment(tmp_path), "greeter.py", cluster.kubeconfig], cwd=tmp_path) as process:
        try:
            eventually(lambda: greeting() == "hello", "the greeting")
            cluster.api.patch(f"{path}/greeted", {"data": {"greeting": "bye"}})
            eventually(lambda: greeting() == "hello", "the greeting to be restored")
        finally:
            process.terminate()
