"""The report of a soak: its result, its tables, its pictures."""

import json
from collections import Counter

import pytest

from benchmarks.sampling import Sample
from benchmarks.soak_report import Outcome, Process, is_good

MARKS = {"rest before": 60.0, "load": 120.0, "load ends": 1320.0, "rest after": 1500.0, "end": 1560.0}


def sample(at: float, *, watches: int = 18) -> Sample:
    levels = {"files": 20, "threads": 3, "tasks": 50, "watches": watches, "queued": 0}
    return Sample(at=at, resident=70.0, cpu=at * 0.05, calls=at * 10, **levels)


def outcome(*, leak: int = 0, left: int = 0, log: str = "") -> Outcome:
    """Args: leak: watches that are added each minute under load; left: those that stay when idle."""
    samples = []
    for at in range(0, 1560, 5):
        loaded = MARKS["load"] < at < MARKS["load ends"]
        watches = 18 + leak * (at // 60) * loaded + left * (at > MARKS["rest after"])
        samples.append(sample(float(at), watches=watches))
    entries = [json.dumps({"level": "info", "msg": "fine"}), *([log] if log else [])]
    return Outcome(
        minutes=20,
        marks=MARKS,
        processes=[Process(name=name, limits="1Gi", samples=samples, log=entries) for name in ("agent", "webhooks")],
        done=Counter(drift=7),
        failed=Counter({"nodes: Conflict": 1}),
        injected=Counter({"watch-reset": 3}),
        idle_writes={("patch", "secrets"): 2},
        averages=[1.0, 3.0, 2.0],
    )


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (outcome(), True),
        (outcome(leak=1), False),
        (outcome(left=2), False),
        (outcome(log=json.dumps({"level": "error", "msg": "boom"})), False),
        (outcome(log=json.dumps({"level": "error", "msg": "cut", "error": "Connection reset by peer"})), True),
    ],
)
def test_it_is_good_if_nothing_grows_or_stays_or_fails(found: Outcome, expected: bool) -> None:
    assert is_good(found) is expected
