"""Predicates let through the changes that they name, and no others."""

from typing import Any

import pytest

from kube.objects import Key, Object
from kube.runtime.cache import Change
from kube.runtime.predicates import (
    Predicate,
    all_of,
    annotation,
    any_of,
    came,
    changed,
    changed_or_listed,
    exists,
    happened,
    listed,
    now,
    updated,
    went,
)

KEY = Key("ns", "n")
A: Object = {"metadata": {"annotations": {"x.io/y": "1"}}, "spec": {"a": {"b": 1}, "c": 1}}
OTHER_B: Object = {**A, "spec": {"a": {"b": 2}, "c": 1}}
OTHER_ANNOTATION: Object = {**A, "metadata": {"annotations": {"x.io/y": "2"}}}

CHANGES: dict[str, Change[Any]] = {
    "found": Change(KEY, old=None, new=A, initial=True),
    "created": Change(KEY, old=None, new=A, initial=False),
    "deleted": Change(KEY, old=A, new=None, initial=False),
    "missing": Change(KEY, old=A, new=None, initial=True),
    "resynced": Change(KEY, old=A, new=A, initial=True),
    "equal": Change(KEY, old=A, new={**A}, initial=False),
    "b": Change(KEY, old=A, new=OTHER_B, initial=False),
    "b listed": Change(KEY, old=A, new=OTHER_B, initial=True),
    "annotation": Change(KEY, old=A, new=OTHER_ANNOTATION, initial=False),
    "not kept": Change(KEY, old=None, new=None, initial=False),
}
COMES_OR_GOES = {"found", "created", "deleted", "missing"}


def _double_b(obj: Object) -> int:
    return 2 * int(obj["spec"]["a"]["b"])


def _is_one(obj: Object) -> bool:
    return bool(obj["spec"]["a"]["b"] == 1)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (exists, CHANGES.keys() - {"deleted", "missing", "not kept"}),
        (listed, {"found", "resynced", "b listed"}),
        (happened, CHANGES.keys() - {"found", "missing", "resynced", "b listed"}),
        (came, {"found", "created"}),
        (went, {"deleted", "missing", "not kept"}),
        (updated, {"resynced", "equal", "b", "b listed", "annotation"}),
        (changed(), COMES_OR_GOES | {"b", "b listed", "annotation"}),
        (changed("spec"), COMES_OR_GOES | {"b", "b listed"}),
        (changed("spec.a.b"), COMES_OR_GOES | {"b", "b listed"}),
        (changed("spec.c", "status.a", "spec.c.d"), COMES_OR_GOES),
        (changed("spec.c", _double_b), COMES_OR_GOES | {"b", "b listed"}),
        (changed(annotation("x.io/y")), COMES_OR_GOES | {"annotation"}),
        (changed_or_listed, COMES_OR_GOES | {"resynced", "b", "b listed", "annotation"}),
        (now(_is_one), {"found", "created", "resynced", "equal", "annotation"}),
        (any_of(went, changed("spec")), COMES_OR_GOES | {"b", "b listed", "not kept"}),
        (all_of(updated, happened, changed("spec")), {"b"}),
    ],
)
def test_each_predicate_lets_its_changes_through(predicate: Predicate[Any], expected: set[str]) -> None:
    assert {name for name, change in CHANGES.items() if predicate(change)} == expected
