"""Tasks that are derived from the units of a flow."""

import pytest

from agent.gardenlet.flow.graph import ONCE, USUAL, Task
from agent.gardenlet.flow.unit import Leaves, Unit, Wait, any_of, tasks_of

Met = frozenset[str]
"""Conditions that are met in an operation."""


async def _act(_: Met) -> None: ...


def _if(condition: str) -> Leaves[Met]:
    return lambda met: condition in met


UNIT: Unit[Met] = Unit(
    id="etcd",
    title="main etcd",
    deploy=_act,
    after=["secrets"],
    skips=_if("unused"),
    unless=_if("asleep"),
    wait=Wait("main etcd is ready", _act, after=["address"], unless=_if("impatient")),
    destroy=_act,
)
DEPLOY, READY = UNIT.tasks()
GONE = UNIT.gone(["server-gone"], verb="Deleting")


@pytest.mark.parametrize(
    ("task", "its_id", "name", "after", "retry"),
    [
        (DEPLOY, "etcd", "Deploying main etcd", ["secrets"], USUAL),
        (READY, "etcd-ready", "Waiting until main etcd is ready", ["etcd", "address"], ONCE),
        (GONE, "etcd-gone", "Deleting main etcd", ["server-gone"], ONCE),
    ],
    ids=["deploy", "wait", "delete"],
)
def test_a_unit_has_a_task_for_each_function(
    task: Task[Met], its_id: str, name: str, after: list[str], retry: object
) -> None:
    assert (task.id, task.name, [*task.after], task.retry) == (its_id, name, after, retry)


@pytest.mark.parametrize(
    ("task", "skipping"),
    [(DEPLOY, {"unused", "asleep"}), (READY, {"unused", "impatient"}), (GONE, {"unused"})],
    ids=["deploy", "wait", "delete"],
)
def test_each_of_its_tasks_has_the_conditions_of_the_unit_and_its_own(task: Task[Met], skipping: set[str]) -> None:
    assert task.unless is not None
    skips = task.unless
    assert {each for each in ("unused", "asleep", "impatient") if skips(frozenset({each}))} == skipping
    assert not skips(frozenset())


def test_a_flow_lists_units_and_single_tasks() -> None:
    step = Task("step", "Doing one step", _act)
    silent: Unit[Met] = Unit(id="silent", title="what nothing waits for", deploy=_act)
    assert [each.id for each in tasks_of(step, UNIT, silent)] == ["step", "etcd", "etcd-ready", "silent"]


def test_without_conditions_a_task_is_never_skipped() -> None:
    assert any_of(None, None) is None
