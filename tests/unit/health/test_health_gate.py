"""Which ManagedResources are checked at all."""

import pytest

from agent.health.gate import Gate, gate
from kube.objects import Object


def managed_resource(
    *,
    applied: str | None = "True",
    annotations: dict[str, str] | None = None,
    resource_class: str | None = None,
    deleting: bool = False,
) -> Object:
    conditions = [] if applied is None else [{"type": "ResourcesApplied", "status": applied}]
    return {
        "metadata": {
            "annotations": annotations,
            "deletionTimestamp": "2024-05-01T12:00:00Z" if deleting else None,
        },
        "spec": {"class": resource_class},
        "status": {"conditions": conditions},
    }


@pytest.mark.parametrize(
    ("applied", "expected"),
    [
        (None, Gate.WAIT),
        ("Progressing", Gate.WAIT),
        ("False", Gate.WAIT),
        ("True", Gate.CHECK),
        ("Unknown", Gate.CHECK),
    ],
)
def test_checks_wait_until_everything_is_applied(applied: str | None, expected: Gate) -> None:
    assert gate(managed_resource(applied=applied), resource_class="resources") is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("true", Gate.STOP), ("T", Gate.STOP), ("1", Gate.STOP), ("yes", Gate.CHECK), ("false", Gate.CHECK)],
)
def test_an_ignored_managed_resource_is_not_checked(value: str, expected: Gate) -> None:
    ignored = managed_resource(annotations={"resources.gardener.cloud/ignore": value})
    assert gate(ignored, resource_class="resources") is expected


def test_a_managed_resource_in_deletion_is_not_checked() -> None:
    assert gate(managed_resource(deleting=True), resource_class="resources") is Gate.STOP


def test_waiting_does_not_come_before_the_reasons_to_stop() -> None:
    assert gate(managed_resource(applied="False", deleting=True), resource_class="resources") is Gate.STOP


def test_a_managed_resource_of_another_class_is_not_checked() -> None:
    assert gate(managed_resource(resource_class="shoot"), resource_class="resources") is Gate.STOP
    assert gate(managed_resource(resource_class="shoot"), resource_class="shoot") is Gate.CHECK
