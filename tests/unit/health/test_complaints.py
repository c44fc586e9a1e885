"""The Event about a ManagedResource whose objects are not healthy for a while."""

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest

from agent.resource_manager.health.reconcile import LastingProblems
from kube.conditions import Condition

UNHEALTHY = Condition("ResourcesHealthy", "False", "DeploymentUnhealthy", 'Deployment "a/b" is unhealthy: x')
MANAGED_RESOURCE = {"kind": "ManagedResource", "metadata": {"namespace": "ns", "name": "mr"}}


def events_after(looks: list[tuple[int, int]]) -> list[tuple[Any, ...]]:
    """Each look is at a time in seconds, and finds so many objects."""
    now = start = datetime(2025, 1, 1, tzinfo=UTC)
    recorder = Mock()
    lasting = LastingProblems(recorder, now=lambda: now)
    for second, count in looks:
        now = start + timedelta(seconds=second)
        lasting.note(MANAGED_RESOURCE, UNHEALTHY, count)
    return [call.args for call in recorder.event.call_args_list]


@pytest.mark.parametrize(("count", "end"), [(1, ""), (2, " (and 1 more)"), (12, " (and 11 more)")])
def test_it_names_the_first_object_and_how_many_more_there_are(count: int, end: str) -> None:
    assert events_after([(0, count), (30, count)]) == [
        (MANAGED_RESOURCE, "Warning", "DeploymentUnhealthy", f'Deployment "a/b" is unhealthy: x{end}')
    ]


@pytest.mark.parametrize(
    ("looks", "complaints"),
    [
        ([(0, 1), (29, 1)], []),
        ([(0, 1), (30, 2)], [2]),
        ([(0, 1), (30, 2), (60, 3), (90, 2)], [2]),
        ([(0, 1), (20, 0), (40, 1), (60, 1)], []),
        ([(0, 1), (20, 0), (40, 1), (70, 1)], [1]),
        ([(0, 1), (30, 1), (40, 0), (50, 3), (80, 3)], [1, 3]),
        ([(0, 0), (60, 0)], []),
    ],
)
def test_there_is_one_if_it_lasts_and_one_more_if_it_comes_back(
    looks: list[tuple[int, int]], complaints: list[int]
) -> None:
    messages = [message for *_, message in events_after(looks)]
    expected = [UNHEALTHY.message + (f" (and {count - 1} more)" if count > 1 else "") for count in complaints]
    assert messages == expected
