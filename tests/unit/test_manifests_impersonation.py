"""The right to impersonate is in no overlay; components add it, for either kind of instance."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
import yaml

from kit.granted_rights import Right, rights
from kube.objects import Object

PROJECT = Path(__file__).parents[2]
ACCOUNTS = {
    "runtime": "garden/gardener-resource-manager",
    "target-cluster": "kube-system/gardener-resource-manager",
}
IMPERSONATE = Right("", "serviceaccounts", "impersonate")

needs_kubectl = pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl")


@cache
def recorded(overlay: str) -> tuple[Object, ...]:
    text = (PROJECT / "tests" / "golden" / f"{overlay}.yaml").read_text()
    return tuple(obj for obj in yaml.safe_load_all(text) if obj)


def with_component(directory: Path, overlay: str, component: str) -> list[Object]:
    here = Path(os.path.relpath(PROJECT / "manifests", directory.resolve()))
    added = {"resources": [str(here / "overlays" / overlay)], "components": [str(here / "components" / component)]}
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(added))
    command = ["kubectl", "kustomize", str(directory.resolve())]
    made = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    return [obj for obj in yaml.safe_load_all(made) if obj]


@pytest.mark.parametrize("overlay", ["runtime", "target", "target-cluster"])
def test_nobody_may_be_impersonated_unless_a_component_is_added(overlay: str) -> None:
    found = [
        rule
        for obj in recorded(overlay)
        if obj["kind"] in {"Role", "ClusterRole"}
        for rule in obj["rules"]
        if {"impersonate", "*"} & set(rule["verbs"])
    ]
    assert found == []


@needs_kubectl
@pytest.mark.parametrize("overlay", ACCOUNTS)
def test_the_component_adds_this_right_and_no_other(overlay: str, tmp_path: Path) -> None:
    account = ACCOUNTS[overlay]
    granted = rights(recorded(overlay), account)
    assert rights(with_component(tmp_path, overlay, "impersonation"), account) == granted | {IMPERSONATE}


@needs_kubectl
@pytest.mark.parametrize("overlay", ACCOUNTS)
def test_with_impersonation_only_the_agent_may_not_write_what_managed_resources_contain(
    overlay: str, tmp_path: Path
) -> None:
    account = ACCOUNTS[overlay]
    before = rights(recorded(overlay), account)
    granted = rights(with_component(tmp_path, overlay, "impersonation-only"), account)
    assert granted - before == {IMPERSONATE}
    assert {right.verb for right in granted if "*" in {right.group, right.resource}} == {"get", "list", "watch"}
    assert not any(right.verb in {"escalate", "bind"} for right in granted)
