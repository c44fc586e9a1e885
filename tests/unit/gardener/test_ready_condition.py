"""The condition `Ready` of ManagedResources, which sums up the others."""

from datetime import UTC, datetime

import pytest

from gardener.managed_resource.conditions import ignored, ready, with_manual_steps, with_ready
from gardener.overview.hints import hints
from gardener.overview.states import ResourceState, message_of, state_of
from kit.objects import conditions, managed_resource
from kube.conditions import with_conditions
from kube.objects import Object

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)


def managed(*, observed: int = 1, **statuses: str) -> Object:
    given = [{**each, "reason": f"Of{each['type']}", "message": "m"} for each in conditions(**statuses)]
    return managed_resource("garden/shop", generation=1, conditions=given, status={"observedGeneration": observed})


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (managed(), ("True", "ResourcesReady")),
        (managed(applied="False"), ("False", "OfResourcesApplied")),
        (managed(applied="False", healthy="False"), ("False", "OfResourcesApplied")),
        (managed(applied="False", observed=0), ("False", "OfResourcesApplied")),
        (managed(applied="Progressing"), ("Unknown", "OfResourcesApplied")),
        (managed(healthy="False", progressing="True"), ("False", "OfResourcesHealthy")),
        (managed(healthy="Unknown"), ("Unknown", "OfResourcesHealthy")),
        (managed(healthy=""), ("Unknown", "ChecksPending")),
        (managed(progressing="True"), ("Unknown", "OfResourcesProgressing")),
        (managed(progressing="Unknown"), ("Unknown", "OfResourcesProgressing")),
        (managed(progressing=""), ("Unknown", "ChecksPending")),
        (managed(observed=0), ("Unknown", "ApplyProgressing")),
    ],
)
def test_the_first_condition_that_is_not_as_it_should_be_decides(obj: Object, expected: tuple[str, str]) -> None:
    found = ready(obj)
    assert found is not None
    assert (found.type, found.status, found.reason) == ("Ready", *expected)


def test_it_reports_what_is_left_to_a_person() -> None:
    obj = managed()
    progressing = obj["status"]["conditions"][2]
    progressing["message"] = with_manual_steps("All is rolled out.", [f"step {number}" for number in range(7)])
    steps = "step 0; step 1; step 2; step 3; step 4; 2 more"
    found = ready(obj)
    assert found is not None
    assert found.message == f"All resources are applied, healthy and rolled out. Do manually: {steps}"
    assert message_of(obj) == f"do manually: {steps}"
    assert hints(obj, []) == [f"do manually: {steps}"]


def test_nothing_is_reported_before_the_agent_has_reported_anything() -> None:
    obj = managed(applied="", healthy="", progressing="")
    assert ready(obj) is None
    assert with_ready(obj, is_wanted=True, now=NOW) == obj["status"]


def test_an_ignored_one_is_ready_whatever_was_observed() -> None:
    obj = managed_resource("garden/shop", generation=2, conditions=with_conditions([], ignored(), now=NOW))
    found = ready(obj)
    assert found is not None
    assert (found.status, found.reason) == ("True", "ManagedResourceIgnored")


def test_it_is_added_kept_and_removed() -> None:
    obj = managed()
    status = with_ready(obj, is_wanted=True, now=NOW)
    assert [each["type"] for each in status["conditions"]] == [
        *(each["type"] for each in obj["status"]["conditions"]),
        "Ready",
    ]
    completed = {**obj, "status": status}
    assert with_ready(completed, is_wanted=True, now=LATER) == status
    assert with_ready(completed, is_wanted=False, now=LATER) == obj["status"]
    assert with_ready(obj, is_wanted=False, now=NOW) is obj["status"]


def test_its_transition_time_changes_with_its_status_alone() -> None:
    obj = managed(healthy="Unknown")
    obj["status"] = with_ready(obj, is_wanted=True, now=NOW)
    obj["status"]["conditions"][1]["status"] = "False"
    changed = with_ready(obj, is_wanted=True, now=LATER)["conditions"][-1]
    assert (changed["status"], changed["lastTransitionTime"]) == ("False", "2026-01-02T00:00:00Z")
    obj["status"]["conditions"][1]["message"] = "another"
    ready = with_ready(obj, is_wanted=True, now=LATER)["conditions"][-1]
    assert ready["lastUpdateTime"] == "2026-01-02T00:00:00Z"


@pytest.mark.parametrize("applied", ["True", "False", "Progressing", ""])
@pytest.mark.parametrize("healthy", ["True", "False", "Unknown", ""])
@pytest.mark.parametrize("progressing", ["True", "False", "Unknown", ""])
@pytest.mark.parametrize("observed", [0, 1])
def test_it_agrees_with_the_state_that_users_see(applied: str, healthy: str, progressing: str, observed: int) -> None:
    obj = managed(applied=applied, healthy=healthy, progressing=progressing, observed=observed)
    found = ready(obj)
    status = found.status if found is not None else ""
    state = state_of(obj)
    assert (status == "True") is (state is ResourceState.READY)
    if state in {ResourceState.FAILED, ResourceState.UNHEALTHY}:
        assert status == "False"
    assert (status == "") is (state is ResourceState.PENDING)
