"""Fields that are left to others: what the annotation states, and what becomes of them in a merge."""

from typing import Any

import pytest

from gardener.managed_resource.ignored_fields import (
    MOST_POINTERS,
    MOST_RULES,
    IgnoredFields,
    Pointer,
    digest_of,
    with_live_fields,
)
from gardener.managed_resource.merge import merge
from gardener.managed_resource.messages import refusal_message
from kit.objects import managed_resource, reference
from kube.objects import Object

ANNOTATION = "resources.gardener.cloud/ignore-differences"


def fields(text: str) -> IgnoredFields:
    return IgnoredFields.of(managed_resource("garden/mr", annotations={ANNOTATION: text}))


RULES = """
- group: apps
  kind: Deployment
  name: web
  jsonPointers: [/spec/replicas, /metadata/annotations/a.b~1c~0d]
- {kind: ConfigMap, namespace: shop, jsonPointers: [/data]}
"""
REPLICAS, NOTE, DATA = ("spec", "replicas"), ("metadata", "annotations", "a.b/c~d"), ("data",)


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("apps/v1 Deployment", "any/web", (REPLICAS, NOTE)),
        ("apps/v1beta2 Deployment", "shop/web", (REPLICAS, NOTE)),
        ("apps/v1 Deployment", "shop/other", ()),
        ("extensions/v1beta1 Deployment", "shop/web", ()),
        ("apps/v1 StatefulSet", "shop/web", ()),
        ("v1 ConfigMap", "shop/any", (DATA,)),
        ("v1 ConfigMap", "other/any", ()),
    ],
)
def test_of_which_objects(kind: str, name: str, expected: tuple[Pointer, ...]) -> None:
    found = fields(RULES)
    assert found.problems == ()
    assert found.pointers(reference(kind, name)) == expected


@pytest.mark.parametrize("text", ["", "  \n", "[]"])
def test_it_may_be_empty(text: str) -> None:
    assert fields(text) == IgnoredFields()


def test_json_will_do() -> None:
    text = '[{"group": "apps", "kind": "Deployment", "name": "web", "jsonPointers": ["/spec/replicas"]}]'
    assert fields(text).pointers(reference("apps/v1 Deployment", "n/web")) == (REPLICAS,)


def one(pointers: str, more: str = "") -> str:
    return f"[{{kind: ConfigMap, jsonPointers: {pointers}{more}}}]"


@pytest.mark.parametrize(
    ("text", "path", "problem"),
    [
        ("[", "", "must be a list in YAML or JSON: line"),
        ("kind: ConfigMap", "", "must be a list of rules"),
        ("[x]", "[0]", "must be a rule with `kind` and `jsonPointers`"),
        ("[{jsonPointers: [/data]}]", "[0].kind", "the kind of the objects, such as Deployment"),
        ("[{kind: 1, jsonPointers: [/data]}]", "[0].kind", "must be a string"),
        ("[{kind: C, group: apps/v1, jsonPointers: [/data]}]", "[0].group", "must be without version"),
        ("[{kind: ConfigMap}]", "[0].jsonPointers", "a list of JSON pointers, such as /spec/replicas"),
        (one("/data"), "[0].jsonPointers", "a list of JSON pointers"),
        (one("[/data]", ", jqPathExpressions: [.spec]"), "[0].jqPathExpressions", "supported values:"),
        (one("[/data, spec.replicas]"), "[0].jsonPointers[1]", "must be a JSON pointer to a field, such as"),
        (one("['']"), "[0].jsonPointers[0]", "must be a JSON pointer"),
        (one("[/]"), "[0].jsonPointers[0]", "must be a JSON pointer"),
        (one("[1]"), "[0].jsonPointers[0]", "must be a JSON pointer"),
        (one("[/data/a~b]"), "[0].jsonPointers[0]", "write ~0 for a ~ in a name, ~1 for a /"),
        (one("[/data//a]"), "[0].jsonPointers[0]", "may not have empty steps"),
        (one(f"[/data/{'x' * 1100}]"), "[0].jsonPointers[0]", "may have at most 1024 characters"),
        (one("[/kind]"), "[0].jsonPointers[0]", "identifies the object"),
        (one("[/status/replicas]"), "[0].jsonPointers[0]", "is never written; remove the pointer"),
        (one("[/metadata/labels]"), "[0].jsonPointers[0]", "only single labels and annotations"),
        (one("[/metadata/finalizers/0]"), "[0].jsonPointers[0]", "only single labels and annotations"),
        (
            one("[/metadata/annotations/resources.gardener.cloud~1origin]"),
            "[0].jsonPointers[0]",
            "is an instruction to the agent",
        ),
        (
            str([{"kind": "C", "jsonPointers": ["/a"]}] * (MOST_RULES + 1)),
            "",
            f"at most {MOST_RULES} rules are allowed",
        ),
        (
            one(str([f"/{n}" for n in range(MOST_POINTERS + 1)])),
            "[0].jsonPointers",
            f"at most {MOST_POINTERS} pointers are allowed",
        ),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(text: str, path: str, problem: str) -> None:
    (found,) = fields(text).problems
    assert str(found).startswith(f"metadata.annotations[{ANNOTATION}]{path}: ")
    assert problem in str(found)
    assert len(str(found)) < 500


def spec(value: Any) -> Object:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": value}


@pytest.mark.parametrize(
    ("pointer", "wanted", "live", "expected"),
    [
        ("/spec/replicas", {"replicas": 1}, {"replicas": 5}, {"replicas": 5}),
        # Others may take it away, or set what the manifest lacks.
        ("/spec/replicas", {"replicas": 1, "x": 1}, {"x": 1}, {"x": 1}),
        ("/spec/replicas", {}, {"replicas": 5}, {"replicas": 5}),
        ("/spec/replicas", {}, {}, {}),
        ("/spec/a/b", {}, {"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}),
        ("/spec/a/b", {"a": {"b": 1}}, {}, {}),
        ("/spec/a/b", {"a": {"b": 1, "c": 2}}, {}, {"a": {"c": 2}}),
        ("/spec/a/b", {"a": {"b": 1}}, {"a": {}}, {"a": {}}),
        ("/spec/a/b", {"a": {}}, {}, {"a": {}}),
        ("/spec/a/b", {"a": None}, {"a": {"b": 1}}, {"a": None}),
        ("/spec/a", {"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"c": 2}}),
        # Items of lists are those at the same place.
        ("/spec/l/0/b", {"l": [{"b": 1}, {"b": 2}]}, {"l": [{"b": 8}, {"b": 9}]}, {"l": [{"b": 8}, {"b": 2}]}),
        ("/spec/l/1", {"l": [1, 2]}, {"l": [8, 9]}, {"l": [1, 9]}),
        ("/spec/l/1/b", {"l": [{"b": 1}, {"b": 2}]}, {"l": [{"b": 8}]}, {"l": [{"b": 1}, {"b": 2}]}),
        ("/spec/l/0", {"l": []}, {"l": [1]}, {"l": []}),
        *((f"/spec/l/{step}", {"l": [1]}, {"l": [2]}, {"l": [1]}) for step in ("-", "x", "00", "-1", "9" * 50)),
        # What differs in kind is the manifest's.
        ("/spec/a/b", {"a": [1]}, {"a": {"b": 1}}, {"a": [1]}),
        ("/spec/a/b", {"a": 1}, {"a": {"b": 1}}, {"a": 1}),
    ],
)
def test_fields_are_those_of_the_live_object(pointer: str, wanted: Any, live: Any, expected: Any) -> None:
    before = repr(spec(wanted))
    manifest = spec(wanted)
    assert with_live_fields(manifest, spec(live), [tuple(pointer[1:].split("/"))]) == spec(expected)
    assert repr(manifest) == before, "arguments are not changed"


@pytest.mark.parametrize("pointer", [("data", "k"), ("stringData", "k")])
def test_of_a_secret_both_ways_to_write_it_are_meant(pointer: Pointer) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret"}
    wanted = {**secret, "stringData": {"k": "ours", "other": "x"}}
    live = {**secret, "data": {"k": "dGhlaXJz", "other": "eA=="}}
    expected = {**secret, "stringData": {"other": "x"}, "data": {"k": "dGhlaXJz"}}
    assert with_live_fields(wanted, live, [pointer]) == expected


def test_it_is_set_at_creation_and_kept_later() -> None:
    manifest = spec({"replicas": 1, "paused": False})
    assert merge(manifest, None, origin="n/mr", ignored=[REPLICAS])["spec"] == {"replicas": 1, "paused": False}
    live = {**spec({"replicas": 5, "paused": True}), "metadata": {"name": "d", "annotations": {"a.b/c~d": "theirs"}}}
    noted = {**manifest, "metadata": {"name": "d", "annotations": {"a.b/c~d": "ours"}}}
    merged = merge(noted, live, origin="n/mr", ignored=[REPLICAS, NOTE])
    assert merged["spec"] == {"replicas": 5, "paused": False}
    assert merged["metadata"]["annotations"]["a.b/c~d"] == "theirs"


def test_other_pointers_make_another_fingerprint() -> None:
    assert digest_of([]) == b""
    assert digest_of([REPLICAS]) == digest_of([REPLICAS]) != digest_of([DATA])
    assert digest_of([("a", "b")]) != digest_of([("a",), ("b",)])


def test_many_mistakes_fit_into_a_condition() -> None:
    pointers = [f"{number}{'x' * 100}" for number in range(MOST_POINTERS)]
    found = fields(str([{"kind": "C", "jsonPointers": pointers}] * MOST_RULES)).problems
    assert len(found) == MOST_RULES * MOST_POINTERS
    assert len(refusal_message(found)) < 17_000
