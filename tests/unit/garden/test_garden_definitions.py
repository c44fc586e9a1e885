"""The CustomResourceDefinitions of the garden API: complete, within limits, and equal to the files in the repository."""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from gardener.api import definition as definitions
from gardener.api import garden
from gardener.api.definition import Definition, custom_resource_definition
from gardener.api.garden.definitions import DEFINITIONS
from gardener.api.schema import Schema
from gardener.api.seed_definitions import DEFINITIONS as DEFINITIONS_OF_SEEDS
from kit.wording import problems
from kube.objects import Object
from kube.resources import Resource

FILES = Path(__file__).parents[3] / "manifests" / "crds" / "garden"
LARGEST = 1 << 20
"""Bytes of a definition; etcd takes 1.5 MiB in one request."""

each = pytest.mark.parametrize(
    "definition", [*DEFINITIONS, *chain.from_iterable(DEFINITIONS_OF_SEEDS.values())], ids=lambda one: one.resource.kind
)


def schemas(definition: Definition) -> Iterator[tuple[str, Schema]]:
    for version in custom_resource_definition(definition)["spec"]["versions"]:
        root = version["schema"]["openAPIV3Schema"]
        for field, inner in root["properties"].items():
            if field != "metadata":
                yield from below(f"{version['name']} {field}", inner)


def below(path: str, schema: Schema) -> Iterator[tuple[str, Schema]]:
    yield path, schema
    for field, inner in schema.get("properties", {}).items():
        yield from below(f"{path}.{field}", inner)
    for word in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(word), dict):
            yield from below(f"{path}[]", inner)


def test_the_files_are_what_the_descriptions_make() -> None:
    found = {path.name: path.read_text() for path in FILES.iterdir()}
    assert found == definitions.files(DEFINITIONS), "run: make crds"


def test_each_kind_that_has_a_name_is_described() -> None:
    named = {each for each in vars(garden).values() if isinstance(each, Resource)}
    assert named == {one.resource for one in DEFINITIONS}


@each
def test_each_field_has_a_description_that_is_a_sentence(definition: Definition) -> None:
    described = {path: str(schema.get("description", "")) for path, schema in schemas(definition) if path[-1] != "]"}
    assert not [path for path, text in described.items() if not text.endswith((".", "?"))]


@each
def test_a_description_states_more_than_the_name_of_its_field(definition: Definition) -> None:
    described = {path: str(schema.get("description", "")) for path, schema in schemas(definition) if path[-1] != "]"}
    poor = {path: text for path, text in described.items() if not re.match(r"\S+ \S+", text)}
    assert poor == {}


@each
def test_a_description_has_plain_words(definition: Definition) -> None:
    described = {path: str(schema.get("description", "")) for path, schema in schemas(definition)}
    vague = re.compile(r"(Its|Their|Those|The same) ")
    found = {path: [*problems(text), *vague.findall(text[:9])] for path, text in described.items()}
    assert {path: each for path, each in found.items() if each} == {}


UNITS = {"Seconds": "second", "Minutes": "minute", "Days": "day", "Percent": "percent"}


@each
def test_a_description_names_the_unit(definition: Definition) -> None:
    for path, schema in schemas(definition):
        unit = next((unit for suffix, unit in UNITS.items() if path.endswith(suffix)), "")
        assert unit in schema.get("description", "").lower(), path


@each
def test_defaults_are_in_the_descriptions(definition: Definition) -> None:
    with_default = [(path, schema) for path, schema in schemas(definition) if schema.get("default") not in (None, {})]
    untold = [path for path, schema in with_default if "Default: " not in schema.get("description", "")]
    assert not untold


@each
def test_what_is_defaulted_has_the_value_in_its_description(definition: Definition) -> None:
    for path, schema in schemas(definition):
        default, description = schema.get("default"), schema.get("description", "")
        if isinstance(default, str | int | float):
            written = str(default).lower() if isinstance(default, bool) else str(default)
            assert f"Default: {written}" in description, path


@each
def test_only_lists_with_bounds_have_rules_in_them(definition: Definition) -> None:
    for path, schema in schemas(definition):
        if schema.get("type") == "array" and any("x-kubernetes-validations" in s for _, s in below(path, schema)):
            assert "maxItems" in schema, path


@each
def test_keys_of_lists_are_required(definition: Definition) -> None:
    for path, schema in schemas(definition):
        for key in schema.get("x-kubernetes-list-map-keys", ()):
            assert key in schema["items"]["required"], path


@each
def test_rules_name_fields_that_are_there(definition: Definition) -> None:
    for path, schema in schemas(definition):
        for rule in schema.get("x-kubernetes-validations", ()):
            inner = schema
            for step in filter(None, rule.get("fieldPath", "").split(".")):
                assert step in inner["properties"], f"{path}: {rule}"
                inner = inner["properties"][step]


@each
def test_paths_of_columns_and_selectors_are_in_the_schema(definition: Definition) -> None:
    for version in custom_resource_definition(definition)["spec"]["versions"]:
        root = version["schema"]["openAPIV3Schema"]
        columns = version.get("additionalPrinterColumns", ()), version.get("selectableFields", ())
        for path in (entry["jsonPath"] for entries in columns for entry in entries):
            assert path.startswith(".metadata") or described(root, path), path


def described(schema: Schema, path: str) -> bool:
    for step in path.split("[", maxsplit=1)[0].strip(".").split("."):
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            return True
        inner: Any = schema.get("properties", {}).get(step)
        if inner is None:
            return False
        schema = inner
    return True


@each
def test_a_definition_is_small_enough_to_be_stored(definition: Definition) -> None:
    assert len(definitions.text(custom_resource_definition(definition))) < LARGEST


@each
def test_a_kind_with_a_status_has_the_subresource(definition: Definition) -> None:
    stored: Object = custom_resource_definition(definition)["spec"]["versions"][0]
    assert ("status" in stored.get("subresources", {})) == ("status" in definition.fields)
