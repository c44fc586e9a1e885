"""The programs of the newest version of Kubernetes know all flags that a Shoot's control plane passes to them."""

import re
import subprocess
from pathlib import Path

from devcluster.cluster import Cluster
from kit.shoot_components import WITH_ALL_SETTINGS, flags_of_api_server, flags_of_controller_manager
from localprocesses.assets import find_or_build
from localprocesses.versions import NEWEST

_FLAG = re.compile(r"^ +(?:-\w, )?--([a-z0-9][a-z0-9-]*)", re.MULTILINE)


def known(program: Path) -> set[str]:
    done = subprocess.run([str(program), "--help"], check=True, capture_output=True, text=True)
    return set(_FLAG.findall(done.stdout))


def test_each_program_knows_its_flags(cluster: Cluster) -> None:
    """The cluster is of the programs that are asked."""
    assets = find_or_build()
    assert assets.controller_manager is not None
    passed = flags_of_api_server(NEWEST) | flags_of_api_server(NEWEST, {**WITH_ALL_SETTINGS, "authentication": ""})
    assert passed - known(assets.apiserver) == set()
    assert flags_of_controller_manager(NEWEST) - known(assets.controller_manager) == set()
