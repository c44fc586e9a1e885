"""The taint of Nodes that wait for critical components goes when it goes with the original: recorded scenarios.

Where it is to go, an observation takes longer than it did when it was recorded: this machine may be a slow one. And the
Node whose kubelet is replayed has an address, which pods need.
"""

import pytest

from conformance.scenario_data import load
from conformance.scenario_normal import Judge
from conformance.scenario_player import check, chosen, play_alone
from devcluster.cluster import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # the first test waits for all scenarios

NODES = 1
SCENARIOS = load("nodes")


@pytest.fixture(scope="module")
def problems(own_cluster: Cluster, request: pytest.FixtureRequest) -> dict[str, str]:
    controllers = {"nodeCriticalComponents": {"enabled": True, "backoff": "2s"}}
    scenarios = chosen(request.session, SCENARIOS)
    return play_alone(own_cluster, scenarios, judge=Judge(), prefix="node", at_once=16, controllers=controllers)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_nodes_keep_their_taint_as_recorded(scenario: str, problems: dict[str, str]) -> None:
    check(problems[scenario])
