"""How a condition follows its predecessor."""

from datetime import UTC, datetime

import pytest

from kube.conditions import Condition, with_conditions
from kube.objects import Object

NOW = datetime(2024, 5, 1, 12, 0, 0, 999999, tzinfo=UTC)
NEW, OLD = "2024-05-01T12:00:00Z", "2024-05-01T11:00:00Z"


def condition(status: str = "True", reason: str = "R", message: str = "m", **more: object) -> Object:
    times = {"lastTransitionTime": OLD, "lastUpdateTime": OLD}
    return {"type": "B", "status": status, **times, "reason": reason, "message": message, **more}


def test_a_new_condition_comes_last_and_has_both_times() -> None:
    other = {"type": "A", "status": "True"}
    assert with_conditions([other], [Condition("B", "False", "R", "m")], now=NOW) == [
        other,
        condition("False", lastTransitionTime=NEW, lastUpdateTime=NEW),
    ]


def test_a_condition_keeps_its_place() -> None:
    before, after = {"type": "A"}, {"type": "C"}
    result = with_conditions([before, condition(), after], [Condition("B", "False", "R", "m")], now=NOW)
    assert [c["type"] for c in result] == ["A", "B", "C"]
    assert result[0] is before
    assert result[2] is after


@pytest.mark.parametrize(
    ("status", "reason", "message", "transition", "update"),
    [
        ("True", "R", "m", OLD, OLD),
        ("False", "R", "m", NEW, OLD),
        ("True", "S", "m", OLD, NEW),
        ("True", "R", "n", OLD, NEW),
        ("False", "S", "n", NEW, NEW),
    ],
)
def test_a_time_moves_with_what_it_is_about(
    status: str, reason: str, message: str, transition: str, update: str
) -> None:
    (result,) = with_conditions([condition()], [Condition("B", status, reason, message)], now=NOW)
    assert result == condition(status, reason, message, lastTransitionTime=transition, lastUpdateTime=update)


def test_codes_of_a_predecessor_are_dropped_as_an_update() -> None:
    (result,) = with_conditions([condition(codes=["ERR"])], [Condition("B", "True", "R", "m")], now=NOW)
    assert result == condition(lastUpdateTime=NEW)


def test_empty_words_are_filled_in() -> None:
    (result,) = with_conditions([], [Condition("B", "True", "", "")], now=NOW)
    assert (result["reason"], result["message"]) == ("Unspecified", "No message given.")
    assert with_conditions([result], [Condition("B", "True", "", "")], now=datetime.now(UTC)) == [result]


def test_the_given_conditions_stay_as_they_are() -> None:
    given = [condition()]
    with_conditions(given, [Condition("B", "False", "S", "n")], now=NOW)
    assert given == [condition()]
