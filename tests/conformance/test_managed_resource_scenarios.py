"""The agent leaves the cluster as the original does: recorded scenarios, in one cluster and with a target of its own.

All scenarios are replayed at once, since they mostly wait; then each has a test that judges what was seen. With
pytest-xdist the tests of this file go to one worker (see `conftest`), and those that were not chosen are not replayed.
"""

import asyncio
from collections.abc import Iterator
from typing import TypeAlias

import pytest

from conformance.scenario_data import Observations, load
from conformance.scenario_kinds import install_kinds
from conformance.scenario_normal import Judge, without_wording
from conformance.scenario_player import check, chosen, connected, play_all
from devcluster.cluster import Cluster
from kit.managed_resources import install_crd
from kit.processes.agent import AgentProcess, sole_configuration

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # the first test waits for all scenarios

CONFIG = sole_configuration(
    controllers={
        "garbageCollector": {"enabled": True, "syncPeriod": "1h"},
        "health": {"concurrentSyncs": 10, "syncPeriod": "15s"},
        "managedResource": {"concurrentSyncs": 10, "syncPeriod": "15s"},
    }
)

NODES = 3
SCENARIOS = load("managed_resources", "health")
SUBSET = [*SCENARIOS][::10]
"""Replayed with two clusters: the rules are the same, so a few of each area will do."""

_MANAGED_RESOURCE = "resources.gardener.cloud/v1alpha1 ManagedResource mr"
_MORE_CPU = {"spec": {"template": {"spec": {"containers": [{"resources": {"requests": {"cpu": "250m"}}}]}}}}
_APPLIED = {"status": {"conditions": [{"reason": "ApplySucceeded"}]}}
_JOB_RUNS = {"type": "ResourcesProgressing", "reason": "JobProgressing", "status": "True"}
_FILLED_IN = {"v1 Secret x": {"data": {"b": "b"}}}
WANTED: dict[str, Observations] = {
    # the manifest has no data at all: what an application fills in stays
    "kinds/secret-type": {"drift": _FILLED_IN, "then": _FILLED_IN},
    # a node port stays with the number of its port
    "kinds/service-nodeports": {"then": {"v1 Service x": {"spec": {"ports": [{"nodePort": "<allocated port 1>"}]}}}},
    # a Job that runs is in progress: what depends on it waits for its end
    "health/job-running": {"seen": {_MANAGED_RESOURCE: {"status": {"conditions": [_JOB_RUNS]}}}},
    # lists are taken apart
    "apply/list-kind": {"applied": {"v1 ConfigMap in-list": {"data": {"k": "v"}}, _MANAGED_RESOURCE: _APPLIED}},
    "kinds/pod": {"then": {_MANAGED_RESOURCE: _APPLIED}},
    "preserve/resources-True-deployment": {"new image": {"apps/v1 Deployment w": _MORE_CPU}},
    "preserve/resources-True-statefulset": {"new image": {"apps/v1 StatefulSet w": _MORE_CPU}},
}
JUDGE = Judge(compared_as=without_wording, wanted=WANTED)


Problems: TypeAlias = dict[str, str]
"""By the id of the scenario."""


@pytest.fixture(scope="module")
def further_cluster(devcluster_run: object) -> Iterator[Cluster]:
    with Cluster() as own:
        install_crd(own)
        yield own


@pytest.fixture(scope="module")
def problems(
    own_cluster: Cluster, further_cluster: Cluster, request: pytest.FixtureRequest
) -> tuple[Problems, Problems]:
    """With one cluster, and with a source and a target."""
    install_kinds(own_cluster)
    scenarios = chosen(request.session, SCENARIOS)
    single = AgentProcess(CONFIG, kubeconfig=own_cluster.kubeconfig)
    double = AgentProcess(CONFIG, kubeconfig=further_cluster.kubeconfig, target_kubeconfig=own_cluster.kubeconfig)

    async def play() -> tuple[Problems, Problems]:
        async with connected(own_cluster.kubeconfig) as main, connected(further_cluster.kubeconfig) as source:
            part = [scenario for scenario in scenarios if scenario.id in SUBSET]
            return await asyncio.gather(
                play_all(scenarios, single, source=main, target=main, judge=JUDGE, prefix="one", at_once=32),
                play_all(part, double, source=source, target=main, judge=JUDGE, prefix="two", at_once=16),
            )

    with single, double:
        for agent in (single, double):
            agent.wait_until_ready()
        return asyncio.run(play())


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_it_leaves_one_cluster_as_recorded(scenario: str, problems: tuple[Problems, Problems]) -> None:
    check(problems[0][scenario])


@pytest.mark.parametrize("scenario", SUBSET)
def test_it_leaves_two_clusters_as_recorded(scenario: str, problems: tuple[Problems, Problems]) -> None:
    check(problems[1][scenario])
