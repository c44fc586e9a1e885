"""The condition of a ManagedResource, and when it is written."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import pytest

from agent.resource_manager.health.conditions import (
    conditions_to_write,
    health_condition,
    progress_condition,
)
from gardener.health.findings import Finding, Reference, missing
from kube.conditions import Condition
from kube.objects import Object

NOW = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)
THEN = "2024-05-01T11:00:00Z"
APPLIED = {"type": "ResourcesApplied", "status": "True"}
HEALTHY = Condition("ResourcesHealthy", "True", "ResourcesHealthy", "All resources are healthy.")


def stored(condition: Condition, *, since: str = THEN) -> Object:
    times = {"lastTransitionTime": since, "lastUpdateTime": since}
    reported = {name: value for name, value in asdict(condition).items() if value}
    return {"status": {"conditions": [APPLIED, {**reported, **times}]}}


def service(message: str) -> Condition:
    return Condition("ResourcesHealthy", "False", "ServiceUnhealthy", message)


def test_no_finding_is_good_news() -> None:
    assert health_condition([]) == HEALTHY
    assert progress_condition([]) == Condition(
        "ResourcesProgressing", "False", "ResourcesRolledOut", "All resources have been fully rolled out."
    )


def test_the_first_finding_decides() -> None:
    first = missing(Reference("apps/v1", "Deployment", "a", "web"))
    second = missing(Reference("v1", "ConfigMap", "a", "c"))
    assert health_condition([first, second]) == Condition(
        "ResourcesHealthy", "False", "DeploymentMissing", 'Required Deployment "web" in namespace "a" is missing'
    )
    waits = Finding(first.reference, "DeploymentProgressing", "m")
    assert progress_condition([waits, second]) == Condition(
        "ResourcesProgressing", "True", "DeploymentProgressing", "m"
    )


def test_a_condition_that_is_stored_already_is_not_written() -> None:
    assert conditions_to_write(stored(HEALTHY), HEALTHY, now=NOW) is None


@pytest.mark.parametrize("managed_resource", [{}, {"status": None}, {"status": {"conditions": None}}])
def test_the_first_condition_is_written(managed_resource: Object) -> None:
    written = conditions_to_write(managed_resource, HEALTHY, now=NOW)
    assert written is not None
    assert [c["type"] for c in written] == ["ResourcesHealthy"]


def test_a_new_condition_takes_the_place_of_the_stored_one() -> None:
    condition = Condition("ResourcesHealthy", "False", "PodMissing", "m")
    written = conditions_to_write(stored(HEALTHY), condition, now=NOW)
    assert written == [
        APPLIED,
        {
            "type": "ResourcesHealthy",
            "status": "False",
            "lastTransitionTime": "2024-05-01T12:00:00Z",
            "lastUpdateTime": "2024-05-01T12:00:00Z",
            "reason": "PodMissing",
            "message": "m",
        },
    ]


@pytest.mark.parametrize(
    ("old", "new", "age", "is_written"),
    [
        ("m\n\n-> Events:\n* 1s ago", "m\n\n-> Events:\n* 2s ago", timedelta(minutes=4, seconds=59), False),
        ("m\n\n-> Events:\n* 1s ago", "m\n\n-> Events:\n* 2s ago", timedelta(minutes=5), True),
        ("m\n\n-> Events:\n* 1s ago", "n\n\n-> Events:\n* 1s ago", timedelta(0), True),
        ("m", "m\n\n-> Events:\n* 1s ago", timedelta(0), True),
        ("m\n\n-> Events:\n* 1s ago", "m", timedelta(0), True),
    ],
)
def test_ageing_events_alone_are_written_now_and_then(old: str, new: str, age: timedelta, is_written: bool) -> None:
    managed_resource = stored(service(old), since=(NOW - age).strftime("%Y-%m-%dT%H:%M:%SZ"))
    assert (conditions_to_write(managed_resource, service(new), now=NOW) is not None) is is_written


def test_another_status_is_written_whatever_the_events() -> None:
    message = "m\n\n-> Events:\n* 1s ago"
    managed_resource = stored(service(message), since="2024-05-01T12:00:00Z")
    condition = Condition("ResourcesHealthy", "Unknown", "ServiceUnhealthy", message + "!")
    assert conditions_to_write(managed_resource, condition, now=NOW) is not None
