"""A seed serves the kinds that a gardenlet (v1.104.3) defined: equal names, scopes, versions, labels and annotations.

What the original's webhook admitted, the schemas admit, but for what its own definitions would have refused.
"""

import gzip
import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import yaml

from gardener.api import structural
from gardener.api.seed_definitions import DEFINITIONS, Stage, custom_resource_definitions
from kube.objects import Object

RECORDED = Path(__file__).parent / "gardenlet" / "definitions.yaml"
REQUESTS = Path(__file__).parent / "admission.jsonl.gz"
NOWHERE = "<nil>"
"""Path of the remark that other rules were not checked."""
REFUSED = {"Bastion": {"spec.ingress[1].ipBlock", "spec.ingress[2].ipBlock"}}
"""Paths that the original's definitions require, too."""


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


def admitted() -> Iterator[Object]:
    """Objects of extensions' kinds that the original's webhook admitted."""
    with gzip.open(REQUESTS, "rt") as lines:
        for case in map(json.loads, lines):
            if isinstance(case, dict) and case.get("webhook") == "extension-validation":
                obj = case["review"]["request"].get("object")
                if obj and case["expect"]["newest"]["allowed"]:
                    yield obj


def test_what_the_webhook_of_the_original_admitted_fits_the_schemas() -> None:
    schemas = {one.resource.kind: one.schema for one in chain.from_iterable(DEFINITIONS.values())}
    found: dict[str, set[str]] = {}
    checked = 0
    for obj in admitted():
        if schema := schemas.get(obj.get("kind", "")):
            checked += 1
            assert structural.unknown_fields(schema, obj) == []
            for error in structural.errors(schema, obj):
                if error.path != NOWHERE:
                    found.setdefault(obj["kind"], set()).add(error.path)
    assert checked > 40
    assert found == REFUSED
