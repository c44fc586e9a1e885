"""What Events and logs report of a change: the field, its values if they are short, and nothing secret."""

import pytest

from agent.resource_manager.common.recent_changes import Action
from agent.resource_manager.managed_resource.rules.change_set import ChangeSet, change_text, news_text
from gardener.keys import MANAGED_BY, ORIGIN
from gardener.managed_resource.changes import field_changes
from kube.objects import Key, Object

_STOREFRONT = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "storefront"}


def container(**fields: object) -> Object:
    return {"spec": {"containers": [{"name": "app", **fields}]}}


@pytest.mark.parametrize(
    ("before", "after", "texts"),
    [
        ({"spec": {"replicas": 5}}, {"spec": {"replicas": 2}}, ["spec.replicas 5 -> 2"]),
        (container(image="a:1"), container(image="a:2"), ["spec.containers[app].image a:1 -> a:2"]),
        ({"data": {"a": "1"}}, {"data": {"a": "1"}}, []),
        ({"data": {"a": ""}}, {"data": {"a": "two words"}}, ['data.a "" -> "two words"']),
        ({"data": {"b": "1"}}, {"data": {}}, ["data.b 1 -> (none)"]),
        ({"data": {}}, {"data": {"b": True}}, ["data.b (none) -> true"]),
        ({"spec": {}}, {"spec": {"selector": {"a": "b"}}}, ["spec.selector"]),
        ({"data": {"a": "x" * 100}}, {"data": {"a": "1\n2"}}, ["data.a"]),
        ({"data": {"a": "x" * 100}}, {"data": {"a": "y"}}, [f"data.a {'x' * 39}… -> y"]),
        (
            {"metadata": {"annotations": {"a.b/c": "1"}}},
            {"metadata": {"annotations": {"a.b/c": "2"}}},
            ['metadata.annotations["a.b/c"] 1 -> 2'],
        ),
        ({"metadata": {"resourceVersion": "1"}, "status": {"a": 1}}, {"metadata": {"generation": 2}}, []),
        # What may be a credential.
        (
            container(env=[{"name": "PIN", "value": "hidden1"}]),
            container(env=[{"name": "PIN", "value": "hidden2"}]),
            ["spec.containers[app].env[PIN].value"],
        ),
        (container(args=["hidden1"]), container(args=["hidden2"]), ["spec.containers[app].args[0]"]),
        (container(command=["hidden1"]), container(), ["spec.containers[app].command"]),
        ({"spec": {"adminPassword": "hidden1"}}, {"spec": {"adminPassword": "hidden2"}}, ["spec.adminPassword"]),
        ({"data": {"db.password.txt": "hidden1"}}, {"data": {}}, ['data["db.password.txt"]']),
        ({"spec": {"apiKey": "hidden1"}}, {"spec": {"apiKey": "hidden2"}}, ["spec.apiKey"]),
        (
            {"spec": {"secretRef": {"name": "a"}}},
            {"spec": {"secretRef": {"name": "b"}}},
            ["spec.secretRef.name a -> b"],
        ),
        (
            {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hidden1"}}},
            {"metadata": {"annotations": {}}},
            ['metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]'],
        ),
    ],
)  # fmt: skip
def test_fields_are_named_with_short_values_that_are_no_credentials(
    before: Object, after: Object, texts: list[str]
) -> None:
    assert list(map(str, field_changes(before, after))) == texts


def test_of_a_secret_not_even_the_names_in_it_are_reported() -> None:
    before = {"kind": "Secret", "data": {"password-of-jane": "b2xk", "other": "eA=="}, "type": "Opaque"}
    after = {"kind": "Secret", "data": {"password-of-jane": "bmV3"}, "type": "Other"}
    assert list(map(str, field_changes(before, after))) == ["data", "type Opaque -> Other"]


@pytest.mark.parametrize(
    ("action", "fields", "text"),
    [
        (Action.REPAIRED, 1, "Deployment/shop/storefront: spec.a0 5 -> 2"),
        (Action.REPAIRED, 3, "Deployment/shop/storefront: spec.a0 5 -> 2, spec.a1 5 -> 2, spec.a2 5 -> 2"),
        (Action.REPAIRED, 9, "Deployment/shop/storefront: spec.a0 5 -> 2, spec.a1 5 -> 2, spec.a2 5 -> 2, 6 more"),
        (Action.REPAIRED, 0, "Deployment/shop/storefront"),
        (Action.MADE_AGAIN, 0, "Deployment/shop/storefront had been deleted"),
    ],
)
def test_an_object_is_reported_with_its_first_fields(action: Action, fields: int, text: str) -> None:
    before, after = ({"spec": {f"a{number}": value for number in range(fields)}} for value in (5, 2))
    assert change_text(action, _STOREFRONT, field_changes(before, after)) == text


def test_of_many_objects_the_first_are_reported() -> None:
    assert news_text(["a: b 1 -> 2"]) == "a: b 1 -> 2"
    assert news_text(list("abcdefg")) == "a; b; c; d; e; 2 more"


def test_what_was_not_requested_is_reported_even_if_the_page_is_off() -> None:
    changes = ChangeSet(owner=Key("ns", "mr"), lists_objects=False)
    before, after = ({"spec": {"replicas": replicas}} for replicas in (5, 2))
    changes.note(Action.REPAIRED, _STOREFRONT, before=before, after=after)
    changes.note(Action.MADE_AGAIN, {"kind": "Namespace", "name": "shop"})
    stamps = {"annotations": {ORIGIN: "a/b", "x": "y"}, "labels": {MANAGED_BY: "gardener"}}
    changes.note(Action.TAKEN_OVER, _STOREFRONT, before=before, after={**after, "metadata": stamps})
    reported = "Deployment/shop/storefront: spec.replicas 5 -> 2"
    assert changes.repairs() == [reported, "Namespace/shop had been deleted"]
    assert changes.taken_over() == [f"{reported}, metadata.annotations"]
    assert changes.objects == []
