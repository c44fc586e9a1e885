"""Whatever the manifests let a program write has a crash test: no write is added without one."""

from pathlib import Path

import pytest
import yaml

from devcluster.testing.faults import Request
from kit.crash import (
    scenes_alone,
    scenes_managed,
    scenes_of_a_cluster,
    scenes_of_a_garden,
    scenes_of_a_gardenlet,
    scenes_of_agents,
    scenes_of_projects,
    scenes_of_seed_autoscalers,
    scenes_of_seed_sets,
    scenes_of_shoots,
    scenes_of_the_scheduler,
)
from kit.crash.sweep import Scene, right, write_of
from kit.granted_rights import Right, rights
from kube.objects import key

GOLDEN = Path(__file__).parents[1] / "golden"
SCENES: list[type[Scene]] = [
    *scenes_managed.SCENES,
    *scenes_of_agents.SCENES,
    *scenes_alone.SCENES,
    *scenes_of_a_cluster.SCENES,
    *scenes_of_a_garden.SCENES,
    *scenes_of_projects.SCENES,
    *scenes_of_seed_sets.SCENES,
    *scenes_of_seed_autoscalers.SCENES,
    *scenes_of_shoots.SCENES,
    *scenes_of_the_scheduler.SCENES,
    *scenes_of_a_gardenlet.SCENES,
]
CROSSED = {each for scene in SCENES for each in scene.crosses}
OWN = "resources.gardener.cloud"
OF_FLOWS = "gardenlet.yaml"
"""Tasks of flows write as one function does, whatever the kind, and each pass of a flow starts from the top."""
WRITES = {"create", "update", "patch", "delete", "deletecollection"}
NOTHING_IS_WRITTEN = {"subjectaccessreviews", "tokenreviews", "shoots/binding"}
"""To `update` the last is what the webhooks ask for if a new Shoot names its Seed; there is no such request."""


def granted() -> set[Right]:
    """What ServiceAccounts of all overlays may write, whatever the name."""
    found: set[Right] = set()
    for file in (each for each in GOLDEN.glob("*.yaml") if each.name != OF_FLOWS):
        objects = [obj for obj in yaml.load_all(file.read_text(), yaml.CSafeLoader) if obj]
        for account in (obj for obj in objects if obj["kind"] == "ServiceAccount"):
            found |= {Right(each.group, each.resource, each.verb) for each in rights(objects, str(key(account)))}
    # The target cluster's ServiceAccounts are bound in a manifest of their own.
    return {each for each in found if each.verb in WRITES and each.resource not in NOTHING_IS_WRITTEN}


def test_every_write_that_is_granted_is_crossed_by_a_scene() -> None:
    exact = {each for each in granted() if each.resource != "*"}
    assert len(exact) > 20
    assert sorted(exact - CROSSED) == []


def test_whatever_managed_resources_contain_is_written_in_every_way_that_is_granted() -> None:
    wild = {each.verb for each in granted() if each.resource == "*"}
    assert wild == {"create", "update", "patch", "delete"}
    assert wild <= {each.verb for each in CROSSED - granted()}


def test_no_scene_has_the_name_of_another() -> None:
    assert len({scene.__name__ for scene in SCENES}) == len(SCENES)


@pytest.mark.parametrize(
    ("method", "path", "written"),
    [
        ("POST", "/api/v1/namespaces/n/configmaps", "create configmaps"),
        ("PUT", "/api/v1/namespaces/n/configmaps/c", "update configmaps"),
        ("POST", "/api/v1/namespaces/n/serviceaccounts/s/token", "create serviceaccounts/token"),
        ("DELETE", "/apis/apps/v1/namespaces/n/deployments/d", "delete deployments.apps"),
        ("DELETE", "/api/v1/namespaces/n/persistentvolumeclaims", "deletecollection persistentvolumeclaims"),
        ("PATCH", "/api/v1/nodes/n", "patch nodes"),
        ("DELETE", "/api/v1/namespaces/n", "delete namespaces"),
        ("PUT", "/api/v1/namespaces/n/finalize", "update namespaces/finalize"),
        (
            "PATCH",
            f"/apis/{OWN}/v1alpha1/namespaces/n/managedresources/m/status",
            f"patch managedresources/status.{OWN}",
        ),
    ],
)
def test_a_request_is_known_by_what_it_writes(method: str, path: str, written: str) -> None:
    found = write_of(Request(method=method, path=path))
    assert found == right(written)
    assert str(found).replace(".", "") == written.replace(".", "")


@pytest.mark.parametrize(
    ("method", "path", "query"),
    [
        ("GET", "/api/v1/namespaces/n/configmaps/c", ""),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", ""),
        ("POST", "/api/v1/namespaces/n/configmaps", "fieldManager=m&dryRun=All"),
        ("POST", "/version", ""),
    ],
)
def test_what_writes_nothing_is_none(method: str, path: str, query: str) -> None:
    assert write_of(Request(method=method, path=path, query=query)) is None
