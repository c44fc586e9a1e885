"""Until when there is a use for a Bastion."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.controller_manager.bastion import Bastion, end, moves_or_goes, why_useless
from gardener import keys
from gardener.api.garden import BASTIONS
from kit.garden_objects import garden_object, shoot
from kube.clock import format_time
from kube.objects import Key, Object
from kube.runtime.cache import Change

TEN = datetime(2026, 1, 1, 10, tzinfo=UTC)
DAY = timedelta(days=1)


def bastion(*, expires: datetime | None = None, **metadata: object) -> Bastion:
    obj = garden_object(BASTIONS, "b", namespace="garden-dev", creationTimestamp=format_time(TEN), **metadata)
    obj["spec"]["seedName"] = "one"
    if expires is not None:
        obj["status"] = {"expirationTimestamp": format_time(expires), "lastHeartbeatTimestamp": format_time(TEN)}
    return Bastion.of(obj)


def on(seed: str, **metadata: Any) -> Object:
    return shoot("garden-dev/shoot", whole=True, seedName=seed, **metadata)


def test_it_lives_an_hour_from_heartbeat_to_heartbeat_and_a_day_at_most() -> None:
    hours = [1.0, 1.8, 24.5]
    ends = [end(bastion(expires=TEN + timedelta(hours=each)), max_lifetime=DAY) for each in hours]
    assert ends == [TEN + timedelta(hours=1), TEN + timedelta(hours=1.8), TEN + DAY]
    assert end(bastion(), max_lifetime=DAY) == TEN + DAY


@pytest.mark.parametrize(
    ("of", "useless"),
    [
        (on("one"), False),
        (on("two"), True),
        (on(""), True),
        (on("one", deletionTimestamp="2026-01-01T11:00:00Z"), True),
        (None, True),
    ],
)
def test_it_is_useless_without_its_shoot_on_its_seed(of: Object | None, useless: bool) -> None:
    assert bool(why_useless(bastion(), of)) is useless


def test_it_requests_a_heartbeat_if_it_has_none_or_is_kept_alive() -> None:
    keepalive = {keys.OPERATION: "keepalive"}
    beating, kept = bastion(expires=TEN), bastion(expires=TEN, annotations=keepalive)
    assert (bastion().asks_for_heartbeat, beating.asks_for_heartbeat, kept.asks_for_heartbeat) == (True, False, True)
    assert (bastion().is_kept_alive, kept.is_kept_alive) == (False, True)


def test_it_belongs_to_a_shoot_of_its_namespace() -> None:
    assert bastion().shoot == Key("garden-dev", "shoot")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, on("one"), False),
        (on("one"), on("one", labels={"a": "b"}), False),
        (on("one"), on("two"), True),
        (on("one"), on("one", deletionTimestamp="2026-01-01T11:00:00Z"), True),
        (on("one"), None, True),
    ],
)
def test_a_shoot_that_moves_or_goes_is_seen(old: Object | None, new: Object | None, expected: bool) -> None:
    assert moves_or_goes(Change(Key("ns", "s"), old, new, initial=False)) is expected


@given(status=st.dictionaries(st.sampled_from(["expirationTimestamp", "lastHeartbeatTimestamp"]), st.text()))
def test_times_that_are_none_do_not_count(status: dict[str, str]) -> None:
    obj = garden_object(BASTIONS, creationTimestamp=format_time(TEN)) | {"status": status}
    until = end(Bastion.of(obj), max_lifetime=DAY)
    assert until is not None
    assert until <= TEN + DAY
