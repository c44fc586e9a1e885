from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhooks.rules.patch import difference


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def replace(path: str, value: Any) -> dict[str, Any]:
    return {"op": "replace", "path": path, "value": value}


def remove(path: str) -> dict[str, Any]:
    return {"op": "remove", "path": path}


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="nothing changed"),
        pytest.param({}, {"spec": {"volumes": [1]}}, [add("/spec", {"volumes": [1]})], id="a missing parent is added"),
        pytest.param({"a": None}, {"a": {}}, [replace("/a", {})], id="null becomes an object"),
        pytest.param({"a": [1]}, {"a": {"b": 1}}, [replace("/a", {"b": 1})], id="a list becomes an object"),
        pytest.param({"a": 1}, {"a": None}, [replace("/a", None)], id="a null is written"),
        pytest.param({}, {"a": None}, [add("/a", None)], id="a null is added"),
        pytest.param({"a": 1, "b": 2}, {"b": 2}, [remove("/a")], id="a field goes"),
        pytest.param({}, {"a/b": 1, "c~d": 2}, [add("/a~1b", 1), add("/c~0d", 2)], id="names are escaped"),
        pytest.param({"~/": 1}, {"~/": 2}, [replace("/~0~1", 2)], id="the tilde is escaped first"),
        pytest.param(
            {"l": [1, 2]}, {"l": [1, 2, 3, 4]}, [add("/l/2", 3), add("/l/3", 4)], id="items at their final index"
        ),
        pytest.param(
            {"l": [1, 2, 3, 4]}, {"l": [1, 2]}, [remove("/l/3"), remove("/l/2")], id="surplus from the highest index"
        ),
        pytest.param(
            {"l": [{"n": 1}, {"n": 2}]}, {"l": [{"n": 1}, {"n": 3}]}, [replace("/l/1/n", 3)], id="within an item"
        ),
        pytest.param(
            {"l": [1, 2, 3]}, {"l": [2, 3]}, [replace("/l/0", 2), replace("/l/1", 3), remove("/l/2")], id="by index"
        ),
        pytest.param(
            {"d": 1, "b": 1}, {"a": 1, "c": 1, "b": 2}, [add("/a", 1), replace("/b", 2), add("/c", 1), remove("/d")],
            id="in the order of the names",
        ),
        pytest.param([1], {"a": 1}, [replace("", {"a": 1})], id="the whole document"),
    ],
)  # fmt: skip
def test_a_patch_reports_what_changed(before: Any, after: Any, operations: list[Any]) -> None:
    assert difference(before, after) == operations


# Numbers that equal truth values are left out: webhooks check types, and 1 is True to Python.
scalars = st.none() | st.booleans() | st.integers(min_value=2) | st.text(max_size=3)
names = st.text(alphabet="ab~/0é", max_size=3)
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4), max_leaves=12
)
objects = st.dictionaries(names, documents, max_size=4)


@given(objects, objects)
def test_a_patch_applied_to_what_was_gives_what_is(before: Any, after: Any) -> None:
    operations = difference(before, after)
    assert jsonpatch.apply_patch(before, operations) == after
    assert bool(operations) == (before != after)


@given(objects, documents, names)
def test_what_did_not_change_is_not_in_the_patch(before: Any, value: Any, name: str) -> None:
    escaped = name.replace("~", "~0").replace("/", "~1")
    operations = difference(before, {**before, name: value})
    assert all(each["path"].split("/")[1] == escaped for each in operations)


@given(objects, objects)
def test_equal_objects_make_equal_patches_whatever_the_order_of_their_fields(before: Any, after: Any) -> None:
    reordered = dict(reversed(after.items()))
    assert difference(before, after) == difference(dict(reversed(before.items())), reordered)
