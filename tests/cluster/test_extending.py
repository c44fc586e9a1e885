"""The example of a controller in docs/extending.md: entered as the document states, it does what its test states."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from devcluster.cluster import Cluster

PROJECT = Path(__file__).parents[2]

SCRIPT = """
import asyncio, sys
from agent.resource_manager.controllers import CONTROLLERS
from agent.resource_manager.default_account.controller import declare
from config.resource_manager.controllers import Controllers, DefaultAccount
from config.resource_manager.schema import ResourceManagerConfiguration
from kube.runtime.transport import Transport
from kube.runtime.client import Client
from kube.runtime.connection import load_kubeconfig
from pathlib import Path
from test_default_account import test_the_default_account_mounts_no_token_and_is_restored as test

async def main(kubeconfig, namespace):
    async with Transport(load_kubeconfig(Path(kubeconfig))) as transport:
        await test(Client(transport, user_agent="test"), namespace)

def entered(enabled):
    controllers = Controllers(default_account=DefaultAccount(enabled=enabled))
    return list(CONTROLLERS.load(ResourceManagerConfiguration(controllers=controllers)))

assert (entered(False), entered(True)) == ([], [declare])
asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Of the product, of which nothing but what the example changes is copied."""
    for package in PROJECT.iterdir():
        if package.name in {"agent", "config"}:
            shutil.copytree(package, tmp_path / package.name)
        elif (package / "__init__.py").exists():
            (tmp_path / package.name).symlink_to(package)
    return tmp_path


def test_the_controller_of_the_documentation_works(copy: Path, cluster: Cluster, namespace: str) -> None:
    section = (PROJECT / "docs" / "extending.md").read_text().split("## A controller")[1].split("## A program")[0]
    block, setting, reconcile, controller, line, test = re.findall(
        r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL
    )
    schema = copy / "config" / "resource_manager" / "controllers.py"
    before, marker, last = schema.read_text().rpartition("@dataclass(frozen=True, slots=True, kw_only=True)\n")
    indented = "".join(f"    {line}\n" for line in setting.splitlines())
    schema.write_text(f"{before}{block}\n\n{marker}{last}{indented}")
    package = copy / "agent" / "resource_manager" / "default_account"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "reconcile.py").write_text(reconcile)
    (package / "controller.py").write_text(controller)
    table = copy / "agent" / "resource_manager" / "controllers.py"
    before, marker, last = table.read_text().partition("    {\n")
    table.write_text(f"{before}{marker}        {line}{last}")
    (copy / "test_default_account.py").write_text(test)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(cluster.kubeconfig), namespace],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": f"{copy}{os.pathsep}{PROJECT / 'tests'}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
