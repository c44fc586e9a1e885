"""What is wrong with a manifest is known before anything is applied."""

from typing import Any

import pytest

from gardener.managed_resource.problems import problem_of, superseded
from gardener.managed_resource.references import resource_string
from kit.objects import config_map, obj

NAMELESS = "metadata.name: Required value: name or generateName is required"
GENERATED = "metadata.generateName is not supported, since each pass would create a new object; set metadata.name"
NO_VERSION = '"a/b/c" is no apiVersion; it must be <group>/<version>, or <version> for the core group'


@pytest.mark.parametrize(
    ("manifest", "resource", "message"),
    [
        (obj("v1 List", "l", items=[]), "v1/List/default/l", 'object type "/v1, Kind=List" is unsupported'),
        (
            *(obj("apps/v1 DeploymentList", items=[]), "apps/v1/DeploymentList/default/"),
            'object type "apps/v1, Kind=DeploymentList" is unsupported',
        ),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "ns"}},
            *("v1/ConfigMap/ns/", f'ConfigMap "" is invalid: {NAMELESS}'),
        ),
        (
            {"apiVersion": "apps/v1", "kind": "Deployment"},
            *("apps/v1/Deployment/default/", f'Deployment.apps "" is invalid: {NAMELESS}'),
        ),
        (config_map(generateName="a-"), "v1/ConfigMap/default/", GENERATED),
        ({"kind": "A", "metadata": {"name": "n"}}, "/A/default/n", "the manifest has no apiVersion"),
        ({"apiVersion": "v1", "metadata": {"name": "n"}}, "v1//default/n", "the manifest has no kind"),
        ({}, "//default/", "the manifest has no apiVersion"),
        (obj("a/b/c A", "n"), "a/b/c/A/default/n", NO_VERSION),
    ],
)
def test_what_can_not_be_applied_is_told(manifest: dict[str, Any], resource: str, message: str) -> None:
    assert (resource_string(manifest), problem_of(manifest)) == (resource, message)


@pytest.mark.parametrize(
    "manifest", [config_map("n"), config_map("n", generateName="a-"), obj("example.com/v1 AllowList", "n", spec={})]
)
def test_of_what_can_be_applied_there_is_nothing_to_tell(manifest: dict[str, Any]) -> None:
    assert problem_of(manifest) == ""


def test_of_an_object_that_comes_twice_the_last_one_is_applied() -> None:
    a, b = (obj(f"apps/{version} Deployment", "ns/n") for version in ("v1", "v1beta1"))
    assert superseded([a, config_map("ns/n"), b, b]) == {0, 2}
