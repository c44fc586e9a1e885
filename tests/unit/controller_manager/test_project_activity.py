"""Which changes count as activity in a Project."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.controller_manager.common.rules.credentials import Credentials
from agent.controller_manager.project.activity import Moments, is_news, of_credentials, of_objects, of_quotas
from kit.garden_objects import shoot
from kube.clock import format_time
from kube.objects import Object

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
REFERENCE, OTHER = "reference.gardener.cloud/secretbinding", "reference.gardener.cloud/credentialsbinding"


def before(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def aged(generation: int = 1, *, age: float = 0, **metadata: Any) -> Object:
    return shoot("", generation=generation, creationTimestamp=format_time(before(age)), **metadata)


def secret(*labels: str, age: float = 0, **metadata: Any) -> Object:
    return aged(0, age=age, labels=dict.fromkeys(labels, "true"), namespace="garden-dev", **metadata)


@pytest.mark.parametrize(
    ("old", "new", "initial", "expected"),
    [
        (None, aged(), False, NOW),
        (None, aged(age=59), False, NOW),
        (None, aged(age=61), False, None),
        (None, aged(age=20), True, before(20)),
        (None, aged(age=61), True, None),
        (aged(1, age=900), aged(2, age=900), False, NOW),
        (aged(1, age=900), aged(2, age=900), True, NOW),
        (aged(), aged(labels={"a": "b"}), False, None),
        (aged(), aged(), True, None),
        (aged(age=900), None, False, NOW),
    ],
)
def test_shoots_count_when_they_come_go_or_get_another_spec(
    old: Object | None, new: Object | None, initial: bool, expected: datetime | None
) -> None:
    assert of_objects(old, new, now=NOW, initial=initial) == expected


@pytest.mark.parametrize(
    ("old", "new", "initial", "expected"),
    [
        (None, secret(REFERENCE), False, NOW),
        (None, secret(), False, None),
        (None, secret(OTHER, age=30), True, before(30)),
        (None, secret(OTHER, age=61), True, None),
        (secret(REFERENCE), secret(REFERENCE), False, NOW),  # its content
        (secret(REFERENCE), secret(REFERENCE), True, None),  # a resync
        (secret(), secret(), False, None),
        # labels and finalizers of controllers
        (secret(), secret(REFERENCE, finalizers=["gardener.cloud/gardener"]), False, None),
        (secret(REFERENCE), secret(REFERENCE, "provider.shoot.gardener.cloud/local"), False, None),
        (secret(REFERENCE), secret(REFERENCE, finalizers=["gardener.cloud/reference-protection"]), False, None),
        (secret(REFERENCE), secret(), False, None),
        (secret(REFERENCE), secret(REFERENCE, deletionTimestamp="2026-05-01T12:00:00Z"), False, NOW),
        (secret(REFERENCE, age=900), None, False, NOW),
        (secret(age=900), None, False, None),
    ],
)
def test_credentials_count_while_bindings_refer_to_them(
    old: Object | None, new: Object | None, initial: bool, expected: datetime | None
) -> None:
    kept = [None if each is None else Credentials.of(each) for each in (old, new)]
    assert of_credentials(kept[0], kept[1], now=NOW, initial=initial) == expected
    assert of_quotas(old, new, now=NOW, initial=initial) == expected


@pytest.mark.parametrize(
    ("recorded", "expected"), [(None, True), (200, True), (1, True), (0.9, False), (0, False), (-5, False)]
)
def test_activity_within_a_minute_is_recorded_once(recorded: float | None, expected: bool) -> None:
    assert is_news("" if recorded is None else format_time(before(recorded)), NOW) is expected


def test_a_later_moment_is_not_lost_while_one_is_recorded() -> None:
    moments, namespace = Moments(), "garden-dev"
    moments.add(namespace, NOW)
    moments.add(namespace, before(1))
    assert moments.get(namespace) == NOW
    later = NOW + timedelta(minutes=1)
    moments.add(namespace, later)
    moments.recorded(namespace, NOW)
    assert moments.get(namespace) == later
    moments.recorded(namespace, later)
    assert moments.get(namespace) is None


def test_activity_in_namespaces_of_no_project_is_forgotten_in_the_end() -> None:
    moments = Moments()
    for number in range(10_001):
        moments.add(f"n{number}", NOW)
    assert (moments.get("n0"), moments.get("n1"), moments.get("n10000")) == (None, NOW, NOW)
