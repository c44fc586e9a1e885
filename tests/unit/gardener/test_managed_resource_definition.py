"""The definition that programs install is the one that people do."""

from pathlib import Path

import yaml

from gardener.api.kinds import DEFINITION, MANAGED_RESOURCES
from gardener.api.managed_resource import custom_resource_definition


def test_the_definition_in_the_package_is_that_of_the_manifests() -> None:
    file = Path(__file__).parents[3] / DEFINITION
    assert custom_resource_definition() == yaml.safe_load(file.read_bytes())
    assert custom_resource_definition()["spec"]["names"]["plural"] == MANAGED_RESOURCES.plural
