"""The agent leaves the cluster as the original does: recorded scenarios, in one cluster and with a target of its own.

All scenarios are played at once, since they mostly wait; then each has a test that judges what was seen. With
pytest-xdist the tests of this file go to one worker (see `conftest`), and those that were not chosen are not played.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from conformance.scenario_data import Observations, Scenario, load
from conformance.scenario_kinds import install_kinds
from conformance.scenario_normal import Judge, without_wording
from conformance.scenario_player import Played, Stage, check, chosen, connected
from devcluster.cluster import Cluster
from kit.managed_resources import install_crd
from kit.processes.agent import AgentProcess, sole_configuration

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),  # the first test waits for all scenarios
]

CONFIG = sole_configuration(
    controllers={
        "garbageCollector": {"enabled": True, "syncPeriod": "1h"},
        "health": {"concurrentSyncs": 10, "syncPeriod": "15s"},
        "managedResource": {"concurrentSyncs": 10, "syncPeriod": "15s"},
    }
)

SCENARIOS = load("managed_resources", "health")
SUBSET = [
    scenario.id
    for number, scenario in enumerate(SCENARIOS.values())
    if scenario.area in {"decode", "labels"} or number % 3 == 0
]
"""Played with two clusters: the rules are the same, so a part of each area will do."""
_AT_ONCE = 32

_MANAGED_RESOURCE = "resources.gardener.cloud/v1alpha1 ManagedResource mr"
_MORE_CPU = {"spec": {"template": {"spec": {"containers": [{"resources": {"requests": {"cpu": "250m"}}}]}}}}
WANTED: dict[str, Observations] = {
    "kinds/pod": {"then": {_MANAGED_RESOURCE: {"status": {"conditions": [{"reason": "ApplySucceeded"}]}}}},
    "preserve/resources-True-deployment": {"new image": {"apps/v1 Deployment w": _MORE_CPU}},
    "preserve/resources-True-statefulset": {"new image": {"apps/v1 StatefulSet w": _MORE_CPU}},
}
JUDGE = Judge(compared_as=without_wording, wanted=WANTED)


# --- playing


@dataclass(frozen=True, slots=True)
class Results:
    """What was seen, by the id of the scenario."""

    one_cluster: dict[str, Played]
    two_clusters: dict[str, Played]


@pytest.fixture(scope="module")
def one_cluster(devcluster_run: object) -> Iterator[Cluster]:
    """Not the one of all tests: the agent manages whatever is in it."""
    with Cluster(nodes=3) as own:
        yield own


@pytest.fixture(scope="module")
def further_cluster(devcluster_run: object) -> Iterator[Cluster]:
    with Cluster() as own:
        yield own


@pytest.fixture(scope="module")
def results(one_cluster: Cluster, further_cluster: Cluster, request: pytest.FixtureRequest) -> Results:
    for cluster in (one_cluster, further_cluster):
        install_crd(cluster)
    install_kinds(one_cluster)
    single = AgentProcess(CONFIG, kubeconfig=one_cluster.kubeconfig)
    double = AgentProcess(CONFIG, kubeconfig=further_cluster.kubeconfig, target_kubeconfig=one_cluster.kubeconfig)
    with single as first, double as second:
        for agent in (first, second):
            agent.wait_until_ready(seconds=60)
        scenarios = chosen(request.session, SCENARIOS)
        return asyncio.run(_play(one_cluster, further_cluster, first, second, scenarios))


async def _play(
    one: Cluster, further: Cluster, first: AgentProcess, second: AgentProcess, scenarios: list[Scenario]
) -> Results:
    async with connected(one.kubeconfig) as main, connected(further.kubeconfig) as source:
        single = Stage(main, main, first, prefix="one", at_once=_AT_ONCE, judge=JUDGE)
        double = Stage(source, main, second, prefix="two", at_once=_AT_ONCE // 2, judge=JUDGE)
        part = [scenario for scenario in scenarios if scenario.id in SUBSET]
        return Results(*await asyncio.gather(single.play_all(scenarios), double.play_all(part)))


# --- judging


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_it_leaves_one_cluster_as_recorded(scenario: str, results: Results) -> None:
    check(JUDGE, SCENARIOS[scenario], results.one_cluster[scenario])


@pytest.mark.parametrize("scenario", SUBSET)
def test_it_leaves_two_clusters_as_recorded(scenario: str, results: Results) -> None:
    check(JUDGE, SCENARIOS[scenario], results.two_clusters[scenario])
