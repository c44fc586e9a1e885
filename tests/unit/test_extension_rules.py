"""The contract of an extension, for one object: what it does, when, and what it leaves alone."""

from datetime import UTC, datetime
from typing import Any, cast

import pytest

from extension import actuators
from extension.rules import answer_time, class_of, has_health, is_to_be_left_alone, operation_on
from kube.objects import Object
from kube.runtime.client import Client

FAILED = {"observedGeneration": 2, "lastOperation": {"state": "Failed"}}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def extension(
    requested: str = "", *, last: tuple[str, str] | None = None, deleting: bool = False, timestamp: str = ""
) -> Object:
    annotations = {"gardener.cloud/operation": requested, "gardener.cloud/timestamp": timestamp}
    meta: dict[str, Any] = {"annotations": {name: value for name, value in annotations.items() if value}}
    if deleting:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {"lastOperation": {"type": last[0], "state": last[1]}} if last else {}
    return {"metadata": meta, "status": status}


@pytest.mark.parametrize(
    ("obj", "operation"),
    [
        (extension(), "Create"),
        (extension("reconcile"), "Create"),
        (extension("reconcile", last=("Create", "Succeeded")), "Reconcile"),
        (extension(last=("Create", "Succeeded")), ""),
        (extension(last=("Create", "Error")), "Create"),
        (extension(last=("Reconcile", "Processing")), "Reconcile"),
        (extension("wait-for-state"), ""),
        (extension("restore"), "Restore"),
        (extension(last=("Restore", "Processing")), "Restore"),
        (extension("migrate", last=("Reconcile", "Succeeded")), "Migrate"),
        (extension(last=("Migrate", "Processing")), "Migrate"),
        (extension(last=("Migrate", "Succeeded")), ""),
        (extension("reconcile", last=("Migrate", "Error")), "Reconcile"),
        (extension("reconcile", last=("Restore", "Error")), "Restore"),
        (extension(last=("Reconcile", "Succeeded"), deleting=True), "Delete"),
        (extension("reconcile", last=("Restore", "Error"), deleting=True), "Delete"),
        (extension("migrate", deleting=True), "Migrate"),
        (extension(last=("Migrate", "Processing"), deleting=True), "Migrate"),
    ],
)
def test_what_is_requested_or_was_begun_is_done(obj: Object, operation: str) -> None:
    assert operation_on(obj) == operation


def test_an_answer_is_never_older_than_its_question() -> None:
    requested = "2026-01-01T01:00:00.5Z"
    late = extension(timestamp=requested)
    assert answer_time(late, NOW) == datetime(2026, 1, 1, 1, 0, 0, 500000, tzinfo=UTC)
    assert answer_time(extension(), NOW) == NOW


@pytest.mark.parametrize(
    ("shoot", "is_left"),
    [
        ({}, False),
        ({"metadata": {"generation": 2}, "status": FAILED}, True),
        ({"metadata": {"generation": 3}, "status": FAILED}, False),
        ({"metadata": {"annotations": {"shoot.gardener.cloud/ignore": "true"}}}, True),
    ],
)
def test_shoots_that_have_failed_or_are_ignored_are_left_alone(shoot: Object, is_left: bool) -> None:
    assert is_to_be_left_alone({"spec": {"shoot": shoot}}) is is_left


@pytest.mark.parametrize(
    ("spec", "class_"), [({}, "shoot"), ({"class": "shoot"}, "shoot"), ({"class": "seed"}, "seed")]
)
def test_an_object_without_a_class_belongs_to_a_shoot(spec: Object, class_: str) -> None:
    assert class_of({"spec": spec}) == class_


@pytest.mark.parametrize(
    ("obj", "is_checked"),
    [
        (extension(), False),
        (extension(last=("Create", "Processing")), False),
        (extension(last=("Create", "Succeeded")), True),
        (extension(last=("Reconcile", "Error")), True),
        (extension(last=("Restore", "Error")), False),
        (extension(last=("Migrate", "Succeeded")), False),
        (extension(last=("Reconcile", "Succeeded"), deleting=True), False),
    ],
)
def test_health_is_checked_between_creation_and_the_end(obj: Object, is_checked: bool) -> None:
    obj["metadata"]["finalizers"] = ["f"]
    assert has_health(obj, "f") is is_checked
    assert not has_health(obj, "of-another")


@pytest.mark.parametrize(
    ("spec", "handled"),
    [
        ({"type": "greeter"}, True),
        ({"type": "greeter", "class": "shoot"}, True),
        ({"type": "greeter", "class": "seed"}, False),
        ({"type": "other"}, False),
        ({}, False),
    ],
)
def test_an_actuator_handles_objects_of_its_type_and_classes(spec: Object, handled: bool) -> None:
    class Greeter(actuators.Extension):
        type = "greeter"

    assert Greeter(cast("Client", None)).handles({"spec": spec}) is handled
