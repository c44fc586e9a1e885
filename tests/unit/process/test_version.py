import importlib.metadata
import platform
import re
import sys

import pytest

from process.version import DISTRIBUTION, user_agent, version


def test_the_installed_package_gives_the_version_but_an_override_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: {DISTRIBUTION: "1.2.3"}[name])
    assert (version(), version("v9.9.9")) == ("v1.2.3", "v9.9.9")


def test_a_source_tree_that_was_never_installed_has_a_version_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert re.fullmatch(r"v\d+\.\d+\.\d+-\w+", version())


@pytest.mark.parametrize(("machine", "expected"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("riscv64", "riscv64")])
def test_the_user_agent_names_system_and_architecture_in_gos_terms(
    monkeypatch: pytest.MonkeyPatch, machine: str, expected: str
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(sys, "platform", "linux")
    assert user_agent("gardener-resource-manager", "v1.2.3") == f"gardener-resource-manager/v1.2.3 (linux/{expected})"
