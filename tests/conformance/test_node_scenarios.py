"""The taint of Nodes that wait for critical components goes when it goes with the original: recorded scenarios.

Where it is to go, an observation takes longer than it did when it was recorded: this machine may be a slow one. And the
Node whose kubelet is played has an address, which pods need.
"""

from collections.abc import Iterator

import pytest

from conformance.scenario_data import load
from conformance.scenario_normal import Judge
from conformance.scenario_player import Played, check, play_alone
from devcluster.cluster import Cluster
from kit.managed_resources import install_crd

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),  # the first test waits for all scenarios
]

SCENARIOS = load("nodes")
JUDGE = Judge()


@pytest.fixture(scope="module")
def node_cluster(devcluster_run: object) -> Iterator[Cluster]:
    """Not the one of all tests: whatever is in it is waited for."""
    with Cluster(nodes=1) as own:
        install_crd(own)
        yield own


@pytest.fixture(scope="module")
def played(node_cluster: Cluster) -> dict[str, Played]:
    controllers = {"nodeCriticalComponents": {"enabled": True, "backoff": "2s"}}
    return play_alone(
        node_cluster, [*SCENARIOS.values()], judge=JUDGE, prefix="node", at_once=16, controllers=controllers
    )


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_nodes_keep_their_taint_as_recorded(scenario: str, played: dict[str, Played]) -> None:
    check(JUDGE, SCENARIOS[scenario], played[scenario])
