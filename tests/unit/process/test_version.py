import importlib.metadata
import platform
import re
import sys
from pathlib import Path

import pytest

from gardener.distribution import DISTRIBUTION, version
from process.version import installed_version, user_agent


def test_the_installed_package_gives_the_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for other in ("our_program_more-3.0.0.dist-info", "else-4.0.0.dist-info", "our_program-1.2.3.dist-info"):
        (tmp_path / other).mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "none"), str(tmp_path)])
    assert installed_version("our-program") == "v1.2.3"


def test_the_version_is_that_of_the_metadata() -> None:
    assert version() == f"v{importlib.metadata.version(DISTRIBUTION)}"


def test_a_source_tree_that_was_never_installed_has_a_version_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert re.fullmatch(r"v\d+\.\d+\.\d+-\w+", version())


@pytest.mark.parametrize(("machine", "expected"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("riscv64", "riscv64")])
def test_the_user_agent_names_system_and_architecture_in_gos_terms(
    monkeypatch: pytest.MonkeyPatch, machine: str, expected: str
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(sys, "platform", "linux")
    assert user_agent("gardener-resource-manager", "v1.2.3") == f"gardener-resource-manager/v1.2.3 (linux/{expected})"
