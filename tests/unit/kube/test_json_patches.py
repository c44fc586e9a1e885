"""Patches that are refused only if their own fields have changed."""

import pytest

from agent.gardenlet.shoot.dry_run.client import json_patched, merge_patched
from kube.json_patches import guarded, replacing
from kube.objects import Object

META: Object = {"uid": "u", "resourceVersion": "1", "annotations": {"a/b": "1", "c~d": "2"}}
LIVE: Object = {"metadata": META, "spec": {"x": {"y": 1}, "items": [1]}, "status": {"z": 1}}
OF = ("test", "/metadata/uid", "u")


def _short(patch: list[Object]) -> list[tuple[object, ...]]:
    return [tuple(each[name] for name in ("op", "path", "value") if name in each) for each in patch]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"spec": {"x": {"y": 1}}, "none": None}, []),
        ({"spec": {"x": {"y": True}}}, [("test", "/spec/x/y", 1), ("add", "/spec/x/y", True)]),
        ({"spec": {"items": []}}, [("test", "/spec/items", [1]), ("add", "/spec/items", [])]),
        ({"spec": {"x": None}}, [("test", "/spec/x", {"y": 1}), ("remove", "/spec/x")]),
        ({"new": {"a": 1}}, [("test", "/new", None), ("add", "/new", {"a": 1})]),
        (
            {"new": {"a": {"b": None, "c": [None]}, "d": None}},
            [("test", "/new", None), ("add", "/new", {"a": {"c": [None]}})],
        ),
        (
            {"metadata": {"annotations": {"a/b": None, "e": "3"}}},
            [
                ("test", "/metadata/annotations/a~1b", "1"),
                ("remove", "/metadata/annotations/a~1b"),
                ("test", "/metadata/annotations/e", None),
                ("add", "/metadata/annotations/e", "3"),
            ],
        ),
        (
            {"metadata": {"annotations": {"c~d": "3"}}},
            [("test", "/metadata/annotations/c~0d", "2"), ("add", "/metadata/annotations/c~0d", "3")],
        ),
    ],
)
def test_a_merge_patch_is_guarded_by_its_fields(change: Object, expected: list[tuple[object, ...]]) -> None:
    patch = guarded(LIVE, change)
    assert _short(patch) == [OF, *expected]
    assert json_patched(LIVE, patch) == merge_patched(LIVE, change)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (LIVE | {"status": {}, "metadata": {**META, "resourceVersion": "2"}}, []),
        (
            LIVE | {"spec": {"x": {}}},
            [("test", "/spec", LIVE["spec"]), ("add", "/spec", {"x": {}})],
        ),
        ({"metadata": META}, [("test", "/spec", LIVE["spec"]), ("remove", "/spec")]),
        (LIVE | {"data": {}}, [("test", "/data", None), ("add", "/data", {})]),
        (
            LIVE | {"metadata": {**META, "labels": {"l": ""}, "annotations": {"a/b": "1"}, "finalizers": ["f"]}},
            [
                ("test", "/metadata/finalizers", None),
                ("add", "/metadata/finalizers", ["f"]),
                ("test", "/metadata/labels", None),
                ("add", "/metadata/labels", {"l": ""}),
                ("test", "/metadata/annotations/c~0d", "2"),
                ("remove", "/metadata/annotations/c~0d"),
            ],
        ),
    ],
)
def test_a_replacement_leaves_status_and_other_metadata_alone(body: Object, expected: list[tuple[object, ...]]) -> None:
    assert _short(replacing(LIVE, body)) == [OF, *expected]
