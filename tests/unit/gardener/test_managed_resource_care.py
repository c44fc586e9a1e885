"""What care reports of a ManagedResource: the first thing that is wrong with it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardener.managed_resource.care import Problem, problem_of
from kube.clock import format_time
from kube.objects import Object

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
GOOD = {"ResourcesApplied": "True", "ResourcesHealthy": "True", "ResourcesProgressing": "False"}


def managed(*, generation: int = 2, observed: int = 2, seconds_ago: float = 60, **reported: Any) -> Object:
    """`said`: statuses by type, or status and reason; None leaves the condition out."""
    conditions = []
    for type_, found in (GOOD | reported).items():
        if found is None:
            continue
        status, reason = found if isinstance(found, tuple) else (found, f"{type_}Reason")
        since = format_time(NOW - timedelta(seconds=seconds_ago))
        conditions.append(
            {"type": type_, "status": status, "reason": reason, "message": f"m {reason}", "lastTransitionTime": since}
        )
    return {
        "metadata": {"namespace": "garden", "name": "x", "generation": generation},
        "status": {"observedGeneration": observed, "conditions": conditions},
    }


OUTDATED = Problem("OutdatedStatus", "observed generation of managed resource 'garden/x' outdated (1/2)")
NOT_APPLIED = Problem("ResourcesAppliedReason", "m ResourcesAppliedReason")
NOT_HEALTHY = Problem("ResourcesHealthyReason", "m ResourcesHealthyReason")
IN_PROGRESS = Problem("ResourcesProgressingReason", "m ResourcesProgressingReason")


def missing(types: str) -> Problem:
    return Problem(
        "MissingManagedResourceCondition", f"ManagedResource x is missing the following condition(s), [{types}]"
    )


@pytest.mark.parametrize(
    ("managed_resource", "problem"),
    [
        (managed(), None),
        (managed(observed=1), OUTDATED),
        (managed(observed=3), Problem("OutdatedStatus", OUTDATED.message.replace("1/2", "3/2"))),
        (managed(observed=1, ResourcesApplied="False"), OUTDATED),
        (managed(observed=1, ResourcesApplied=("False", "ApplyFailed")), Problem("ApplyFailed", "m ApplyFailed")),
        (managed(observed=1, ResourcesApplied=("Progressing", "ApplyFailed")), OUTDATED),
        (managed(ResourcesApplied="False", ResourcesHealthy="False"), NOT_APPLIED),
        (managed(ResourcesApplied="Unknown"), NOT_APPLIED),
        (managed(ResourcesApplied="Progressing"), None),
        (managed(ResourcesHealthy="False", ResourcesProgressing="True"), NOT_HEALTHY),
        (managed(ResourcesHealthy="Unknown"), NOT_HEALTHY),
        (managed(ResourcesHealthy="Progressing"), None),
        (managed(ResourcesProgressing="True"), IN_PROGRESS),
        (managed(ResourcesProgressing="Unknown"), IN_PROGRESS),
        (managed(ResourcesProgressing="Progressing"), None),
        # What is missing comes last, in order.
        (managed(ResourcesApplied=None, ResourcesHealthy="False"), NOT_HEALTHY),
        (managed(ResourcesProgressing=None), missing("ResourcesProgressing")),
        (managed(ResourcesApplied=None, ResourcesHealthy=None, ResourcesProgressing="True"), IN_PROGRESS),
        (managed(ResourcesHealthy=None, ResourcesProgressing=None), missing("ResourcesHealthy ResourcesProgressing")),
        (
            managed(ResourcesApplied=None, ResourcesHealthy=None, ResourcesProgressing=None),
            missing("ResourcesApplied ResourcesHealthy ResourcesProgressing"),
        ),
        (
            {"metadata": {"namespace": "garden", "name": "x", "generation": 1}},
            Problem("OutdatedStatus", "observed generation of managed resource 'garden/x' outdated (0/1)"),
        ),
    ],
)
def test_the_first_problem_is_reported(managed_resource: Object, problem: Problem | None) -> None:
    assert problem_of(managed_resource, progressing_threshold=None, now=NOW) == problem


STUCK = Problem("ProgressingRolloutStuck", "ManagedResource x is progressing for more than 1h0m0s")


@pytest.mark.parametrize(
    ("managed_resource", "problem"),
    [
        (managed(ResourcesProgressing="True", seconds_ago=3599), None),
        (managed(ResourcesProgressing="True", seconds_ago=3600), STUCK),
        (managed(ResourcesProgressing="Unknown", seconds_ago=3600), STUCK),
        (managed(ResourcesProgressing="False", seconds_ago=3600), None),
        (managed(ResourcesProgressing="True", ResourcesHealthy="False"), NOT_HEALTHY),
        (managed(ResourcesProgressing="True", ResourcesApplied=None), missing("ResourcesApplied")),
    ],
)
def test_with_a_threshold_progress_is_a_problem_only_after_it(
    managed_resource: Object, problem: Problem | None
) -> None:
    assert problem_of(managed_resource, progressing_threshold=3600.0, now=NOW) == problem
