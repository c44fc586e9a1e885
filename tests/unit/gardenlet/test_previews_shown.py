"""What a preview shows of objects, and what it hides."""

from typing import Any

import pytest

from agent.gardenlet.shoot.dry_run.client import merge_patched
from agent.gardenlet.shoot.dry_run.rules.bundles import bundled, differences_within, is_reference_only
from agent.gardenlet.shoot.dry_run.rules.shown import shown
from gardener.difference_reports import DifferenceReport, ObjectDifference, Place, UnknownTask
from gardener.managed_resource.bundle import managed_resource
from kube.objects import Key, Object, key


def deployment(**container: Any) -> Object:
    template = {"spec": {"containers": [{"name": "c", **container}]}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": template}}


def container(obj: Object | None) -> Object:
    assert obj is not None
    (found,) = obj["spec"]["template"]["spec"]["containers"]
    return {name: value for name, value in found.items() if name != "name"}


def secret(kind: str = "Secret", **data: str) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "s"}, "data": data}


@pytest.mark.parametrize("kind", ["Secret", "InternalSecret"])
@pytest.mark.parametrize(
    ("before", "after", "was", "will_be"),
    [
        ({"a": "eA=="}, {"a": "eA=="}, {"a": "(hidden)"}, {"a": "(hidden)"}),
        ({"a": "eA=="}, {"a": "eQ=="}, {"a": "(before)"}, {"a": "(changed)"}),
        ({"a": "eA=="}, {"b": "eA=="}, {"a": "(removed)"}, {"b": "(new)"}),
        (None, {"a": "eA=="}, None, {"a": "(new)"}),
        ({"a": "eA=="}, None, {"a": "(removed)"}, None),
        ({}, {"a": ""}, {}, {"a": "(new)"}),
    ],
)
def test_of_secrets_only_names_are_shown(
    kind: str, before: Any, after: Any, was: Object | None, will_be: Object | None
) -> None:
    found = shown(*(None if each is None else secret(kind, **each) for each in (before, after)))
    assert [None if each is None else each["data"] for each in found] == [was, will_be]


HEADER = "Authorization"


@pytest.mark.parametrize(
    ("before", "after", "was", "will_be"),
    [
        # Headers and variables are hidden by their names, also where nothing differs.
        (
            {"httpHeaders": [{"name": HEADER, "value": "Bearer x"}]},
            {"httpHeaders": [{"name": HEADER, "value": "Bearer y"}]},
            {"httpHeaders": [{"name": HEADER, "value": "(before)"}]},
            {"httpHeaders": [{"name": HEADER, "value": "(changed)"}]},
        ),
        (
            {"env": [{"name": "DB_PASSWORD", "value": "x"}, {"name": "HOST", "value": "a"}]},
            {"env": [{"name": "DB_PASSWORD", "value": "x"}, {"name": "HOST", "value": "b"}]},
            {"env": [{"name": "DB_PASSWORD", "value": "(hidden)"}, {"name": "HOST", "value": "a"}]},
            {"env": [{"name": "DB_PASSWORD", "value": "(hidden)"}, {"name": "HOST", "value": "b"}]},
        ),
        # Of lists that differ in length it is not known which item is which.
        (
            {"env": [{"name": "TOKEN", "value": "x"}]},
            {"env": [{"name": "A", "value": "1"}, {"name": "TOKEN", "value": "x"}]},
            {"env": [{"name": "TOKEN", "value": "(hidden)"}]},
            {"env": [{"name": "A", "value": "1"}, {"name": "TOKEN", "value": "(hidden)"}]},
        ),
        ({}, {"clientToken": "x"}, {}, {"clientToken": "(new)"}),
        # What only refers to something secret is shown.
        (
            {"secretName": "a", "automountServiceAccountToken": True, "args": ["--token-file=/a"]},
            {"secretName": "b", "automountServiceAccountToken": False, "args": ["--token-file=/b"]},
            {"secretName": "a", "automountServiceAccountToken": True, "args": ["--token-file=/a"]},
            {"secretName": "b", "automountServiceAccountToken": False, "args": ["--token-file=/b"]},
        ),
    ],
)
def test_values_that_may_be_secret_are_hidden(before: Any, after: Any, was: Object, will_be: Object) -> None:
    found = shown(deployment(**before), deployment(**after))
    assert [container(each) for each in found] == [was, will_be]


def test_what_programs_note_is_no_difference() -> None:
    notes = {
        "gardener.cloud/operation": "reconcile",
        "gardenlet.gardener.cloud/manifest-digest": "1",
        "kubectl.kubernetes.io/last-applied-configuration": '{"data": {"a": "eA=="}}',
        "reference.resources.gardener.cloud/secret-1": "s-1",
    }
    noted = {**deployment(), "metadata": {"name": "d", "annotations": notes, "uid": "u", "finalizers": ["f"]}}
    assert shown(deployment(), {**noted, "status": {"replicas": 1}}) == (deployment(), deployment())


# --- ManagedResources


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}, "data": data}


def managed(*objects: Object, resource_class: str = "") -> tuple[Object, dict[Key, Object]]:
    packed, made = managed_resource("m", "shoot", objects, resource_class=resource_class)
    return made, {key(packed): packed["data"]}


def test_objects_of_a_managed_resource_are_compared_one_by_one() -> None:
    before = managed(config_map("a", x="1"), config_map("b"), {**secret(t="eA=="), "metadata": {"name": "s"}})
    after = managed(config_map("a", x="2"), config_map("c"), {**secret(t="eQ=="), "metadata": {"name": "s"}})
    found = {each.name: each for each in differences_within(Key("shoot", "m"), bundled(*before), bundled(*after))}
    assert {name: (each.before is None, each.after is None) for name, each in found.items()} == {
        "n/a": (False, False),
        "n/b": (False, True),
        "n/c": (True, False),
        "s": (False, False),
    }
    assert {(each.place, each.within) for each in found.values()} == {(Place.SHOOT, "ManagedResource shoot/m")}
    assert found["s"].after is not None
    assert found["s"].after["data"] == {"t": "(changed)"}
    assert is_reference_only(before[0], after[0])


def test_a_class_states_that_objects_are_in_the_seed() -> None:
    before, after = managed(resource_class="seed"), managed(config_map("a"), resource_class="seed")
    (found,) = differences_within(Key("shoot", "m"), bundled(*before), bundled(*after))
    assert (found.place, found.before) == (Place.SEED, None)
    assert not is_reference_only(before[0], managed()[0])
    assert not is_reference_only(None, after[0])


# --- reports


def test_a_report_is_the_same_after_it_was_sent() -> None:
    difference = ObjectDifference(
        place=Place.SHOOT,
        api_version="v1",
        kind="ConfigMap",
        name="n/a",
        within="m",
        after=config_map("a"),
        problem="p",
    )
    report = DifferenceReport([difference], [UnknownTask("Deploying", "it does not exist")])
    assert DifferenceReport.of(report.data()) == report
    assert DifferenceReport.of({"differences": "x", "unknown": [1]}) == DifferenceReport([], [])


@pytest.mark.parametrize(
    ("value", "patch", "result"),
    [
        ({"a": 1, "b": {"c": 1}}, {"b": {"d": 2}}, {"a": 1, "b": {"c": 1, "d": 2}}),
        ({"a": 1, "b": 2}, {"a": None, "x": None}, {"b": 2}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": "text"}, {"a": {"b": 1, "c": None}}, {"a": {"b": 1}}),
    ],
)
def test_merge_patches(value: Object, patch: Object, result: Object) -> None:
    assert merge_patched(value, patch) == result
