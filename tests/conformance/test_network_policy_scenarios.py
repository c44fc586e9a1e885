"""The agent leaves the NetworkPolicies that the original does: recorded scenarios, played in one cluster.

What a policy is for is said in other words, and traffic from everywhere is let in by peers that say so.
"""

import asyncio
import difflib
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from agent_process import AgentProcess
from managed_world import install_crd
from scenario_data import Observations, Scenario
from scenario_normal import contains
from scenario_player import Played, Stage, connected, so_far

from devcluster.cluster import Cluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),  # the first test waits for all scenarios
]

INGRESS_CONTROLLER = {"namespace": "ingress-ctl", "podSelector": {"matchLabels": {"app": "ingress-ctl"}}}
CONFIG: dict[str, Any] = {
    "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
    "kind": "ResourceManagerConfiguration",
    "leaderElection": {"leaderElect": False, "resourceNamespace": "default"},
    "logFormat": "json",
    "controllers": {"networkPolicy": {"enabled": True, "ingressControllerSelector": INGRESS_CONTROLLER}},
}
LINES = gzip.decompress(Path(__file__).with_name("network_policies.jsonl.gz").read_bytes()).splitlines()
SCENARIOS = {scenario.id: scenario for scenario in (msgspec.json.decode(line, type=Scenario) for line in LINES)}
EVERYBODY = [
    {"namespaceSelector": {}, "podSelector": {}},
    {"ipBlock": {"cidr": "0.0.0.0/0"}},
    {"ipBlock": {"cidr": "::/0"}},
]


@pytest.fixture(scope="module")
def cluster_with_policies(devcluster_run: object) -> Iterator[Cluster]:
    """Not the one of all tests: the agent writes policies for whatever is in it."""
    with Cluster(nodes=1) as own:
        install_crd(own)
        own.api.create("/api/v1/namespaces", {"metadata": {"name": "ingress-ctl"}})
        yield own


@pytest.fixture(scope="module")
def played(cluster_with_policies: Cluster) -> dict[str, Played]:
    with AgentProcess(CONFIG, kubeconfig=cluster_with_policies.kubeconfig) as agent:
        agent.wait_until_ready(seconds=60)
        return asyncio.run(_play(cluster_with_policies, agent))


async def _play(cluster: Cluster, agent: AgentProcess) -> dict[str, Played]:
    async with connected(cluster.kubeconfig) as site:
        stage = Stage(site, site, agent, prefix="netpol", at_once=24, judge=_is_expected)
        return await stage.play_all(list(SCENARIOS.values()))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_policies_are_as_recorded(scenario: str, played: dict[str, Played]) -> None:
    recorded, found = SCENARIOS[scenario], played[scenario]
    assert not found.error
    seen = _in_the_originals_words(found.seen)
    if recorded.peer_defect:
        assert contains(seen, recorded.want), _diff(recorded.want, seen)
        return
    expected = [_in_the_originals_words(observations) for observations in recorded.expect.values()]
    if seen not in expected:
        pytest.fail(min((_diff(one, seen) for one in expected), key=len))


def _is_expected(scenario: Scenario, seen: Observations) -> bool:
    found = _in_the_originals_words(seen)
    if scenario.peer_defect:
        return contains(found, so_far(scenario.want, seen))
    return any(found == _in_the_originals_words(so_far(one, seen)) for one in scenario.expect.values())


def _in_the_originals_words(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _in_the_originals_words(inner) for key, inner in value.items() if not key.endswith("/description")}
        if kept.get("from") == EVERYBODY:
            del kept["from"]
        return kept
    return [_in_the_originals_words(each) for each in value] if isinstance(value, list) else value


def _diff(wanted: Any, seen: Any) -> str:
    first, second = (yaml.safe_dump(value, width=1000).splitlines() for value in (wanted, seen))
    return "\n".join(difflib.unified_diff(first, second, "wanted", "seen", n=2, lineterm=""))
