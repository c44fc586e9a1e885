"""Which events of a ManagedResource ask for a pass, and which ManagedResources come last after a start."""

from typing import Any

import pytest

from agent.resource_manager.managed_resource.triggers import first_priority, needs_reconcile
from kit import objects
from kube.objects import Key, Object
from kube.runtime.cache import Change
from kube.runtime.priorities import LAST, RESYNC

FINALIZER = "resources.gardener.cloud/gardener-resource-manager"
IGNORE = "resources.gardener.cloud/ignore"
OPERATION = "gardener.cloud/operation"
HISTORY_LIMIT = "resources.gardener.cloud/history-limit"


def managed_resource(*, generation: int = 1, of: str | None = None, healthy: str | None = None, **meta: Any) -> Object:
    conditions = [{"type": "ResourcesHealthy", "status": healthy}] if healthy else []
    spec: Object = {"class": of, "secretRefs": []}
    return objects.managed_resource("ns/mr", generation=generation, spec=spec, conditions=conditions, **meta)


def asks(old: Object | None, new: Object | None, *, resource_class: str = "resources") -> bool:
    change = Change(key=Key("ns", "mr"), old=old, new=new, initial=False)
    return needs_reconcile(change, resource_class=resource_class)


PLAIN = managed_resource()
OURS = managed_resource(finalizers=[FINALIZER])
IGNORED = managed_resource(annotations={IGNORE: "true"})


@pytest.mark.parametrize(
    ("what", "old", "new", "expected"),
    [
        ("it is created", None, PLAIN, True),
        ("it is gone", PLAIN, None, True),
        ("it never was", None, None, False),
        ("it is created for another class", None, managed_resource(of="seed"), False),
        ("another class's goes", managed_resource(of="seed"), None, False),
        ("an update without a change", PLAIN, PLAIN, False),
        ("labels change", PLAIN, managed_resource(labels={"a": "b"}), False),
        ("the spec changes", PLAIN, managed_resource(generation=2), True),
        ("an operation is requested", PLAIN, managed_resource(annotations={OPERATION: "reconcile"}), True),
        ("a restore is under way", PLAIN, managed_resource(annotations={OPERATION: "restore"}), True),
        ("a migration is under way", PLAIN, managed_resource(annotations={OPERATION: "migrate"}), True),
        ("it shall wait", PLAIN, managed_resource(annotations={OPERATION: "wait-for-state"}), False),
        ("its objects become unhealthy", managed_resource(healthy="True"), managed_resource(healthy="False"), True),
        ("its objects are first found unhealthy", PLAIN, managed_resource(healthy="False"), True),
        ("unhealthy after unknown", managed_resource(healthy="Unknown"), managed_resource(healthy="False"), False),
        ("unhealthy as before", managed_resource(healthy="False"), managed_resource(healthy="False"), False),
        ("its objects become healthy", managed_resource(healthy="False"), managed_resource(healthy="True"), False),
        ("another limit of its history", PLAIN, managed_resource(annotations={HISTORY_LIMIT: "3"}), True),
        ("it becomes ignored", PLAIN, IGNORED, True),
        ("it is no longer ignored", IGNORED, PLAIN, True),
        ("ignored, the spec changes", IGNORED, managed_resource(generation=2, annotations={IGNORE: "true"}), False),
        (
            "ignored, it is deleted",
            IGNORED,
            managed_resource(generation=2, annotations={IGNORE: "true"}, deletionTimestamp="2026-01-01T00:00:00Z"),
            True,
        ),
        (
            *("the class changes, and it is still to be cleaned up", OURS),
            *(managed_resource(generation=2, of="seed", finalizers=[FINALIZER]), True),
        ),
        ("class and finalizer are taken away in one go", OURS, managed_resource(generation=2, of="seed"), True),
        ("another class has cleaned up", managed_resource(finalizers=[FINALIZER + "-seed"]), PLAIN, True),
    ],
)
def test_a_pass_is_requested_when(what: str, old: Object | None, new: Object | None, expected: bool) -> None:
    assert asks(old, new) is expected, what


def test_an_instance_for_every_class_sees_all() -> None:
    assert asks(None, managed_resource(of="anything"), resource_class="*")


def applied(*conditions: Object) -> Object:
    return objects.managed_resource("ns/mr", finalizers=["f"], conditions=list(conditions))


@pytest.mark.parametrize(
    ("found", "priority"),
    [
        (objects.managed_resource("ns/mr"), RESYNC),
        (applied({"type": "ResourcesApplied", "status": "True", "reason": "ApplySucceeded"}), RESYNC),
        (applied({"type": "ResourcesApplied", "status": "False", "reason": "ApplyFailed"}), RESYNC),
        (applied(), LAST),
        (applied({"type": "ResourcesApplied", "status": "Progressing", "reason": "ApplyProgressing"}), LAST),
    ],
)
def test_what_the_process_before_began_and_did_not_end_comes_last(found: Object, priority: int) -> None:
    assert first_priority(found) == priority
