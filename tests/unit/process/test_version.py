import importlib.metadata
import platform
import re
import sys
from pathlib import Path

import pytest

from process.version import DISTRIBUTION, user_agent, version


def test_the_installed_package_gives_the_version_but_an_override_wins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = DISTRIBUTION.replace("-", "_")
    for other in (f"{name}_more-3.0.0.dist-info", "else-4.0.0.dist-info", f"{name}-1.2.3.dist-info"):
        (tmp_path / other).mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "none"), str(tmp_path)])
    assert (version(), version("v9.9.9")) == ("v1.2.3", "v9.9.9")


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
