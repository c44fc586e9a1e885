"""What is wrong with a manifest is known before anything is applied."""

from typing import Any

import pytest

from agent.managed_resource.problems import Problem, problem_of, superseded


@pytest.mark.parametrize(
    ("manifest", "resource", "message"),
    [
        (
            {"apiVersion": "v1", "kind": "List", "metadata": {"name": "l"}, "items": []},
            "v1/List/default/l",
            'object type "/v1, Kind=List" is unsupported',
        ),
        (
            {"apiVersion": "apps/v1", "kind": "DeploymentList", "items": []},
            "apps/v1/DeploymentList/default/",
            'object type "apps/v1, Kind=DeploymentList" is unsupported',
        ),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "ns"}},
            "v1/ConfigMap/ns/",
            'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
        ),
        (
            {"apiVersion": "apps/v1", "kind": "Deployment"},
            "apps/v1/Deployment/default/",
            'Deployment.apps "" is invalid: metadata.name: Required value: name or generateName is required',
        ),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}},
            "v1/ConfigMap/default/",
            "metadata.generateName is not supported, since each pass would create a new object; set metadata.name",
        ),
        ({"kind": "A", "metadata": {"name": "n"}}, "/A/default/n", "the manifest has no apiVersion"),
        ({"apiVersion": "v1", "metadata": {"name": "n"}}, "v1//default/n", "the manifest has no kind"),
        ({}, "//default/", "the manifest has no apiVersion"),
        (
            {"apiVersion": "a/b/c", "kind": "A", "metadata": {"name": "n"}},
            "a/b/c/A/default/n",
            '"a/b/c" is no apiVersion; it must be <group>/<version>, or <version> for the core group',
        ),
    ],
)
def test_what_can_not_be_applied_is_told(manifest: dict[str, Any], resource: str, message: str) -> None:
    assert problem_of(manifest) == Problem(resource, message)


@pytest.mark.parametrize(
    "manifest",
    [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n", "generateName": "a-"}},
        {"apiVersion": "example.com/v1", "kind": "AllowList", "metadata": {"name": "n"}, "spec": {}},
    ],
)
def test_of_what_can_be_applied_there_is_nothing_to_tell(manifest: dict[str, Any]) -> None:
    assert problem_of(manifest) is None


def test_of_an_object_that_comes_twice_the_last_one_is_applied() -> None:
    a, b = (
        {"apiVersion": version, "kind": "Deployment", "metadata": {"name": "n", "namespace": "ns"}}
        for version in ("apps/v1", "apps/v1beta1")
    )
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n", "namespace": "ns"}}
    assert superseded([a, other, b, b]) == {0, 2}
