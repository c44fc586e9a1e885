"""What differs between two objects, and that secrets stay hidden."""

import pytest

from gardener.managed_resource.changes import changes
from kit.objects import secret
from kube.objects import Object
from kubectl.mr.changes import described
from kubectl.style import rendered


def lines_of(before: Object, after: Object) -> list[str]:
    return [rendered(line, colors=False).strip() for change in changes(before, after) for line in described(change)]


def named(**values: int) -> Object:
    return {"c": [{"name": name, "v": value} for name, value in values.items()]}


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["a", "- 1", "+ 2"]),
        ({"a": 1}, {"a": True}, ["a", "- 1", "+ true"]),
        ({"a": None}, {}, ["a", "- null"]),
        ({}, {"a": {"b": "c"}}, ["a", "+ b: c"]),
        ({"a": []}, {"a": ["x"]}, ["a[0]", "+ x"]),
        ({"a": {"b.c/d": "x"}}, {"a": {"b.c/d": "y"}}, ['a["b.c/d"]', "- x", "+ y"]),
        (
            named(one=1, two=1),
            named(new=1, one=1, two=2),
            ["c[two].v", "- 1", "+ 2", "c[new]", "+ name: new", "+ v: 1"],
        ),
        (named(one=1, two=1), named(two=1, one=1), ["c (order)", "- - one", "- - two", "+ - two", "+ - one"]),
        ({"t": "a\nb\nc\n"}, {"t": "a\nB\nc\n"}, ["t", "@@ -1,3 +1,3 @@", "a", "- b", "+ B", "c"]),
        ({"status": 1, "metadata": {"resourceVersion": "1"}}, {"status": 2, "metadata": {"resourceVersion": "2"}}, []),
    ],
)
def test_changes_are_shown_by_path(before: Object, after: Object, lines: list[str]) -> None:
    assert lines_of(before, after) == lines


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
def test_what_is_secret_is_masked_in_words_and_for_programs(before: Object, after: Object) -> None:
    old, new = ({"apiVersion": "v1", "kind": "Secret", **fields} for fields in (before, after))
    found = list(changes(old, new))
    assert found
    assert "hidden" not in "\n".join(lines_of(old, new))
    assert "hidden" not in str([change.json() for change in found])


def test_labels_of_a_secret_are_no_secret() -> None:
    old, new = (secret("s", labels={"a": value}) for value in "bc")
    assert lines_of(old, new) == ["metadata.labels.a", "- b", "+ c"]
