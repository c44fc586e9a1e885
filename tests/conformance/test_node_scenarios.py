"""The taint of Nodes that wait for critical components goes when it goes with the original: recorded scenarios.

Where it is to go, an observation takes longer than it did when it was recorded: this machine may be a slow one. And the
Node whose kubelet is played has an address, which pods need.
"""

import asyncio
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agent_process import AgentProcess
from managed_world import install_crd
from scenario_data import Observations, Scenario
from scenario_player import Played, Stage, connected, so_far

from devcluster.cluster import Cluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),  # the first test waits for all scenarios
]

CONFIG: dict[str, Any] = {
    "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
    "kind": "ResourceManagerConfiguration",
    "leaderElection": {"leaderElect": False, "resourceNamespace": "default"},
    "logFormat": "json",
    "controllers": {"nodeCriticalComponents": {"enabled": True, "backoff": "2s"}},
}
LINES = gzip.decompress(Path(__file__).with_name("nodes.jsonl.gz").read_bytes()).splitlines()
SCENARIOS = {scenario.id: scenario for scenario in (msgspec.json.decode(line, type=Scenario) for line in LINES)}


@pytest.fixture(scope="module")
def node_cluster(devcluster_run: object) -> Iterator[Cluster]:
    """Not the one of all tests: whatever is in it is waited for."""
    with Cluster(nodes=1) as own:
        install_crd(own)
        yield own


@pytest.fixture(scope="module")
def played(node_cluster: Cluster) -> dict[str, Played]:
    with AgentProcess(CONFIG, kubeconfig=node_cluster.kubeconfig) as agent:
        agent.wait_until_ready(seconds=60)
        return asyncio.run(_play(node_cluster, agent))


async def _play(cluster: Cluster, agent: AgentProcess) -> dict[str, Played]:
    async with connected(cluster.kubeconfig) as site:
        stage = Stage(site, site, agent, prefix="node", at_once=16, judge=_is_expected)
        return await stage.play_all(list(SCENARIOS.values()))


def _is_expected(scenario: Scenario, seen: Observations) -> bool:
    return any(seen == so_far(one, seen) for one in scenario.expect.values())


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_nodes_keep_their_taint_as_recorded(scenario: str, played: dict[str, Played]) -> None:
    found = played[scenario]
    assert not found.error
    assert found.seen in SCENARIOS[scenario].expect.values()
