"""A seed serves the kinds that a gardenlet (v1.104.3) defined: equal names, scopes, versions, labels and annotations.

It also serves kinds of v1.149.3 that extensions of today bring or need.

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

DIRECTORY = Path(__file__).parent / "gardenlet"
RECORDED: list[Object] = yaml.safe_load((DIRECTORY / "definitions.yaml").read_text())
NEWER: list[Object] = yaml.safe_load((DIRECTORY / "definitions-1.149.yaml").read_text())
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


def names(definition: Object) -> Object:
    """Names, scope and subresources, as discovery has them."""
    spec = definition["spec"]
    return {
        "name": definition["metadata"]["name"],
        "kind": spec["names"]["kind"],
        "scope": spec["scope"],
        **({"shortNames": short} if (short := spec["names"].get("shortNames")) else {}),
        "versions": [version["name"] for version in spec["versions"]],
        **({"subresources": list(found)} if (found := spec["versions"][0].get("subresources")) else {}),
    }


def made() -> dict[str, Object]:
    found = chain.from_iterable(custom_resource_definitions(stage) for stage in Stage)
    return {one["metadata"]["name"]: one for one in sorted(found, key=lambda one: str(one["metadata"]["name"]))}


def test_definitions_are_called_and_labelled_as_recorded() -> None:
    newer = {one["name"] for one in NEWER} - {one["name"] for one in RECORDED}
    assert [summary(one) for name, one in made().items() if name not in newer] == RECORDED


def test_definitions_of_newer_kinds_are_called_as_recorded() -> None:
    assert [names(made()[one["name"]]) for one in NEWER] == NEWER


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
