"""Which ManagedResources are checked at all."""

import pytest

from agent.resource_manager.health.predicates import Eligibility, eligibility
from kit import objects
from kube.objects import Object


def managed_resource(
    *,
    applied: str | None = "True",
    annotations: dict[str, str] | None = None,
    resource_class: str | None = None,
    deleting: bool = False,
) -> Object:
    conditions = [] if applied is None else [{"type": "ResourcesApplied", "status": applied}]
    deleted = "2024-05-01T12:00:00Z" if deleting else None
    return objects.managed_resource(
        annotations=annotations, deletionTimestamp=deleted, spec={"class": resource_class}, conditions=conditions
    )


@pytest.mark.parametrize(
    ("applied", "expected"),
    [
        *((status, Eligibility.WAIT) for status in (None, "Progressing", "False")),
        *((status, Eligibility.CHECK) for status in ("True", "Unknown")),
    ],
)
def test_checks_wait_until_everything_is_applied(applied: str | None, expected: Eligibility) -> None:
    assert eligibility(managed_resource(applied=applied), resource_class="resources") is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("true", Eligibility.STOP),
        ("T", Eligibility.STOP),
        ("1", Eligibility.STOP),
        ("yes", Eligibility.CHECK),
        ("false", Eligibility.CHECK),
    ],
)
def test_an_ignored_managed_resource_is_not_checked(value: str, expected: Eligibility) -> None:
    ignored = managed_resource(annotations={"resources.gardener.cloud/ignore": value})
    assert eligibility(ignored, resource_class="resources") is expected


def test_a_managed_resource_in_deletion_is_not_checked() -> None:
    assert eligibility(managed_resource(deleting=True), resource_class="resources") is Eligibility.STOP


def test_waiting_does_not_come_before_the_reasons_to_stop() -> None:
    assert eligibility(managed_resource(applied="False", deleting=True), resource_class="resources") is Eligibility.STOP


def test_a_managed_resource_of_another_class_is_not_checked() -> None:
    assert eligibility(managed_resource(resource_class="shoot"), resource_class="resources") is Eligibility.STOP
    assert eligibility(managed_resource(resource_class="shoot"), resource_class="shoot") is Eligibility.CHECK
