"""Whatever JSON comes: an answer, and defaults that stay as they are."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gardener.api import structural
from gardener.api.definition import Definition
from gardener.api.garden.definitions import DEFINITIONS
from gardener.api.schema import Schema

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)

each = pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda one: one.resource.kind)


def shaped(schema: Schema) -> st.SearchStrategy[Any]:
    """Values that are mostly of the shape of the schema."""
    fits: st.SearchStrategy[Any] = SCALARS
    if properties := schema.get("properties"):
        fits = st.deferred(
            lambda: st.lists(st.sampled_from(sorted(properties)), unique=True, max_size=4).flatmap(
                lambda fields: st.fixed_dictionaries({field: shaped(properties[field]) for field in fields})
            )
        )
    elif isinstance(values := schema.get("additionalProperties"), dict):
        fits = st.deferred(lambda: st.dictionaries(st.text(max_size=5), shaped(values), max_size=3))
    elif items := schema.get("items"):
        fits = st.deferred(lambda: st.lists(shaped(items), max_size=3))
    elif choices := schema.get("enum"):
        fits = st.sampled_from(choices) | SCALARS
    return fits | JSON


@each
@settings(max_examples=15)
@given(data=st.data())
def test_any_json_gets_an_answer(definition: Definition, data: st.DataObject) -> None:
    schema = definition.schema
    old, new = data.draw(shaped(schema)), data.draw(shaped(schema))
    filled = structural.pruned(schema, structural.with_defaults(schema, new))
    assert all(str(error) for error in structural.errors(schema, filled, old=old))


@each
@settings(max_examples=15)
@given(data=st.data())
def test_defaults_are_filled_in_once(definition: Definition, data: st.DataObject) -> None:
    schema = definition.schema
    once = structural.with_defaults(schema, data.draw(shaped(schema)))
    assert structural.with_defaults(schema, once) == once


@each
@settings(max_examples=15)
@given(data=st.data())
def test_what_is_pruned_has_no_unknown_fields(definition: Definition, data: st.DataObject) -> None:
    schema = definition.schema
    value = structural.pruned(schema, data.draw(shaped(schema)))
    assert structural.pruned(schema, value) == value
    assert not isinstance(value, dict) or structural.unknown_fields(schema, value) == []
