"""Keys, references, namespaces and the checksum."""

import hashlib
from typing import Any

import pytest

from gardener.managed_resource.references import (
    in_its_namespace,
    key_of,
    key_of_reference,
    reference_of,
    resource_string,
    resource_string_of_reference,
    secrets_checksum,
    sorted_references,
)
from kit.objects import obj, reference


@pytest.mark.parametrize(
    ("manifest", "key", "resource"),
    [
        (obj("apps/v1 Deployment", "ns/n"), "apps/Deployment/ns/n", "apps/v1/Deployment/ns/n"),
        (obj("v1 ConfigMap", "ns/n"), "/ConfigMap/ns/n", "v1/ConfigMap/ns/n"),
        (obj("v1 ConfigMap", "n"), "/ConfigMap/default/n", "v1/ConfigMap/default/n"),
        (obj("v1 Namespace", "x"), "/Namespace//x", "v1/Namespace//x"),
        (
            obj("rbac.authorization.k8s.io/v1 ClusterRole", "x"),
            "rbac.authorization.k8s.io/ClusterRole/default/x",
            "rbac.authorization.k8s.io/v1/ClusterRole/default/x",
        ),
        ({}, "//default/", "//default/"),
    ],
)
def test_an_object_has_a_key_without_and_a_name_with_its_version(
    manifest: dict[str, Any], key: str, resource: str
) -> None:
    reference = reference_of(manifest, injected_labels={"m": "g"})
    assert (key_of(manifest), resource_string(manifest)) == (key, resource)
    assert (key_of_reference(reference), resource_string_of_reference(reference)) == (key, resource)


@pytest.mark.parametrize(
    ("manifest", "namespaced", "namespace"),
    [
        (obj("v1 ConfigMap", "n"), True, "default"),
        (obj("v1 ConfigMap", "ns/n"), True, "ns"),
        (obj("v1 Node", "ns/n"), False, None),
        (obj("v1 Node", "n"), False, None),
        (obj("x/v1 Foo", "n"), None, "default"),
        (obj("x/v1 Foo", "ns/n"), None, "ns"),
        (obj("v1 Namespace", "n"), None, None),
        ({"kind": "ConfigMap"}, True, "default"),
    ],
)
def test_the_namespace_follows_the_scope_of_the_kind(
    manifest: dict[str, Any], namespaced: bool | None, namespace: str | None
) -> None:
    before = repr(manifest)
    result = in_its_namespace(manifest, namespaced=namespaced)
    assert (result.get("metadata") or {}).get("namespace") == namespace
    assert repr(manifest) == before


def test_a_reference_has_all_labels_and_the_annotations_of_the_manifest() -> None:
    manifest = obj("v1 ConfigMap", "ns/n", labels={"a": "1", "team": "x"}, annotations={"c": "2"})
    labels = {"a": "1", "team": "red", "m": "g"}
    expected = reference("v1 ConfigMap", "ns/n", labels=labels, annotations={"c": "2"})
    assert reference_of(manifest, injected_labels={"team": "red", "m": "g"}) == expected


def test_references_are_sorted_by_key_so_that_the_core_group_comes_first() -> None:
    references = [
        *(reference("apps/v1 Deployment", "x/a"), reference("v1 Secret", "x/a"), reference("v1 ConfigMap", "x/b")),
        *(reference("v1 ConfigMap", "x/a", uid=uid) for uid in "12"),
    ]
    assert sorted_references(references) == [references[i] for i in (3, 4, 2, 1, 0)]


def test_the_checksum_of_nothing_is_that_of_no_bytes() -> None:
    assert secrets_checksum([]) == hashlib.sha256(b"").hexdigest()
