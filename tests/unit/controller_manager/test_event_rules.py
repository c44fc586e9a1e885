"""How old an Event is, and that those of Shoots are left alone."""

from datetime import UTC, datetime
from typing import Any

import pytest

from agent.controller_manager.event import last_seen
from kube.objects import Object


def event(kind: str = "Pod", api_version: str = "v1", **fields: Any) -> Object:
    created = {"creationTimestamp": "2026-01-01T01:00:00Z"}
    return {"metadata": created, "involvedObject": {"kind": kind, "apiVersion": api_version}, **fields}


@pytest.mark.parametrize(
    ("fields", "hour"),
    [
        ({}, 1),
        ({"eventTime": "2026-01-01T02:00:00.123456Z"}, 2),
        ({"eventTime": None, "lastTimestamp": "2026-01-01T03:00:00Z"}, 3),
        ({"eventTime": "2026-01-01T02:00:00.000000Z", "lastTimestamp": "2026-01-01T03:00:00Z"}, 3),
        ({"series": {"lastObservedTime": "2026-01-01T04:00:00.5Z"}, "lastTimestamp": "2026-01-01T03:00:00Z"}, 4),
        ({"series": {}, "lastTimestamp": None}, 1),
    ],
)
def test_an_event_is_as_old_as_its_last_repeat(fields: Object, hour: int) -> None:
    seen = last_seen(event(**fields))
    assert seen is not None
    assert seen.replace(microsecond=0) == datetime(2026, 1, 1, hour, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "api_version", "kept"),
    [
        ("Shoot", "core.gardener.cloud/v1beta1", True),
        ("Shoot", "core.gardener.cloud/v1alpha1", True),
        ("Shoot", "other.example.com/v1", False),
        ("Shoot", "core.gardener.cloud", False),
        ("Seed", "core.gardener.cloud/v1beta1", False),
    ],
)
def test_events_of_shoots_are_left_alone(kind: str, api_version: str, kept: bool) -> None:
    assert (last_seen(event(kind, api_version)) is None) is kept
