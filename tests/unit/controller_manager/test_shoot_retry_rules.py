"""Which Shoots are retried, and when."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.controller_manager.shoot.retry import MOST_RETRIES, failure_time, is_over, pause_after
from gardener.garden.shoots import met_rate_limit
from kit.garden_objects import shoot
from kube.clock import format_time
from kube.objects import Object

FAILED_AT = datetime(2026, 1, 1, 10, tzinfo=UTC)
LIMIT = "ERR_INFRA_RATE_LIMITS_EXCEEDED"


def operated(state: str, *codes: str, generation: int = 1, **operation: Any) -> Object:
    reported = {"state": state, "type": "Reconcile", "lastUpdateTime": format_time(FAILED_AT), **operation}
    errors = [{"description": "d", "codes": ["OTHER"]}, {"description": "d", "codes": list(codes)}]
    return shoot(
        generation=generation, status={"observedGeneration": 1, "lastOperation": reported, "lastErrors": errors}
    )


@pytest.mark.parametrize(
    ("of", "met", "over"),
    [
        (operated("Failed", LIMIT), True, False),
        (operated("Failed", "ERR_INFRA_QUOTA_EXCEEDED", LIMIT), True, False),
        (operated("Failed", LIMIT, generation=2), False, False),
        (operated("Failed", "ERR_INFRA_UNAUTHENTICATED"), False, True),
        (operated("Error", LIMIT), False, False),
        (operated("Processing", LIMIT), False, False),
        (operated("Processing"), False, False),
        (operated("Succeeded"), False, True),
        ({"metadata": {}}, False, False),
    ],
)
def test_what_failed_at_a_rate_limit_is_retried(of: Object, met: bool, over: bool) -> None:
    assert (met_rate_limit(of), is_over(of)) == (met, over)


def test_the_period_doubles_up_to_a_quarter_of_a_day() -> None:
    def minutes(period: int) -> list[float]:
        pauses = (pause_after(n, period=timedelta(minutes=period)) for n in range(MOST_RETRIES))
        return [each.total_seconds() / 60 for each in pauses]

    assert minutes(10) == [10, 20, 40, 80, 160, 320, 360, 360, 360, 360]
    assert set(minutes(500)) == {500}, "a longer period is the operator's choice"


@pytest.mark.parametrize("written", ["", "soon", None])
def test_without_a_time_it_is_due_at_once(written: Any) -> None:
    assert failure_time(operated("Failed", lastUpdateTime=written)) is None
