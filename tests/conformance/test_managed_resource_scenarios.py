"""The agent leaves the cluster as the original does: recorded scenarios, in one cluster and with a target of its own.

All scenarios are played at once, since they mostly wait; then each has a test that judges what was seen. With
pytest-xdist the tests of this file go to one worker (see `conftest`), and those that were not chosen are not played.
"""

import asyncio
import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from agent_process import AgentProcess
from scenario_data import Observations, Scenario, load_scenarios
from scenario_kinds import DEFINITIONS, install_kinds
from scenario_normal import contains, without_wording
from scenario_player import Played, Stage, connected, so_far

from devcluster.cluster import Cluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),  # the first test waits for all scenarios
]

PROJECT = Path(__file__).parents[2]
CONFIG: dict[str, Any] = {
    "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
    "kind": "ResourceManagerConfiguration",
    "sourceClientConnection": {"qps": 1000, "burst": 1300},
    "targetClientConnection": {"qps": 1000, "burst": 1300},
    "leaderElection": {"leaderElect": False, "resourceNamespace": "default"},
    "logFormat": "json",
    "controllers": {
        "garbageCollector": {"enabled": True, "syncPeriod": "1h"},
        "health": {"concurrentSyncs": 10, "syncPeriod": "15s"},
        "managedResource": {"concurrentSyncs": 10, "syncPeriod": "15s"},
    },
}

SCENARIOS = {scenario.id: scenario for scenario in load_scenarios()}
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
"""What is right where the original is not, and the recording does not tell."""


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
        _serve_managed_resources(cluster)
    install_kinds(one_cluster)
    single = AgentProcess(CONFIG, kubeconfig=one_cluster.kubeconfig)
    double = AgentProcess(CONFIG, kubeconfig=further_cluster.kubeconfig, target_kubeconfig=one_cluster.kubeconfig)
    with single as first, double as second:
        for agent in (first, second):
            agent.wait_until_ready(seconds=60)
        chosen = _chosen(request.session)
        return asyncio.run(_play(one_cluster, further_cluster, first, second, chosen=chosen))


def _chosen(session: pytest.Session) -> set[str]:
    """The scenarios that the tests of this run are about."""
    calls = [getattr(item, "callspec", None) for item in session.items]
    return {str(call.params["scenario"]) for call in calls if call is not None and "scenario" in call.params}


async def _play(
    one: Cluster, further: Cluster, first: AgentProcess, second: AgentProcess, *, chosen: set[str]
) -> Results:
    async with connected(one.kubeconfig) as main, connected(further.kubeconfig) as source:
        single = Stage(main, main, first, prefix="one", at_once=_AT_ONCE, judge=_is_expected)
        double = Stage(source, main, second, prefix="two", at_once=_AT_ONCE // 2, judge=_is_expected)
        return Results(
            *await asyncio.gather(
                single.play_all([scenario for name, scenario in SCENARIOS.items() if name in chosen]),
                double.play_all([SCENARIOS[name] for name in SUBSET if name in chosen]),
            )
        )


def _serve_managed_resources(cluster: Cluster) -> None:
    manifest = PROJECT / "manifests/crds/managedresources.resources.gardener.cloud.yaml"
    cluster.api.create(DEFINITIONS, yaml.safe_load(manifest.read_text()))


# --- judging


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_it_leaves_one_cluster_as_recorded(scenario: str, results: Results) -> None:
    _check(SCENARIOS[scenario], results.one_cluster[scenario])


@pytest.mark.parametrize("scenario", SUBSET)
def test_it_leaves_two_clusters_as_recorded(scenario: str, results: Results) -> None:
    _check(SCENARIOS[scenario], results.two_clusters[scenario])


def _check(scenario: Scenario, found: Played) -> None:
    assert not found.error
    if difference := _difference(scenario, found):
        pytest.fail(difference)


def _is_expected(scenario: Scenario, seen: Observations) -> bool:
    if scenario.peer_defect:
        return contains(seen, so_far(WANTED.get(scenario.id) or scenario.want, seen))
    found = without_wording(seen)
    return any(found == without_wording(so_far(observations, seen)) for observations in scenario.expect.values())


def _difference(scenario: Scenario, found: Played) -> str:
    """From the release that comes nearest, or from what is right where the original is not; empty if there is none."""
    if scenario.peer_defect:
        wanted = WANTED.get(scenario.id) or scenario.want
        return "" if contains(found.seen, wanted) else _diff(wanted, found.seen)
    seen = without_wording(found.seen)
    recorded = [without_wording(observations) for observations in scenario.expect.values()]
    return "" if seen in recorded else min((_diff(one, seen) for one in recorded), key=len)


def _diff(wanted: Any, seen: Any) -> str:
    first, second = (yaml.safe_dump(value, width=1000).splitlines() for value in (wanted, seen))
    return "\n".join(difflib.unified_diff(first, second, "wanted", "seen", n=2, lineterm=""))
