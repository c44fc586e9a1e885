"""What a VerticalPodAutoscaler has to require, and when it is looked at again."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.gardenlet.seed.vpa_eviction_requirements.rules.requirements import ONLY_MORE, RestrictionError, required
from gardener import keys

WINDOW = "220000+0000,230000+0000"
MILLISECOND = timedelta(milliseconds=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-0{text}+00:00").astimezone(UTC)


def in_window_only(window: str | None = WINDOW) -> dict[str, str]:
    marks = {keys.DOWNSCALE_RESTRICTION: "in-maintenance-window-only"}
    return marks | ({} if window is None else {keys.MAINTENANCE_WINDOW: window})


@pytest.mark.parametrize(
    ("window", "now", "is_inside", "until"),
    [
        (WINDOW, "2T12:00:00", False, "2T21:55:00"),
        (WINDOW, "2T21:54:59.999", False, "2T21:55:00"),
        (WINDOW, "2T21:55:00", True, "2T22:55:00"),
        (WINDOW, "2T22:30:00", True, "2T22:55:00"),
        (WINDOW, "2T22:54:59.999", True, "2T22:55:00"),
        (WINDOW, "2T22:55:00", False, "3T21:55:00"),
        (WINDOW, "2T22:55:00.001", False, "3T21:55:00"),
        # The last second of the window, and around its end.
        (WINDOW, "2T22:59:59", False, "3T21:55:00"),
        (WINDOW, "2T22:59:59.999", False, "3T21:55:00"),
        (WINDOW, "2T23:00:00", False, "3T21:55:00"),
        (WINDOW, "2T23:00:00.001", False, "3T21:55:00"),
        ("230000+0100,000000+0100", "2T22:30:00", True, "2T22:55:00"),
        # Over midnight.
        ("233000+0000,003000+0000", "2T23:24:00", False, "2T23:25:00"),
        ("233000+0000,003000+0000", "2T23:25:00", True, "3T00:25:00"),
        ("233000+0000,003000+0000", "3T00:10:00", True, "3T00:25:00"),
        ("233000+0000,003000+0000", "3T00:25:00", False, "3T23:25:00"),
        # It begins at midnight, so that it opens the day before.
        ("000000+0000,010000+0000", "2T23:55:00", True, "3T00:55:00"),
        # The whole day.
        ("220000+0000,220000+0000", "2T12:00:00", True, "2T21:55:00"),
    ],
)
def test_pods_may_get_less_only_in_the_window(window: str, now: str, is_inside: bool, until: str) -> None:
    found = required(in_window_only(window), now=at(now))
    assert found.requirements == ([] if is_inside else ONLY_MORE)
    assert found.until == at(until)


def test_at_the_time_that_was_computed_something_else_is_required() -> None:
    moment = at("2T12:00:00")
    for _ in range(4):
        before = required(in_window_only(), now=moment)
        assert before.until is not None
        assert required(in_window_only(), now=before.until - MILLISECOND).requirements == before.requirements
        assert required(in_window_only(), now=before.until).requirements != before.requirements
        moment = before.until


def test_pods_that_never_get_less_are_not_looked_at_again() -> None:
    found = required({keys.DOWNSCALE_RESTRICTION: "never"}, now=at("2T12:00:00"))
    assert (found.requirements, found.until) == (ONLY_MORE, None)


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ({}, 'is ""; set it to never or in-maintenance-window-only'),
        ({keys.DOWNSCALE_RESTRICTION: "sometimes"}, 'is "sometimes"; set it to never'),
        (in_window_only(None), "is missing or has no comma; set it to begin and end"),
        (in_window_only("220000+0000"), "is missing or has no comma"),
        (in_window_only("0100,0200"), "must be of the form HHMMSS"),
        (in_window_only("220000+0000,250000+0000"), "is not a valid time of day"),
        (in_window_only("220000+0000,230000+0000,"), "must be of the form HHMMSS"),
    ],
)
def test_annotations_that_state_nothing_are_explained(annotations: dict[str, str], message: str) -> None:
    with pytest.raises(RestrictionError, match=message):
        required(annotations, now=at("2T12:00:00"))
