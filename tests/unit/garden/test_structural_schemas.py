"""Defaults, unknown fields and findings of a schema, as the API server has them."""

from typing import Any

import pytest

from gardener.api import schema, structural
from gardener.api.garden.definitions import DEFINITIONS
from gardener.api.schema import Schema, array, integer, mapping, string, struct

INNER = struct("Inside.", {"size": integer("A size.", default=3), "name": string("A name.")})
ROOT = struct(
    "A thing.",
    {
        "spec": struct("Wanted.", {"inner": schema.but(INNER, default={}), "kind": string("A kind.", default="a")}),
        "many": array("Several.", INNER),
        "named": mapping("By name.", INNER),
        "raw": schema.raw("Somebody else's."),
    },
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"spec": {}}, {"spec": {"inner": {"size": 3}, "kind": "a"}}),
        ({"spec": {"inner": None, "kind": None}}, {"spec": {"inner": {"size": 3}, "kind": "a"}}),
        ({"spec": {"inner": {"size": 5}, "kind": ""}}, {"spec": {"inner": {"size": 5}, "kind": ""}}),
        ({"many": [{}, {"size": 1}]}, {"many": [{"size": 3}, {"size": 1}]}),
        ({"named": {"a": {}}}, {"named": {"a": {"size": 3}}}),
        ({"many": "text"}, {"many": "text"}),
        ({"raw": {"spec": {}}}, {"raw": {"spec": {}}}),
    ],
)
def test_defaults_are_filled_in_where_their_object_is(given: Any, expected: Any) -> None:
    assert structural.with_defaults(ROOT, given) == expected


def test_filling_in_defaults_changes_neither_the_object_nor_the_schema() -> None:
    given: Any = {"spec": {}, "many": [{}]}
    first = structural.with_defaults(ROOT, given)
    first["spec"]["inner"]["size"] = 7
    assert given == {"spec": {}, "many": [{}]}
    assert structural.with_defaults(ROOT, given)["spec"]["inner"]["size"] == 3


def test_fields_that_would_not_be_stored_are_reported() -> None:
    given = {
        "apiVersion": "v1",
        "metadata": {"name": "x", "color": "red"},
        "spec": {"kind": "a", "size": 1},
        "many": [{"size": 1}, {"colour": 1}],
        "named": {"any": {"other": 1}},
        "raw": {"all": {"is": "kept"}},
    }
    assert structural.unknown_fields(ROOT, given) == ["spec.size", "many[1].colour", "named.any.other"]


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        (string("A.", enum=["x", "y"]), "z", 'Unsupported value: "z": supported values: "x", "y"'),
        (string("A.", at_most=2), "abc", "Too long: may not be more than 2 bytes"),
        (string("A.", at_least=1), "", 'Invalid value: "": f in body should be at least 1 chars long'),
        (string("A.", pattern="^a$"), "b", "Invalid value: \"b\": f in body should match '^a$'"),
        (string("A.", pattern="^a$"), "a\n", "Invalid value: \"a\\n\": f in body should match '^a$'"),
        (string("A."), 3, 'Invalid value: "integer": f in body must be of type string: "integer"'),
        (string("A."), None, 'Invalid value: "null": f in body must be of type string: "null"'),
        (integer("A."), "3", 'Invalid value: "string": f in body must be of type integer: "string"'),
        (integer("A."), True, 'Invalid value: "": f in body must be of type int32: ""'),
        (integer("A.", at_most=2), 3, "Invalid value: 3: f in body should be less than or equal to 2"),
        (integer("A.", at_least=2), 1, "Invalid value: 1: f in body should be greater than or equal to 2"),
        (schema.strings("A.", at_most=1), ["a", "b"], "Too many: 2: must have at most 1 item"),
        (schema.strings("A.", at_least=1), [], "Invalid value: 0: f in body should have at least 1 items"),
        (schema.time("A."), "soon", 'Invalid value: "soon": f in body must be of type date-time: "soon"'),
        (INNER, [], 'Invalid value: "array": f in body must be of type object: "array"'),
    ],
)
def test_findings_are_worded_as_the_api_server_words_them(field: Schema, value: Any, expected: str) -> None:
    found = structural.errors(struct("A thing.", {"f": field}), {"f": value})
    assert [error.body for error in found if error.path == "f"] == [expected]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (integer("A."), 3.0),
        (schema.number("A."), 3),
        (schema.quantity("A."), "10Gi"),
        (schema.quantity("A."), 3),
        (schema.time("A."), "2026-01-02T03:04:05.678Z"),
        (schema.duration("A."), "1h30m"),
        (schema.anything("A."), [1, {"a": None}]),
        (schema.raw("A."), {"a": [1]}),
    ],
)
def test_what_fits_has_no_findings(field: Schema, value: Any) -> None:
    assert structural.errors(struct("A thing.", {"f": field}), {"f": value}) == []


def test_what_is_neither_a_number_nor_a_text_is_no_quantity() -> None:
    found = structural.errors(struct("A thing.", {"f": schema.quantity("A.")}), {"f": 2.5})
    assert list(map(str, found)) == [
        'f: Invalid value: "number": f in body must be of type integer,string: "number"',
        '<nil>: Invalid value: "": "f" must validate at least one schema (anyOf)',
        'f: Invalid value: "number": f in body must be of type integer: "number"',
        '<nil>: Invalid value: "": Checked value must be of type integer (default format) in f',
    ]


def test_what_is_missing_is_named_with_its_path() -> None:
    root = struct("A thing.", {"many": array("Several.", struct("One.", {"name*": string("Its name.")}))})
    assert str(next(iter(structural.errors(root, {"many": [{}]})))) == "many[0].name: Required value"


def test_entries_of_a_list_with_a_key_and_of_a_set_stand_there_once() -> None:
    root = struct(
        "A thing.",
        {
            "many": array("Several.", struct("One.", {"name*": string("Its name.")}), key="name"),
            "texts": schema.strings("Texts.", unique=True),
        },
    )
    found = structural.errors(root, {"many": [{"name": "a"}, {"name": "b"}, {"name": "a"}], "texts": ["x", "x"]})
    assert list(map(str, found)) == ['many[2]: Duplicate value: {"name":"a"}', 'texts[1]: Duplicate value: "x"']


IMMUTABLE = struct(
    "A thing.",
    {"spec": struct("Wanted.", {"region": string("Where."), "namespace": string("Its namespace.")},
        rules=[schema.immutable("region"), schema.immutable_once_set("namespace")])},
)  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, {"region": "a"}, []),
        ({"region": "a"}, {"region": "a", "namespace": "n"}, []),
        ({"region": "a"}, {"region": "b"}, ["spec.region: Invalid value: field is immutable"]),
        ({"region": "a"}, {}, ["spec.region: Invalid value: field is immutable"]),
        ({}, {"region": "a"}, ["spec.region: Invalid value: field is immutable"]),
        ({"namespace": "n"}, {"namespace": "m"}, ["spec.namespace: Invalid value: field is immutable"]),
    ],
)
def test_rules_look_at_the_change(old: Any, new: Any, expected: list[str]) -> None:
    found = structural.errors(IMMUTABLE, {"spec": new}, old=None if old is None else {"spec": old})
    assert list(map(str, found)) == expected


def test_rules_are_not_looked_at_while_a_value_is_missing() -> None:
    root = schema.with_fields(IMMUTABLE, {"kind*": string("Needed.")})
    found = structural.errors(root, {"spec": {"region": "b"}}, old={"spec": {"region": "a"}})
    assert [error.path for error in found] == ["kind", "<nil>"]


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda one: one.resource.kind)
def test_all_rules_can_be_compiled_offline(definition: Any) -> None:
    from gardener.api.expressions import compiled

    def rules(schema: Schema) -> list[str]:
        own = [rule["rule"] for rule in schema.get("x-kubernetes-validations", ())]
        below = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
        return own + [rule for inner in below if isinstance(inner, dict) for rule in rules(inner)]

    for rule in rules(definition.schema):
        compiled(rule)
