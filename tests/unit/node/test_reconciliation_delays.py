"""Delays of node agents are spread evenly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.resource_manager.node.agent_reconciliation_delay import (
    LONGEST_WAIT_SECONDS,
    QUIET_SECONDS,
    Debounce,
    delays,
)
from kit.clock import FakeClock
from kube.clock import parse_duration

SEVEN = "0s 42.857142857s 1m25.714285714s 2m8.571428571s 2m51.428571428s 3m34.285714285s 4m17.142857142s"


@pytest.mark.parametrize(
    ("least", "most", "count", "expected"),
    [
        (0, 300, 0, ""),
        (0, 300, 1, "0s"),
        (0, 300, 3, "0s 1m40s 3m20s"),
        (0, 300, 7, SEVEN),
        (5, 30, 10, "5s 7.5s 10s 12.5s 15s 17.5s 20s 22.5s 25s 27.5s"),
        (0, 1800, 4, "0s 7m30s 15m0s 22m30s"),
        (0, 1, 3, "0s 333.333333ms 666.666666ms"),
        (60, 60, 2, "1m0s 1m0s"),
        (0, 7200, 2, "0s 1h0m0s"),
    ],
)
def test_delays_of_sorted_nodes(least: float, most: float, count: int, expected: str) -> None:
    names = [f"n{i}" for i in range(count)]
    assert list(delays(reversed(names), least=least, most=most).values()) == expected.split()


def test_fractions_are_cut() -> None:
    found = list(delays([f"n{i:02}" for i in range(31)], least=5, most=30).values())
    assert found[:4] == ["5s", "5.806451612s", "6.612903225s", "7.419354838s"]
    assert found[7] == "10.64516129s"


def test_names_are_sorted_as_bytes() -> None:
    assert delays(["n-2", "n-10", "n-1"], least=0, most=300) == {"n-1": "0s", "n-10": "1m40s", "n-2": "3m20s"}


@given(st.sets(st.text("ab-.1", min_size=1), max_size=40), st.floats(0, 3600), st.floats(0, 3600))
def test_delays_are_between_the_bounds_and_grow(names: set[str], first: float, second: float) -> None:
    least, most = sorted((first, second))
    found = delays(names, least=least, most=most)
    assert found.keys() == names
    seconds = [parse_duration(found[name]) for name in sorted(names)]
    assert seconds == sorted(seconds)
    assert all(least - 1e-6 <= each <= most for each in seconds)


def test_nothing_is_computed_while_nodes_come() -> None:
    clock = FakeClock()
    unrest = Debounce(now=clock)
    assert unrest.remaining() == 0
    unrest.restart()
    assert unrest.remaining() == QUIET_SECONDS
    clock.now += 0.75
    unrest.restart()
    assert unrest.remaining() == QUIET_SECONDS
    clock.now += QUIET_SECONDS
    assert unrest.remaining() == 0
    unrest.restart()
    assert unrest.remaining() == QUIET_SECONDS


def test_unrest_has_an_end() -> None:
    clock = FakeClock()
    unrest = Debounce(now=clock)
    began = clock.now
    while clock.now < began + LONGEST_WAIT_SECONDS:
        unrest.restart()
        assert unrest.remaining() > 0
        clock.now += QUIET_SECONDS / 2
    unrest.restart()
    assert unrest.remaining() == 0
