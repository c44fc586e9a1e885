"""The programs of the newest version of Kubernetes take the command lines of a Shoot's control plane."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from devcluster.cluster import Cluster
from kit.shoot_components import (
    WITH_ALL_SETTINGS,
    api_server_arguments,
    controller_manager_arguments,
    scheduler_arguments,
)
from localprocesses.assets import find_or_build
from localprocesses.versions import NEWEST


def complaint(program: Path, arguments: Sequence[str]) -> str:
    """About its flags, deprecated ones apart: it reads them, and prints its version instead of running."""
    done = subprocess.run([str(program), *arguments, "--version"], check=False, capture_output=True, text=True)
    return "" if done.stdout.strip() == f"Kubernetes v{NEWEST}" else done.stdout + done.stderr


@pytest.mark.parametrize("authentication", ["kind: A", ""], ids=["by file", "by flags"])
def test_the_api_server_takes_its_flags(cluster: Cluster, authentication: str) -> None:
    """The cluster is of the programs that are queried."""
    passed = api_server_arguments(NEWEST, {**WITH_ALL_SETTINGS, "authentication": authentication})
    assert complaint(find_or_build().apiserver, passed) == ""


def test_the_controller_manager_takes_its_flags(cluster: Cluster) -> None:
    program = find_or_build().controller_manager
    assert program is not None
    assert complaint(program, controller_manager_arguments(NEWEST)) == ""
    assert "unknown flag: --nope" in complaint(program, ["--nope"])


def test_the_scheduler_takes_its_flags(cluster: Cluster) -> None:
    program = find_or_build().scheduler
    assert program is not None
    assert complaint(program, scheduler_arguments(NEWEST)) == ""
