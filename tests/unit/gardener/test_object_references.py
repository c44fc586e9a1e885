"""What follows from a manifest alone: its key, reference, namespace and place in the order, and what is wrong with it."""

import hashlib
from copy import deepcopy
from typing import Any

import pytest

from gardener.keys import MANAGED_BY
from gardener.managed_resource.order import in_stages
from gardener.managed_resource.problems import problem_of, superseded
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
from gardener.managed_resource.stamps import InjectionError, inject_labels, injected_labels
from kit.objects import config_map, obj, reference, secret
from kube.objects import Object


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
def test_an_object_has_a_key_without_and_a_name_with_its_version(manifest: Object, key: str, resource: str) -> None:
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
def test_the_namespace_follows_the_scope(manifest: Object, namespaced: bool | None, namespace: str | None) -> None:
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


# --- in which order and in which groups objects are applied


def stages(*objects: Object) -> list[list[str]]:
    return [[f"{o['kind']}/{o['metadata']['name']}" for o in stage] for stage in in_stages(objects, lambda o: o)]


def test_kinds_come_in_their_order_and_other_kinds_last_by_name() -> None:
    hooks = "ValidatingWebhookConfiguration"
    shuffled = ("Zebra", hooks, "Ant", "Ingress", "Deployment", "Service", "Secret", "Namespace")
    assert stages(*(obj(f"v1 {kind}", "x") for kind in shuffled)) == [
        [f"{kind}/x"] for kind in ("Namespace", "Secret", "Service", "Deployment", "Ingress", hooks, "Ant", "Zebra")
    ]


def test_objects_of_a_kind_are_one_stage_sorted_by_name() -> None:
    assert stages(config_map("b"), secret("a"), config_map("a")) == [
        ["Secret/a"],
        ["ConfigMap/a", "ConfigMap/b"],
    ]


def test_the_order_of_equal_names_stays() -> None:
    (stage,) = in_stages([config_map("z/a"), config_map("b/a")], lambda o: o)
    assert [o["metadata"]["namespace"] for o in stage] == ["z", "b"]


def test_an_object_without_kind_and_name_has_its_place_too() -> None:
    assert len(in_stages([{}, obj("v1 Ant", "x")], lambda o: o)) == 2


def test_nothing_makes_no_stages() -> None:
    assert in_stages([], lambda o: o) == []


# --- what is known to be wrong before anything is applied


NAMELESS = "metadata.name: Required value: name or generateName is required"
GENERATED = "metadata.generateName is not supported, since each pass would create a new object; set metadata.name"
NO_VERSION = '"a/b/c" is not a valid apiVersion; write <group>/<version>, or <version> for the core group'


@pytest.mark.parametrize(
    ("manifest", "resource", "message"),
    [
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "ns"}},
            *("v1/ConfigMap/ns/", f'ConfigMap "" is invalid: {NAMELESS}'),
        ),
        (
            {"apiVersion": "apps/v1", "kind": "Deployment"},
            *("apps/v1/Deployment/default/", f'Deployment.apps "" is invalid: {NAMELESS}'),
        ),
        (config_map(generateName="a-"), "v1/ConfigMap/default/", GENERATED),
        ({"kind": "A", "metadata": {"name": "n"}}, "/A/default/n", "the manifest has no apiVersion"),
        ({"apiVersion": "v1", "metadata": {"name": "n"}}, "v1//default/n", "the manifest has no kind"),
        ({}, "//default/", "the manifest has no apiVersion"),
        (
            {"apiVersion": "v1", "kin": "A", "metadata": {"name": "n"}},
            "v1//default/n",
            "the manifest has no kind; kin may be misspelt",
        ),
        (
            {"apiVerison": "v1", "kind": "A", "metadata": {"name": "n"}},
            "/A/default/n",
            "the manifest has no apiVersion; apiVerison may be misspelt",
        ),
        (obj("a/b/c A", "n"), "a/b/c/A/default/n", NO_VERSION),
    ],
)
def test_what_can_not_be_applied_is_reported(manifest: Object, resource: str, message: str) -> None:
    assert (resource_string(manifest), problem_of(manifest)) == (resource, message)


@pytest.mark.parametrize(
    "manifest", [config_map("n"), config_map("n", generateName="a-"), obj("example.com/v1 AllowList", "n", spec={})]
)
def test_of_what_can_be_applied_nothing_is_reported(manifest: Object) -> None:
    assert problem_of(manifest) == ""


def test_of_an_object_that_comes_twice_the_last_one_is_applied() -> None:
    a, b = (obj(f"apps/{version} Deployment", "ns/n") for version in ("v1", "v1beta1"))
    assert superseded([key_of(each) for each in (a, config_map("ns/n"), b, b)]) == {0, 2}


# --- labels that are injected


LABELS = {"team": "red"}


def test_the_managed_by_label_always_wins() -> None:
    given = {MANAGED_BY: "me", "x": "y"}
    assert injected_labels(given, managed_by="gardener") == {MANAGED_BY: "gardener", "x": "y"}
    assert injected_labels(None, managed_by="g") == {MANAGED_BY: "g"}


def labelled(**spec: Any) -> Object:
    return {"metadata": {"labels": LABELS}, "spec": spec}


MORE, BLUE = {"a": "b", "team": "red"}, {"app": "x", "team": "blue"}


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        ({}, {"metadata": {"labels": LABELS}}),
        ({"metadata": {"name": "n", "labels": BLUE}}, {"metadata": {"name": "n", "labels": {**BLUE, **LABELS}}}),
        ({"spec": {"template": {}}}, labelled(template={"metadata": {"labels": LABELS}})),
        (
            {"spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}}, "selector": {}}},
            labelled(template={"metadata": {"labels": MORE}, "spec": {"x": 1}}, selector={}),
        ),
        (
            {"spec": {"volumeClaimTemplates": [{"metadata": {"name": "v"}}, {}]}},
            labelled(
                volumeClaimTemplates=[{"metadata": {"name": "v", "labels": LABELS}}, {"metadata": {"labels": LABELS}}]
            ),
        ),
        ({"spec": {"jobTemplate": {"spec": {"template": {}}}}}, labelled(jobTemplate={"spec": {"template": {}}})),
        ({"spec": {"template": "text"}}, labelled(template="text")),
        ({"spec": {"template": None}}, labelled(template=None)),
        ({"spec": ["x"]}, {"metadata": {"labels": LABELS}, "spec": ["x"]}),
    ],
)
def test_labels_go_on_the_object_and_on_its_templates(manifest: Object, expected: Object) -> None:
    before = deepcopy(manifest)
    assert inject_labels(manifest, LABELS) == expected
    assert manifest == before


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"template": {"metadata": "x"}}, "spec.template.metadata is not a mapping"),
        ({"template": {"metadata": {"labels": ["x"]}}}, "spec.template.metadata.labels is not a mapping"),
        ({"template": {"metadata": {"labels": {"a": 1}}}}, "spec.template.metadata.labels.a is not a string"),
        ({"volumeClaimTemplates": {}}, "spec.volumeClaimTemplates is not a list"),
        ({"volumeClaimTemplates": ["x"]}, "spec.volumeClaimTemplates[0] is not a mapping"),
    ],
)
def test_a_wrong_type_on_the_way_is_an_error_that_names_the_path(spec: Object, message: str) -> None:
    with pytest.raises(InjectionError) as caught:
        inject_labels({"spec": spec}, LABELS)
    assert str(caught.value) == message
