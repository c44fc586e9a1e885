"""What differs between two objects, and that nobody sees what is secret."""

from typing import Any

import pytest

from kubectl_mr.changes import changes, described
from kubectl_mr.style import rendered


def told(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [rendered(line, colors=False).strip() for change in changes(before, after) for line in described(change)]


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["a", "- 1", "+ 2"]),
        ({"a": 1}, {"a": True}, ["a", "- 1", "+ true"]),
        ({"a": None}, {}, ["a", "- null"]),
        ({}, {"a": {"b": "c"}}, ["a", "+ b: c"]),
        ({"a": []}, {"a": ["x"]}, ["a[0]", "+ x"]),
        ({"a": {"b.c/d": "x"}}, {"a": {"b.c/d": "y"}}, ['a.["b.c/d"]', "- x", "+ y"]),
        (
            {"c": [{"name": "one", "v": 1}, {"name": "two", "v": 1}]},
            {"c": [{"name": "new", "v": 1}, {"name": "one", "v": 1}, {"name": "two", "v": 2}]},
            ["c[two].v", "- 1", "+ 2", "c[new]", "+ name: new", "+ v: 1"],
        ),
        (
            {"c": [{"name": "one"}, {"name": "two"}]},
            {"c": [{"name": "two"}, {"name": "one"}]},
            ["c (order)", "- - one", "- - two", "+ - two", "+ - one"],
        ),
        ({"t": "a\nb\nc\n"}, {"t": "a\nB\nc\n"}, ["t", "@@ -1,3 +1,3 @@", "a", "- b", "+ B", "c"]),
        ({"status": 1, "metadata": {"resourceVersion": "1"}}, {"status": 2, "metadata": {"resourceVersion": "2"}}, []),
    ],
)
def test_changes_are_told_by_path(before: dict[str, Any], after: dict[str, Any], lines: list[str]) -> None:
    assert told(before, after) == lines


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"data": {"a": "hidden1"}}, {"data": {"a": "hidden2"}}),
        ({}, {"data": {"a": "hidden2"}}),
        ({"stringData": {"a": "hidden1"}}, {}),
        ({"data": {"a.b/c": "hidden1"}}, {"data": {}}),
        (
            {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hidden1"}}},
            {"metadata": {"annotations": {}}},
        ),
    ],
)
def test_what_is_secret_is_masked_in_words_and_for_programs(before: dict[str, Any], after: dict[str, Any]) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret"}
    found = changes({**secret, **before}, {**secret, **after})
    assert found
    assert "hidden" not in "\n".join(told({**secret, **before}, {**secret, **after}))
    assert "hidden" not in str([change.json() for change in found])


def test_labels_of_a_secret_are_no_secret() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret"}
    assert told({**secret, "metadata": {"labels": {"a": "b"}}}, {**secret, "metadata": {"labels": {"a": "c"}}}) == [
        "metadata.labels.a",
        "- b",
        "+ c",
    ]
