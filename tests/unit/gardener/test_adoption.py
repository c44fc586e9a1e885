"""Which objects that exist without an owner are taken over."""

import pytest

from gardener.managed_resource.adoption import adoption_problem
from kit.objects import config_map

ADOPT = "resources.gardener.cloud/adopt"
REMEDY = "; give the object another name, delete the one that exists, or remove the annotation"
REFUSED = f'object "v1/ConfigMap/ns/c" exists without an owner and is not taken over: the annotation {ADOPT} of the '


@pytest.mark.parametrize(
    ("of_object", "of_managed_resource", "problem"),
    [
        ("", "", ""),
        ("never", "", 'object is "never"'),
        ("", "never", 'ManagedResource is "never"'),
        ("never", "never", 'object is "never"'),
        ("nevr", "", 'object is "nevr"; only "never" is valid'),
        ("", "false", 'ManagedResource is "false"; only "never" is valid'),
    ],
)
def test_an_annotation_of_either_refuses_it(of_object: str, of_managed_resource: str, problem: str) -> None:
    manifest = config_map("c", annotations={ADOPT: of_object} if of_object else {})
    found = adoption_problem(manifest, resource="v1/ConfigMap/ns/c", of_managed_resource=of_managed_resource)
    assert found == (f"{REFUSED}{problem}{REMEDY}" if problem else "")
