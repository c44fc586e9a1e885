"""The order in which a Shoot's tasks run."""

import pytest

from agent.gardenlet.flow.graph import Graph, TaskFailure, Walk
from agent.gardenlet.shoot.main.flows.delete import DELETE
from agent.gardenlet.shoot.main.flows.reconcile import RECONCILE
from agent.gardenlet.shoot.main.operation import ShootOperation

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
