"""What holds for every kind of the garden API: an object of the right shape gets an answer, whatever its values are.

Objects are made from the schemas, with types and few else in mind, so that values are often wrong.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gardener.api.schema import Schema
from kit.webhooks.garden import Asked
from kube.objects import Object
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.registry import KINDS
from webhooks.garden.shapes import shape_of
from webhooks.generic import copied

TEXTS = st.sampled_from(
    ["", "a", "b", "local", "a--b", "x" * 70, "10.0.0.0/16", "1.30.1", "1.30", "true", "@daily", "010000+0000", "Ü", "a,b", "5m"]
)  # fmt: skip
NUMBERS = st.sampled_from([-1, 0, 1, 2, 100, 2**31])
JSON = st.recursive(st.none() | st.booleans() | NUMBERS | TEXTS, lambda inner: st.lists(inner, max_size=2))
MOST_FIELDS = 5
"""Of an object: a Shoot has hundreds."""


_made: dict[int, tuple[Schema, st.SearchStrategy[Any]]] = {}
"""By the identity of the schema: to make a strategy takes longer than to draw from it."""


def values(schema: Schema) -> st.SearchStrategy[Any]:
    if id(schema) not in _made:
        _made[id(schema)] = schema, _values(schema)
    return _made[id(schema)][1]


def _values(schema: Schema) -> st.SearchStrategy[Any]:
    if schema.get("x-kubernetes-int-or-string"):
        return NUMBERS | st.sampled_from(["1Gi", "500m", "10%", "x"])
    if schema.get("enum") and schema.get("type") == "string":
        return st.sampled_from(schema["enum"]) | TEXTS
    match schema.get("type"):
        case "object":
            return objects(schema)
        case "array":
            return st.lists(values(schema["items"]), max_size=2)
        case "string":
            return TEXTS
        case "boolean":
            return st.booleans()
        case "integer" | "number":
            return NUMBERS
        case _:
            return JSON


def objects(schema: Schema) -> st.SearchStrategy[Object]:
    properties = schema.get("properties")
    if not properties:
        inner = schema.get("additionalProperties")
        return st.dictionaries(TEXTS, values(inner) if isinstance(inner, dict) else JSON, max_size=2)
    required = set(schema.get("required", ()))
    optional = [name for name in properties if name not in required]

    @st.composite
    def some(draw: st.DrawFn) -> Object:
        chosen = draw(st.lists(st.sampled_from(optional), unique=True, max_size=MOST_FIELDS)) if optional else []
        return {name: draw(values(properties[name])) for name in properties if name in required or name in chosen}

    return some()


ANNOTATIONS = st.dictionaries(
    st.sampled_from(
        [
            "gardener.cloud/operation",
            "maintenance.gardener.cloud/operation",
            "confirmation.gardener.cloud/deletion",
            "confirmation.gardener.cloud/force-deletion",
            "shoot.gardener.cloud/tasks",
            "shoot.gardener.cloud/expiration-timestamp",
        ]
    ),
    st.sampled_from(["reconcile", "retry", "rotate-ca-start", "true", "x"]),
)


@st.composite
def of_kind(draw: st.DrawFn, kind: Kind) -> Object:
    properties = kind.definition.schema["properties"]
    fields = {
        name: draw(values(schema))
        for name, schema in properties.items()
        if name not in {"apiVersion", "kind", "metadata"}
    }
    meta: Object = {"name": draw(st.sampled_from(["x", "a--b", "garden"])), "annotations": draw(ANNOTATIONS)}
    if draw(st.booleans()):
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {**fields, "metadata": meta}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource.kind)
def test_every_object_gets_an_answer_and_what_is_stored_is_not_changed_again(kind: Kind) -> None:
    shape = shape_of(kind.definition, bounded=False)
    requested = Asked(kind)

    @settings(max_examples=40, deadline=None)
    @given(of_kind(kind), of_kind(kind))
    def check(old: Object, new: Object) -> None:
        created = requested.create(copied(new))
        shape.check(created.object)
        if created.status is None:
            again = requested.create(created.object)
            assert (again.status, again.object) == (None, created.object)
            assert requested.update(created.object, created.object).status is None
        requested.update(copied(old), copied(new))
        requested.delete(copied(old))
        requested.update_status(copied(old), copied(new))

    check()
