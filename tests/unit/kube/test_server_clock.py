"""The time of an API server, by what its answers say."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from kube.runtime.transport import ServerClock

TRUE = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def date(moment: datetime) -> str:
    return format_datetime(moment, usegmt=True)


@pytest.mark.parametrize("behind", [timedelta(0), timedelta(seconds=9), timedelta(seconds=-9)])
def test_the_own_clock_counts_while_both_agree(behind: timedelta) -> None:
    clock = ServerClock(lambda: TRUE - behind)
    clock.note(date(TRUE))
    assert clock() == TRUE - behind


@pytest.mark.parametrize("behind", [timedelta(seconds=11), timedelta(days=400), timedelta(hours=-3)])
def test_the_clock_of_the_api_server_counts_while_they_differ(behind: timedelta) -> None:
    own = TRUE - behind
    clock = ServerClock(lambda: own)
    clock.note(date(TRUE))
    assert clock() == TRUE
    # It is not moved by how long an answer takes.
    clock.note(date(TRUE - timedelta(seconds=4)))
    assert clock() == TRUE
    own = TRUE + timedelta(minutes=1)
    clock.note(date(own))
    assert clock() == own


@pytest.mark.parametrize("unreadable", ["", "yesterday", "Tue, 99 Foo 2026 12:00:00 GMT"])
def test_a_date_that_can_not_be_read_changes_nothing(unreadable: str) -> None:
    clock = ServerClock(lambda: TRUE)
    clock.note(unreadable)
    assert clock() == TRUE
