"""What may be wrong with Nodes, beside that they are not ready: configurations, agents, Leases, machines."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.gardenlet.shoot.care.rules.nodes import (
    NO_MACHINES,
    Configurations,
    Machines,
    NodeProblem,
    agent_problem,
    configuration_problem,
    configurations_in,
    expiry_problem,
    kept_of,
    lease_end,
    machines,
    scaling_problem,
)
from kube.clock import format_time
from kube.objects import Object

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER, EARLIER = NOW + timedelta(seconds=10), NOW - timedelta(seconds=10)
SHOOT: Object = {"spec": {"provider": {"workers": [{"name": "w", "minimum": 1, "maximum": 3}]}}}
WANTED = {"w": {"agent-w": "new"}}
BOTH = {"w": {"agent-w": "new", "agent-w-before": "old"}}


def node(name: str = "a", *, applied: str = "new", secret: str = "agent-w", ready: str = "True", **spec: Any) -> Object:
    named = {"worker.gardener.cloud/pool": "w", "worker.gardener.cloud/gardener-node-agent-secret-name": secret}
    meta = {"name": name, "labels": named, "annotations": {"checksum/cloud-config-data": applied}}
    return kept_of({"metadata": meta, "spec": spec, "status": {"conditions": [{"type": "Ready", "status": ready}]}})


def reported(problem: NodeProblem | None) -> tuple[str, str]:
    return ("", "") if problem is None else (problem.reason, problem.message)


@pytest.mark.parametrize(
    ("nodes", "wanted", "text"),
    [
        ([node()], WANTED, ""),
        ([node("a"), node("b", applied="old")], WANTED, 'Node "b" has applied old, expected new.'),
        ([node(applied="")], WANTED, 'The agent of node "a" has not reported yet'),
        ([node(applied="old", secret="agent-w-before")], WANTED, ""),  # it is replaced by one of the new kind
        ([node(applied="old", secret="agent-w-before"), node("b")], BOTH, ""),
        ([node(applied="new", secret="agent-w-before")], BOTH, 'Node "a" has applied new, expected old.'),
        ([node(applied="old", secret="")], WANTED, 'Node "a" has applied old, expected new.'),
        ([node(applied="old", secret="")], BOTH, ""),
        ([node()], {}, 'The Secret with the configuration of worker pool "w" does not exist.'),
        ([], {}, ""),
    ],
)
def test_configurations(nodes: list[Object], wanted: Configurations, text: str) -> None:
    reason, message = reported(configuration_problem(SHOOT, nodes, wanted))
    assert message.startswith(text)
    assert (reason == "OperatingSystemConfigOutdated") is bool(text)


def test_what_is_known_of_configurations() -> None:
    def secret(name: str, checksum: str) -> Object:
        named = {"worker.gardener.cloud/pool": "w"}
        return {"metadata": {"name": name, "labels": named, "annotations": {"checksum/data-script": checksum}}}

    assert configurations_in([secret("agent-w", "new")]) == WANTED
    assert configurations_in([secret("agent-w", "new"), secret("agent-w-before", "old")]) == BOTH


def test_agents_renew_their_leases() -> None:
    nodes = [node("a"), node("b")]
    assert agent_problem(nodes, {"a": LATER, "b": LATER, "gone": None}, now=NOW) is None
    assert reported(agent_problem(nodes, {"a": LATER}, now=NOW)) == ("NodeAgentUnhealthy", 'No agent runs on node "b".')
    for end in (EARLIER, None):
        assert "has stopped renewing" in reported(agent_problem(nodes, {"a": end, "b": LATER}, now=NOW))[1]


@pytest.mark.parametrize(
    ("spec", "end"),
    [
        ({"renewTime": format_time(NOW), "leaseDurationSeconds": 10}, LATER),
        ({"renewTime": format_time(NOW)}, NOW + timedelta(seconds=40)),
        ({}, None),
    ],
)
def test_until_when_a_lease_counts(spec: Object, end: datetime | None) -> None:
    assert lease_end({"spec": spec}) == end


@pytest.mark.parametrize(
    ("good", "expired", "is_problem"), [(0, 0, False), (9, 1, False), (8, 2, True), (4, 1, True), (0, 1, True)]
)
def test_many_leases_that_expire_at_once(good: int, expired: int, is_problem: bool) -> None:
    reason, message = reported(expiry_problem([LATER] * good + [EARLIER] * expired, now=NOW))
    assert (reason == "TooManyExpiredNodeLeases") is is_problem
    assert message.startswith(f"{expired} of {good + expired} Leases" if is_problem else "")


def test_machines_are_counted_of_all_pools() -> None:
    found = machines(
        [{"spec": {"replicas": 2}}, {"spec": {"replicas": 1}}],
        [
            {"metadata": {"name": "m"}, "status": {"currentStatus": {"phase": "Running"}}},
            {"metadata": {"name": "l", "deletionTimestamp": format_time(NOW)}},
        ],
    )
    assert found == Machines(3, {"m": "Running", "l": ""}, frozenset({"l"}))
    assert machines([], []) == NO_MACHINES


@pytest.mark.parametrize(
    ("nodes", "found", "problem"),
    [
        ([node("a")], NO_MACHINES, ("", "")),
        ([node("a")], Machines(1, {"m": "Running"}), ("", "")),
        ([node("a")], Machines(2, {"m": "Running"}), ("NodesScalingUp", "Machines are being created (1/2).")),
        (
            [node("a")],
            Machines(2, {"m": "Running", "n": "Failed"}),
            ("NodesScalingUp", "1 of 2 machines have failed: n."),
        ),
        (
            [node("a")],
            Machines(2, {"m": "Running", "n": "Pending"}),
            ("NodesScalingUp", "1 of 2 machines are being created and will join soon."),
        ),
        (
            [node("a"), node("b", unschedulable=True)],
            Machines(2, {"m": "Running", "n": "Running"}),
            ("NodesScalingUp", "Machines have not joined yet, or nodes are cordoned (2/2 nodes)."),
        ),
        (
            [node("a"), node("b", unschedulable=True)],
            Machines(1, {"m": "Running", "n": "Terminating"}, frozenset({"n"})),
            ("NodesScalingDown", "2 nodes instead of 1: 1 machines are being deleted, cordoned: b."),
        ),
        (
            [node("a"), node("b")],
            Machines(1, {"m": "Running", "n": "Running"}),
            ("NodesScalingDown", "2 nodes instead of 1: no machine is being deleted yet."),
        ),
    ],
)
def test_as_many_nodes_as_there_are_to_be(nodes: Sequence[Object], found: Machines, problem: tuple[str, str]) -> None:
    assert reported(scaling_problem(nodes, found)) == problem
