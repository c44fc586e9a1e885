"""Which changes of Shoots lead to a look at their schedules, or to maintenance."""

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.controller_manager.shoot.hibernation import triggers
from agent.controller_manager.shoot.maintenance import handler
from kit.garden_objects import shoot
from kube.objects import Key, Object
from kube.runtime.cache import Change
from kube.runtime.queue import WorkQueue

KEY = Key("ns", "s")
NOON = datetime(2024, 1, 16, 12, tzinfo=UTC)
NIGHT = [{"start": "0 20 * * *"}]
OPEN, CLOSED = ("110000+0000", "140000+0000"), ("200000+0000", "210000+0000")
DELETED: Object = {"deletionTimestamp": "2024-01-16T11:00:00Z"}


def planned(
    schedules: list[Object] | None = None, *, window: tuple[str, str] = CLOSED, possible: str = "", **meta: Any
) -> Object:
    constraints = [{"type": "HibernationPossible", "status": possible}] if possible else []
    return shoot(
        "",
        hibernation={"schedules": schedules or []},
        maintenance={"timeWindow": dict(zip(("begin", "end"), window, strict=True))},
        status={"constraints": constraints},
        **meta,
    )


def change(old: Object | None, new: Object | None, *, initial: bool = False) -> Change[Object]:
    return Change(key=KEY, old=copy.deepcopy(old), new=copy.deepcopy(new), initial=initial)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, planned(NIGHT), True),
        (None, planned(), False),
        (planned(), planned(NIGHT), True),
        (planned(NIGHT), planned([{"start": "0 21 * * *"}]), True),
        (planned(NIGHT), planned(), False),
        (planned(NIGHT), None, False),
        (planned(NIGHT), planned(NIGHT, labels={"a": "b"}), False),
        (planned(NIGHT, possible="False"), planned(NIGHT, possible="True"), True),
        (planned(NIGHT, possible="True"), planned(NIGHT), False),
    ],
)
def test_changes_that_lead_to_a_look_at_schedules(old: Object | None, new: Object | None, expected: bool) -> None:
    assert triggers(change(old, new)) is expected


def requested(operation: str = "maintain") -> Object:
    return planned(annotations={"gardener.cloud/operation": operation})


@pytest.mark.parametrize(
    ("old", "new", "initial", "after"),
    [
        (None, planned(), False, 0.0),
        (None, planned(window=OPEN), False, 0.0),
        (planned(), requested(), False, 0.0),
        (requested("reconcile"), requested(), False, 0.0),
        (planned(), planned(window=OPEN), False, 0.0),
        (requested(), requested(), False, None),
        (requested(), planned(), False, None),
        (planned(), requested("reconcile"), False, None),
        (planned(), planned(NIGHT), False, None),
        (planned(window=OPEN), planned(window=OPEN), True, None),
        (planned(), None, False, None),
        (planned(), planned(window=OPEN, **DELETED), False, None),
        # What is found at the start: what is late is spread over what is left of the window.
        (None, planned(), True, 0.0),
        (None, requested(), True, 0.0),
        (None, planned(window=OPEN), True, 105 * 60.0),
        (None, planned(window=OPEN, **DELETED), True, None),
    ],
)
def test_changes_that_lead_to_maintenance(
    old: Object | None, new: Object | None, initial: bool, after: float | None
) -> None:
    """After so many seconds, at most."""
    queue = Recorded()
    handler(lambda: NOON, lambda _, high: high)(queue, change(old, new, initial=initial))
    assert queue.added == ([] if after is None else [after])


class Recorded(WorkQueue[Key]):
    """Remembers when its keys are due."""

    def __init__(self) -> None:
        self.added: list[float] = []

    def add(self, key: Key, *_: Any) -> None:
        self.add_after(key, 0.0)

    def add_after(self, key: Key, seconds: float, *_: Any) -> None:
        assert key == KEY
        self.added.append(seconds)
