"""What becomes of a recorded event before it is written."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
import structlog
from prometheus_client import REGISTRY

from kit.clock import FakeClock
from kit.eventually import soon
from kit.objects import reference, secret
from kube.objects import Object
from kube.resources import Resource
from kube.runtime.client import Client
from kube.runtime.events import EventRecorder, Involved, clip, event_name

SECRET = secret("garden/secret", uid="1-2-3", resourceVersion="7")
START = datetime(2024, 9, 19, 10, tzinfo=UTC)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(0.0)


class Recorder(EventRecorder):
    """One that writes when the test states so."""

    def __init__(self, clock: FakeClock, runner: asyncio.Runner) -> None:
        super().__init__(
            cast("Client", self),
            component="manager",
            host="pod-a",
            now=clock,
            utcnow=lambda: START + timedelta(seconds=clock()),
        )
        self._runner, self._sent = runner, list[Object]()

    async def create(self, _: Resource, event: Object, **__: Any) -> None:
        self._sent.append(event)

    async def patch(self, _: Resource, __: str, changes: Object, **___: Any) -> None:
        self._sent.append(changes)

    def written(self) -> list[Object]:
        """Events as they are created, and what changes of existing ones, since the last time."""
        self._sent.clear()
        self._runner.run(self._write_all())
        return list(self._sent)

    async def _write_all(self) -> None:
        writing = asyncio.create_task(self.run())
        await self.drain(60)
        writing.cancel()
        await asyncio.wait([writing])


@pytest.fixture
def recorder(clock: FakeClock) -> Iterator[Recorder]:
    with asyncio.Runner() as runner:
        yield Recorder(clock, runner)


def dropped(reason: str) -> float:
    return REGISTRY.get_sample_value("event_recorder_dropped_total", {"reason": reason}) or 0


# --- the event object


def test_an_event_reports_who_reports_what_about_which_object(recorder: Recorder) -> None:
    recorder.event(SECRET, "Warning", "Failed", "it did not work")
    (event,) = recorder.written()
    name = event["metadata"]["name"]
    assert name.startswith("secret.")
    assert event == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "garden"},
        "involvedObject": reference("v1 Secret", "garden/secret", uid="1-2-3"),
        "type": "Warning",
        "reason": "Failed",
        "message": "it did not work",
        "source": {"component": "manager", "host": "pod-a"},
        "reportingComponent": "manager",
        "reportingInstance": "pod-a",
        "count": 1,
        "firstTimestamp": "2024-09-19T10:00:00Z",
        "lastTimestamp": "2024-09-19T10:00:00Z",
    }


def test_events_of_cluster_scoped_objects_are_in_the_default_namespace(recorder: Recorder) -> None:
    recorder.event({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}, "Normal", "Ready", "")
    (event,) = recorder.written()
    assert event["metadata"]["namespace"] == "default"
    assert event["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "n"}


def test_a_reference_stands_for_its_object() -> None:
    assert Involved.of(Involved.of(SECRET).reference()) == Involved.of(SECRET)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("secret", "secret.ff"),
        ("a.b-c", "a.b-c.ff"),
        ("system:kube_scheduler", "system-kube-scheduler.ff"),
        ("Upper", "upper.ff"),
        ("a..b.-c-.", "a.b.c.ff"),
        ("ü", "event.ff"),
        ("x" * 253, "x" * 250 + ".ff"),
        ("x" * 249 + ".yyy", "x" * 249 + ".ff"),
    ],
)
def test_the_name_of_an_event_is_valid_whatever_the_object_is_called(name: str, expected: str) -> None:
    assert event_name(name, 255) == expected


def test_names_are_not_used_twice(recorder: Recorder) -> None:
    for number in range(1000):
        recorder.event(secret("garden/secret", uid=str(number)), "Normal", "A", "")
    assert len({event["metadata"]["name"] for event in recorder.written()}) == 1000


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("short", "short"),
        ("x" * 1024, "x" * 1024),
        ("x" * 1025, "x" * 1021 + "…"),
        ("ü" * 600, "ü" * 510 + "…"),
        ("lone \ud800 surrogate", "lone ? surrogate"),
    ],
)
def test_a_message_is_cut_to_1024_bytes(message: str, expected: str) -> None:
    assert clip(message) == expected
    assert len(clip(message).encode()) <= 1024


# --- repeats


def test_repeats_before_the_first_is_written_are_written_with_it(recorder: Recorder, clock: FakeClock) -> None:
    for _ in range(5):
        recorder.event(SECRET, "Normal", "Same", "same")
        clock.now += 1
    (event,) = recorder.written()
    assert event["count"] == 5
    assert (event["firstTimestamp"], event["lastTimestamp"]) == ("2024-09-19T10:00:00Z", "2024-09-19T10:00:04Z")


@pytest.mark.parametrize(
    ("seconds", "count"),
    [
        pytest.param(600, 2, id="within ten minutes raises the count"),
        pytest.param(601, 1, id="after more is a new event"),
    ],
)
def test_a_repeat(recorder: Recorder, clock: FakeClock, seconds: float, count: int) -> None:
    recorder.event(SECRET, "Normal", "Same", "same")
    recorder.written()
    clock.now = seconds
    recorder.event(SECRET, "Normal", "Same", "same")
    assert [event["count"] for event in recorder.written()] == [count]


def test_a_new_resource_version_does_not_make_another_event(recorder: Recorder) -> None:
    recorder.event(SECRET, "Normal", "Same", "same")
    changed = secret("garden/secret", uid="1-2-3", resourceVersion="8")
    recorder.event(changed, "Normal", "Same", "same")
    assert [event["count"] for event in recorder.written()] == [2]


def test_another_object_type_reason_or_message_makes_another_event(recorder: Recorder) -> None:
    recorder.event(SECRET, "Normal", "A", "a")
    recorder.event(secret("garden/secret", uid="4-5-6"), "Normal", "A", "a")
    recorder.event(SECRET, "Warning", "A", "a")
    recorder.event(SECRET, "Normal", "B", "a")
    recorder.event(SECRET, "Normal", "A", "b")
    assert [event["count"] for event in recorder.written()] == [1] * 5


# --- bounds


def test_an_object_may_have_25_events_and_then_one_in_five_minutes(recorder: Recorder, clock: FakeClock) -> None:
    def accepted(count: int) -> int:
        for number in range(count):
            recorder.event(SECRET, "Normal", "Many", f"{clock.now} {number}")
        return len(recorder.written())

    assert accepted(27) == 25
    clock.now = 299
    assert accepted(1) == 0
    clock.now = 301
    assert accepted(2) == 1
    clock.now = 1e6
    assert accepted(26) == 25


def test_events_of_an_object_that_has_had_too_many_are_dropped_and_counted(recorder: Recorder) -> None:
    before = dropped("rate_limited")
    for number in range(30):
        recorder.event(SECRET, "Normal", "Many", str(number))
    recorder.event({**SECRET, "kind": "ConfigMap"}, "Normal", "Many", "another object")
    assert [event["message"] for event in recorder.written()] == [*map(str, range(25)), "another object"]
    assert dropped("rate_limited") - before == 5


def test_repeats_that_were_not_written_count_with_the_next(recorder: Recorder, clock: FakeClock) -> None:
    for _ in range(30):
        recorder.event(SECRET, "Normal", "Same", "same")
        recorder.written()
    clock.now = 300
    recorder.event(SECRET, "Normal", "Same", "same")
    assert [event["count"] for event in recorder.written()] == [31]


def test_events_that_find_the_queue_full_are_dropped_and_counted(recorder: Recorder) -> None:
    before = dropped("queue_full")
    for number in range(1100):
        recorder.event({"kind": "Node", "name": f"node-{number}"}, "Normal", "Ready", "")
    assert len(recorder.written()) == 1000
    assert dropped("queue_full") - before == 100


def test_events_that_are_not_counted_up_any_more_are_forgotten(recorder: Recorder, clock: FakeClock) -> None:
    for number in range(30):
        recorder.event(SECRET, "Normal", "Changed", f"{number}")
        clock.now += 60.0
    assert len(recorder._series) == 11  # those of the last ten minutes


def test_objects_that_may_have_all_events_again_are_forgotten(recorder: Recorder, clock: FakeClock) -> None:
    for number in range(30):
        recorder.event({"kind": "Node", "name": f"node-{number}"}, "Normal", "Ready", "")
        clock.now += 60.0
    assert len(recorder._allowances) == 5  # those of the last five minutes


def test_what_is_remembered_is_bounded(recorder: Recorder) -> None:
    for number in range(10_000):
        recorder.event({"kind": "Node", "name": f"node-{number}"}, "Normal", "Ready", "")
        if number % 1000 == 999:
            recorder.written()
    assert len(recorder._series) == len(recorder._allowances) == 4096


@pytest.mark.parametrize("about", [{}, {"metadata": {"name": "x"}}, {"kind": "Node", "metadata": None}, None, "x"])
def test_recording_never_raises(recorder: Recorder, about: Any) -> None:
    recorder.event(about, "Normal", "Reason", "message")
    assert recorder.written() == []


def test_a_part_may_speak_in_its_own_name(recorder: Recorder) -> None:
    recorder.event(SECRET, "Normal", "Same", "same", reporter="networkpolicy-controller")
    (event,) = recorder.written()
    assert event["reportingComponent"] == "networkpolicy-controller"
    assert event["source"] == {"component": "networkpolicy-controller", "host": "pod-a"}


# --- writing


class Stuck:
    """A client that fails at first, and then does not answer."""

    def __init__(self) -> None:
        self.requested: list[str] = []

    async def create(self, *args: Any, **_: Any) -> None:
        self.requested.append(args[1]["message"])
        if len(self.requested) == 1:
            raise KeyError("x")
        await asyncio.Event().wait()


async def test_an_event_that_can_not_be_written_or_not_in_time_blocks_no_caller() -> None:
    client, before = Stuck(), dropped("failed")
    recorder = EventRecorder(cast("Client", client), component="manager")
    writing = asyncio.create_task(recorder.run())
    for message in "abc":
        recorder.event(SECRET, "Normal", "R", message)
    await soon(lambda: client.requested == ["a", "b"])
    assert dropped("failed") - before == 1
    with structlog.testing.capture_logs() as logs:
        await recorder.drain(0.01)
    assert [(entry["event"], entry["count"]) for entry in logs] == [("Some events were not written in time", 1)]
    writing.cancel()
    await asyncio.wait([writing])
