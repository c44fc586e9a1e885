"""The text about the warnings that the cluster has for a Service."""

import weakref
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.resource_manager.common.service_events import SHOWN, events_text, field_selector, warnings_about
from kube.clock import short_duration
from kube.objects import Key, Object
from kube.runtime.client import Client

NOW = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)


def event(message: str, *, first: str | None = None, last: str | None = None, **more: object) -> Object:
    first, last = (text and f"2024-05-01T{text}Z" for text in (first, last))
    source = {"component": "service-controller"}
    return {"message": message, "firstTimestamp": first, "lastTimestamp": last, "source": source, **more}


def test_without_events_there_is_no_text() -> None:
    assert events_text([], now=NOW) == ""


def test_a_repeated_event_reports_how_often_and_since_when() -> None:
    repeated = event("quota exceeded", first="11:56:55", last="11:59:48", count=4)
    assert events_text([repeated], now=NOW) == (
        "-> Events:\n* service-controller reported 12s ago (x4 over 3m5s): quota exceeded"
    )


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (event("m", first="11:00:00", last="11:30:00", count=1), "service-controller reported 60m ago: m"),
        (event("m", first="11:59:59"), "service-controller reported 1s ago: m"),
        (event("m", eventTime="2024-05-01T11:58:00.000000Z"), "service-controller reported 2m ago: m"),
        (event("m"), "service-controller reported <unknown> ago: m"),
        (event("m", count=2), "service-controller reported <unknown> ago (x2 over <unknown>): m"),
        (event("m", first="11:59:59", source={}, reportingComponent="lb"), "lb reported 1s ago: m"),
        (event("m", first="11:59:59", source=None), " reported 1s ago: m"),
    ],
)
def test_an_event_reports_who_reported_it_and_when(given: Object, line: str) -> None:
    assert events_text([given], now=NOW) == f"-> Events:\n* {line}"


def test_the_latest_five_are_reported_the_newest_last() -> None:
    minutes = (3, 1, 6, 2, 5, 4)
    events = [event(str(m), first="11:00:00", last=f"11:0{m}:00") for m in minutes]
    lines = events_text([*events, event("untimed")], now=NOW).splitlines()[1:]
    assert [line[-1] for line in lines] == ["2", "3", "4", "5", "6"]


def test_warnings_about_one_service_are_selected() -> None:
    assert field_selector("a", "lb") == (
        "involvedObject.apiVersion=v1,involvedObject.kind=Service,involvedObject.name=lb,"
        "involvedObject.namespace=a,type=Warning"
    )


MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"), (0.9, "0s"), (-0.5, "0s"), (-1, "0s"), (-2, "<invalid>"), (119, "119s"), (120, "2m"), (185, "3m5s"),
        (10 * MINUTE - 1, "9m59s"), (10 * MINUTE + 5, "10m"), (3 * HOUR - 1, "179m"), (3 * HOUR, "3h"),
        (3 * HOUR + 5 * MINUTE, "3h5m"), (8 * HOUR + 5 * MINUTE, "8h"), (48 * HOUR - 1, "47h"), (48 * HOUR, "2d"),
        (51 * HOUR, "2d3h"), (8 * DAY + HOUR, "8d"), (2 * YEAR - 1, "729d"), (2 * YEAR, "2y"), (2 * YEAR + DAY, "2y1d"),
        (8 * YEAR + DAY, "8y"),
    ],
)  # fmt: skip
def test_durations_read_as_in_kubectl(seconds: float, text: str) -> None:
    assert short_duration(seconds) == text


class _Event(dict[str, Any]):
    """References to it can be counted."""


class _ManyEvents(Client):
    def __init__(self) -> None:
        self.made: list[weakref.ref[_Event]] = []
        self.most_kept = 0

    async def pages(self, *_arguments: Any, **_options: Any) -> AsyncIterator[list[Object]]:
        for minute in range(50):
            page = [_Event(event(f"{minute}:{second}", last=f"10:{minute:02}:{second:02}")) for second in range(10)]
            self.made += map(weakref.ref, page)
            self.most_kept = max(self.most_kept, sum(each() is not None for each in self.made))
            yield list(page)


async def test_of_many_events_only_the_latest_are_kept() -> None:
    client = _ManyEvents()
    reported = await warnings_about(client, Key("n", "s"))
    assert [line.rpartition(" ")[2] for line in reported.splitlines()[1:]] == [
        f"49:{second}" for second in range(5, 10)
    ]
    assert client.most_kept <= 3 * 10 + SHOWN
