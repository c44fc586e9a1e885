"""When schedules of hibernation are due: clocks of all time zones, deadlines, ties."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardener.garden.cron import Cron, Every, parse_cron
from gardener.garden.hibernation import Activation, due, earliest, entries, gives_up, is_possible, upcoming
from kit.garden_objects import shoot
from kube.clock import format_time
from kube.objects import Object

HOUR, DEADLINE = timedelta(hours=1), timedelta(hours=2)
WORKDAYS = [{"start": "0 20 * * 1-5", "end": "0 6 * * 1-5", "location": "Europe/Berlin"}]
TUESDAY = datetime(2024, 1, 16, tzinfo=UTC)
ZONES = sorted(available_timezones() - {"Factory", "localtime"})
PLACES = ("UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca")


def hibernated(*schedules: dict[str, str], created: datetime = TUESDAY, last: datetime | None = None) -> Object:
    return shoot(
        generation=2,
        creationTimestamp=format_time(created),
        hibernation={"schedules": list(schedules)},
        status={} if last is None else {"lastHibernationTriggerTime": format_time(last)},
    )


def found(obj: dict[str, Any], now: datetime, deadline: timedelta = DEADLINE) -> Activation | None:
    return due(entries(obj), after=earliest(obj, now=now, deadline=deadline), now=now)


# --- cron expressions and clocks


@pytest.mark.parametrize(
    ("text", "zone", "after", "expected"),
    [
        # The hour that is skipped does not come, others do.
        ("30 2 * * *", "Europe/Berlin", "2024-03-30T12:00+01:00", "2024-04-01T02:30+02:00"),
        ("30 3 * * *", "Europe/Berlin", "2024-03-30T12:00+01:00", "2024-03-31T03:30+02:00"),
        ("*/30 1-3 * * *", "Europe/Berlin", "2024-03-31T01:30+01:00", "2024-03-31T03:00+02:00"),
        # The hour that comes twice.
        ("30 2 * * *", "Europe/Berlin", "2024-10-27T00:00+02:00", "2024-10-27T02:30+02:00"),
        ("30 2 * * *", "Europe/Berlin", "2024-10-27T02:30+02:00", "2024-10-27T02:30+01:00"),
        ("0 20 * * *", "Europe/Berlin", "2024-10-26T20:00+02:00", "2024-10-27T20:00+01:00"),
        # Midnight is skipped.
        ("0 0 * * *", "America/Santiago", "2024-09-07T12:00-04:00", "2024-09-09T00:00-03:00"),
        # A change of half an hour, and a zone that is three quarters of an hour off.
        ("15 2 * * *", "Australia/Lord_Howe", "2024-10-05T12:00+10:30", "2024-10-07T02:15+11:00"),
        ("0 2 * * *", "Australia/Lord_Howe", "2024-04-06T12:00+11:00", "2024-04-07T02:00+10:30"),
        ("0 0 * * *", "Asia/Kathmandu", "2024-10-05T12:00+05:45", "2024-10-06T00:00+05:45"),
        # A day that was left out.
        ("0 12 * * *", "Pacific/Apia", "2011-12-29T12:00-10:00", "2011-12-31T12:00+14:00"),
        ("0 20 * * 0", "Europe/Berlin", "2024-01-16T12:00+01:00", "2024-01-21T20:00+01:00"),
        ("0 20 1 JAN ?", "Europe/Berlin", "2024-01-16T12:00+01:00", "2025-01-01T20:00+01:00"),
        ("0 20 13 * FRI", "Europe/Berlin", "2024-01-16T12:00+01:00", "2024-01-19T20:00+01:00"),
        ("@hourly", "Europe/Berlin", "2024-10-27T02:00+02:00", "2024-10-27T02:00+01:00"),
    ],
)
def test_the_next_time_that_clocks_show(text: str, zone: str, after: str, expected: str) -> None:
    found_time = parse_cron(text).next(datetime.fromisoformat(after).astimezone(ZoneInfo(zone)))
    assert found_time is not None
    assert _utc(found_time) == _utc(datetime.fromisoformat(expected))


def _utc(moment: datetime | None) -> datetime | None:
    """Python takes a time that comes twice for unequal to all times of other zones."""
    return None if moment is None else moment.astimezone(UTC)


EXPRESSIONS = st.builds(
    "{} {} * * {}".format,
    st.sampled_from(("0", "30", "*/20", "59", "7")),
    st.sampled_from(("0", "1", "2", "3", "23", "*", "*/2", "1-3")),
    st.sampled_from(("*", "0", "1-5", "sun,mon")),
)
CHANGES = st.sampled_from((datetime(2024, 3, 31, tzinfo=UTC), datetime(2024, 10, 27, tzinfo=UTC), TUESDAY))
MOMENTS = st.builds(lambda day, minutes: day + timedelta(minutes=minutes), CHANGES, st.integers(-3000, 3000))


@given(EXPRESSIONS, MOMENTS, st.sampled_from(PLACES))
def test_next_is_the_first_minute_whose_clocks_fit(text: str, after: datetime, place: str) -> None:
    cron, zone = parse_cron(text), ZoneInfo(place)
    assert isinstance(cron, Cron)
    following = cron.next(after.astimezone(zone))
    assert following is not None
    between = _minutes(after + timedelta(minutes=1), following)
    assert _fits(cron, following)
    assert not any(_fits(cron, each.astimezone(zone)) for each in between)


@given(EXPRESSIONS, MOMENTS, st.integers(0, 50), st.sampled_from(PLACES))
def test_last_is_the_last_minute_whose_clocks_fit(text: str, until: datetime, hours: int, place: str) -> None:
    cron, zone, after = parse_cron(text), ZoneInfo(place), until - hours * HOUR
    assert isinstance(cron, Cron)
    fitting = [each for each in _minutes(after, until) if each > after and _fits(cron, each.astimezone(zone))]
    if _fits(cron, until.astimezone(zone)) and hours:
        fitting.append(until)
    assert _utc(cron.last(after, until.astimezone(zone))) == max(fitting, default=None)


def _minutes(begin: datetime, end: datetime) -> list[datetime]:
    """Whole minutes from the one until before the other, in UTC."""
    minutes = (end.astimezone(UTC) - begin.astimezone(UTC)) // timedelta(minutes=1)
    return [begin.astimezone(UTC) + timedelta(minutes=each) for each in range(minutes)]


def _fits(cron: Cron, shown: datetime) -> bool:
    is_day = shown.day in cron.days and shown.isoweekday() % 7 in cron.weekdays
    return shown.minute in cron.minutes and shown.hour in cron.hours and is_day


@given(st.sampled_from(ZONES), st.sampled_from(("0 20 * * *", "30 2 * * 1-5", "@daily")), MOMENTS)
def test_in_every_zone_of_the_world_what_is_next_is_last_then(place: str, text: str, after: datetime) -> None:
    cron, zone = parse_cron(text), ZoneInfo(place)
    following = cron.next(after.astimezone(zone))
    assert following is not None
    assert following.astimezone(UTC) > after
    assert _utc(cron.last(after, following)) == following.astimezone(UTC)
    assert cron.last(after, (following.astimezone(UTC) - timedelta(minutes=1)).astimezone(zone)) is None


def test_intervals_count_from_the_moment_that_is_queried_about() -> None:
    every = parse_cron("@every 45m")
    assert isinstance(every, Every)
    assert every.next(TUESDAY) == TUESDAY + timedelta(minutes=45)
    assert every.last(TUESDAY, TUESDAY + timedelta(minutes=44)) is None
    assert every.last(TUESDAY, TUESDAY + timedelta(minutes=100)) == TUESDAY + timedelta(minutes=90)


# --- what is due


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("19:00", ("19:00", True)),
        ("20:30", ("19:00", True)),
        ("21:00", None),
        ("21:30", None),
        ("18:59", None),
        ("05:00", ("05:00", False)),
        ("06:59", ("05:00", False)),
    ],
)
def test_what_is_missed_is_made_up_for_within_the_deadline(now: str, expected: tuple[str, bool] | None) -> None:
    """In winter 20:00 in Berlin is 19:00 UTC."""
    activation = found(hibernated(*WORKDAYS, created=TUESDAY - 20 * HOUR), _at(now))
    if expected is None:
        assert activation is None
    else:
        assert activation == Activation(_at(expected[0]), hibernates=expected[1])


def _at(time: str) -> datetime:
    return datetime.fromisoformat(f"{TUESDAY.date()}T{time}+00:00")


@pytest.mark.parametrize(("now", "seconds"), [("21:30", 7.5 * 3600), ("18:30", 1800.0), ("04:59", 60.0)])
def test_the_next_time_is_the_nearest_of_all(now: str, seconds: float) -> None:
    following = upcoming(entries(hibernated(*WORKDAYS)), now=_at(now))
    assert following is not None
    assert (following.moment - _at(now)).total_seconds() == seconds


@pytest.mark.parametrize(
    ("schedules", "hibernates"),
    [
        ([{"start": "0 10 * * *", "end": "5 10 * * *"}], False),
        ([{"start": "5 10 * * *", "end": "0 10 * * *"}], True),
        ([{"start": "0 10 * * *"}, {"end": "4 10 * * *"}], False),
        # At the same time the first counts, and within a schedule the start.
        ([{"start": "0 10 * * *", "end": "0 10 * * *"}], True),
        ([{"end": "0 10 * * *"}, {"start": "0 10 * * *"}], False),
        ([{"start": "0 10 * * *"}, {"end": "0 10 */1 * *"}], True),
        # Clocks of different places that show different times.
        (
            [{"start": "0 12 * * *", "location": "Europe/Athens"}, {"end": "5 11 * * *", "location": "Europe/Berlin"}],
            False,
        ),
    ],
)
def test_of_several_that_were_due_the_last_one_counts(schedules: list[dict[str, str]], hibernates: bool) -> None:
    activation = found(hibernated(*schedules), _at("10:30"))
    assert activation is not None
    assert activation.hibernates is hibernates


@pytest.mark.parametrize(
    ("obj", "since"),
    [
        (hibernated(created=_at("09:30")), "09:30"),
        (hibernated(created=_at("01:00")), "08:00"),
        (hibernated(created=_at("01:00"), last=_at("09:00")), "09:00"),
        (hibernated(created=_at("01:00"), last=_at("07:59")), "08:00"),
        ({"metadata": {}}, "10:00"),
        ({"metadata": {"creationTimestamp": "soon"}}, "10:00"),
    ],
)
def test_how_far_back_is_looked(obj: dict[str, Any], since: str) -> None:
    assert earliest(obj, now=_at("10:00"), deadline=DEADLINE) == _at(since)


def test_nothing_older_than_a_week_is_made_up_for() -> None:
    now = TUESDAY
    assert earliest(hibernated(created=now - 30 * 24 * HOUR), now=now, deadline=40 * 24 * HOUR) == now - 7 * 24 * HOUR


def test_what_was_done_is_not_done_again() -> None:
    assert found(hibernated(*WORKDAYS, last=_at("19:00")), _at("19:30")) is None


@given(st.sampled_from(PLACES), MOMENTS, st.integers(1, 7 * 24))
def test_what_is_due_is_never_older_than_the_deadline(place: str, now: datetime, hours: int) -> None:
    schedule = {"start": "0 20 * * *", "end": "0 6 * * *", "location": place}
    activation = found(hibernated(schedule, created=now - 9 * 24 * HOUR), now, hours * HOUR)
    assert activation is None or now - hours * HOUR < activation.moment <= now


@pytest.mark.parametrize(
    ("schedule", "named"),
    [
        ({"start": "x"}, r"schedules\[0\].start: not a valid cron expression"),
        ({"start": "0 20 * * *", "end": "0 25 * * *"}, r"schedules\[0\].end: not a valid"),
        ({"start": "0 20 * * *", "location": "Europe/Nowhere"}, r"schedules\[0\].location: time zone 'Europe/Nowhere'"),
        ({"start": "0 20 * * *", "location": "../etc"}, "location"),
    ],
)
def test_what_can_not_be_read_is_named(schedule: dict[str, str], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        entries(hibernated(schedule))


# --- when a Shoot is left alone


@pytest.mark.parametrize(
    ("state", "observed", "by", "expected"),
    [
        ("Failed", 2, "v1.2.3", True),
        ("Failed", 2, "v0.0.0-master+abc", True),
        ("Failed", 2, "v1.1.0", False),
        ("Failed", 2, "", False),
        ("Failed", 1, "v1.2.3", False),
        ("Error", 2, "v1.2.3", False),
        ("Succeeded", 2, "v1.2.3", False),
    ],
)
def test_what_has_failed_with_this_version_is_left_alone(state: str, observed: int, by: str, expected: bool) -> None:
    status = {"lastOperation": {"state": state}, "observedGeneration": observed, "gardener": {"version": by}}
    assert gives_up({**hibernated(), "status": status}, version="v1.2.3") is expected


@pytest.mark.parametrize(("status", "expected"), [("True", True), ("False", False), ("Unknown", False), (None, True)])
def test_whether_the_cluster_may_go_to_sleep(status: str | None, expected: bool) -> None:
    constraints = [{"type": "Other", "status": "False"}]
    constraints += [] if status is None else [{"type": "HibernationPossible", "status": status}]
    assert is_possible({"status": {"constraints": constraints}}) is expected
