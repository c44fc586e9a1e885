"""A seed serves the kinds that a gardenlet (v1.104.3) defined: equal names, scopes, versions, labels and annotations."""

from itertools import chain
from pathlib import Path

import yaml

from gardener.api.seed_definitions import Stage, custom_resource_definitions
from kube.objects import Object

RECORDED = Path(__file__).parent / "gardenlet" / "definitions.yaml"


def summary(definition: Object) -> Object:
    metadata, spec = definition["metadata"], definition["spec"]
    return {
        "name": metadata["name"],
        "scope": spec["scope"],
        "versions": sorted(version["name"] for version in spec["versions"] if version["served"]),
        **{field: metadata[field] for field in ("labels", "annotations") if field in metadata},
    }


def test_definitions_are_called_and_labelled_as_recorded() -> None:
    made = chain.from_iterable(custom_resource_definitions(stage) for stage in Stage)
    assert sorted(map(summary, made), key=lambda one: str(one["name"])) == yaml.safe_load(RECORDED.read_text())
