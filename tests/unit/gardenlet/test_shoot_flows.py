"""The order in which a Shoot's tasks run."""

from dataclasses import replace

import pytest

from agent.gardenlet.flow.graph import Graph, TaskFailure, Walk
from agent.gardenlet.shoot.main.flows.completion import LAST, WITH_BUNDLES
from agent.gardenlet.shoot.main.flows.delete import DELETE
from agent.gardenlet.shoot.main.flows.reconcile import RECONCILE, RESTORE
from agent.gardenlet.shoot.main.operation import LEAVING_CONTROL_PLANE, ShootOperation
from kit.shoot_components import bare_operation

NEEDS_TOKENS = {"connection", "controller-manager-ready", "namespaces-ready"}


@pytest.mark.parametrize("failing", ["resource-manager", "resource-manager-ready"])
@pytest.mark.parametrize("graph", [RECONCILE, DELETE], ids=lambda graph: graph.name)
def test_nothing_waits_for_tokens_that_no_resource_manager_requests(graph: Graph[ShootOperation], failing: str) -> None:
    """An operation that has failed ends, and is repeated, without waits that are in vain."""
    walk, started = Walk(graph), set[str]()
    while tasks := walk.start():
        for each in tasks:
            started.add(each.id)
            failure = TaskFailure(each.name, RuntimeError(), "") if each.id == failing else None
            walk.end(each, failure)
    assert failing in started
    assert started & NEEDS_TOKENS == set()


def test_what_has_bundles_gets_smaller_ones_before_the_larger_go() -> None:
    """In the same order; while they shrink, nothing of it is at work."""
    tasks, order = RECONCILE.tasks, {name: number for number, name in enumerate(RECONCILE.order)}
    before = _all_before("servers-by-current")
    for each in WITH_BUNDLES:
        again = tasks[f"{each}-current"]
        assert again.run is tasks[each].run
        assert each in before
        assert LAST in again.after
        assert {name.removesuffix("-current") for name in again.after} - {LAST.removesuffix("-current")} == {
            name for name in tasks[each].after if name in WITH_BUNDLES
        }
        assert order[LAST] < order[again.id]


@pytest.mark.parametrize(
    ("enabled", "is_left_out"), [(None, True), (True, True), (False, False)], ids=["usual", "with SSH", "without SSH"]
)
def test_bastions_are_deleted_where_there_is_no_ssh(enabled: bool | None, is_left_out: bool) -> None:
    settings = {} if enabled is None else {"workersSettings": {"sshAccess": {"enabled": enabled}}}
    task = RECONCILE.tasks["bastions"]
    assert task.unless is not None
    operation = bare_operation(shoot={"spec": {"provider": {"workers": [{"name": "a"}], **settings}}})
    assert task.unless(operation) is is_left_out


@pytest.mark.parametrize("leaving", ["", LEAVING_CONTROL_PLANE])
def test_a_control_plane_that_has_begun_to_go_is_not_created_by_the_next_attempt(leaving: str) -> None:
    operation = bare_operation(shoot={"spec": {"provider": {"workers": [{"name": "a"}]}}}, leaving=leaving)
    for task in (DELETE.tasks[name] for name in ("control-plane", "control-plane-ready")):
        assert task.unless is not None
        assert task.unless(replace(operation, namespace_lives=True, cleans_up=True)) is bool(leaving), task.id


def test_nothing_waits_for_the_removal_of_backups_in_the_former_bucket() -> None:
    """Its objects may be protected for days."""
    assert [each.id for each in RESTORE.tasks.values() if "source-entry-gone" in each.after] == []


def _all_before(its_id: str) -> set[str]:
    found, left = set[str](), [its_id]
    while left:
        new = set(RECONCILE.tasks[left.pop()].after) - found
        found |= new
        left += new
    return found
