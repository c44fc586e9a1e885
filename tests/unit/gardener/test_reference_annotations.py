"""Which annotations refer to what."""

import pytest

from gardener.references.keys import Name, annotation_key, kind_from_annotation_key, references

PREFIX = "reference.resources.gardener.cloud/"


def test_a_key_has_the_hash_of_the_name() -> None:
    assert annotation_key("configmap", "test-5678") == f"{PREFIX}configmap-4ed34879"


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (f"{PREFIX}configmap-82a3537f", "configmap"),
        (f"{PREFIX}secret-x", "secret"),
        (f"{PREFIX}secret-", "secret"),
        (f"{PREFIX}widget-1", "widget"),
        (f"{PREFIX}secret", ""),
        (f"{PREFIX}secret-a-b", ""),
        (f"{PREFIX}", ""),
        ("reference.resources.gardener.cloud", ""),
        ("resources.gardener.cloud/secret-1", ""),
        (f"x{PREFIX}secret-1", ""),
    ],
)
def test_the_kind_stands_before_the_only_hyphen(key: str, kind: str) -> None:
    assert kind_from_annotation_key(key) == kind


def test_an_object_refers_to_its_own_namespace_and_by_its_own_annotations() -> None:
    referring = {
        "metadata": {
            "namespace": "here",
            "annotations": {
                f"{PREFIX}secret-1": "a",
                f"{PREFIX}secret-2": "b",
                f"{PREFIX}configmap-1": "a",
                f"{PREFIX}secret-3": "",
                f"{PREFIX}secret-4-5": "c",
                "other": "d",
            },
        },
        "spec": {"template": {"metadata": {"annotations": {f"{PREFIX}secret-6": "e"}}}},
    }
    assert list(references(referring)) == [
        Name("secret", "here", "a"),
        Name("secret", "here", "b"),
        Name("configmap", "here", "a"),
    ]


def test_an_object_without_annotations_refers_to_nothing() -> None:
    assert list(references({"metadata": {"annotations": None}})) == []
