"""The group of a CustomResourceDefinition follows from its name."""

import pytest

from process.controllers import group_of_crd


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("widgets.example.com", "example.com"),
        ("managedresources.resources.gardener.cloud", "resources.gardener.cloud"),
        ("widgets.local", "local"),
        ("broken", ""),
    ],
)
def test_the_group_is_what_follows_the_first_dot(name: str, group: str) -> None:
    assert group_of_crd(name) == group
