"""The agent leaves the cluster as the original does: recorded scenarios, in one cluster and with a target of its own.

All scenarios are played at once, since they mostly wait; then each has a test that judges what was seen.
"""

import asyncio
import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from agent_process import AgentProcess
from scenario_data import Scenario, load_scenarios
from scenario_normal import contains, expected, without_wording
from scenario_player import Played, Stage, connected

from devcluster.cluster import Cluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),  # the first test waits for all scenarios
    pytest.mark.xdist_group("conformance"),
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
KINDS = [
    ("autoscaling.k8s.io", "v1", "VerticalPodAutoscaler", "Namespaced"),
    ("monitoring.coreos.com", "v1", "Prometheus", "Namespaced"),
    ("monitoring.coreos.com", "v1", "Alertmanager", "Namespaced"),
    ("cert.gardener.cloud", "v1alpha1", "Certificate", "Namespaced"),
    ("cert.gardener.cloud", "v1alpha1", "Issuer", "Namespaced"),
    ("conf.example.com", "v1", "Thing", "Namespaced"),
    ("conf.example.com", "v1", "GlobalThing", "Cluster"),
]
"""Kinds that scenarios take for granted: group, version, kind, scope."""

SCENARIOS = {scenario.id: scenario for scenario in load_scenarios()}
SUBSET = [
    scenario.id
    for number, scenario in enumerate(SCENARIOS.values())
    if scenario.area in {"decode", "labels"} or number % 3 == 0
]
"""Played with two clusters: the rules are the same, so a part of each area will do."""
_AT_ONCE = 32

DEVIATIONS = {
    "apply/finalize-after-soon": (
        "The new object is listed while the removal of the old one is pending: what is about to be created is listed"
        " first, so that nothing is ever leaked."
    ),
}
"""Where we differ on purpose, and why."""


# --- playing


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
def played(one_cluster: Cluster, further_cluster: Cluster) -> dict[str, dict[str, Played]]:
    """By the number of clusters and the scenario."""
    for cluster in (one_cluster, further_cluster):
        _serve_managed_resources(cluster)
    for kind in KINDS:
        one_cluster.api.create(_DEFINITIONS, _definition(*kind))
    single = AgentProcess(CONFIG, kubeconfig=one_cluster.kubeconfig)
    double = AgentProcess(CONFIG, kubeconfig=further_cluster.kubeconfig, target_kubeconfig=one_cluster.kubeconfig)
    with single as first, double as second:
        for agent in (first, second):
            agent.wait_until_ready()
        return asyncio.run(_play(one_cluster, further_cluster))


async def _play(one: Cluster, further: Cluster) -> dict[str, dict[str, Played]]:
    async with connected(one.kubeconfig) as main, connected(further.kubeconfig) as source:
        single = Stage(main, main, prefix="one", at_once=_AT_ONCE)
        double = Stage(source, main, prefix="two", at_once=_AT_ONCE // 2)
        first, second = await asyncio.gather(
            single.play_all(list(SCENARIOS.values())), double.play_all([SCENARIOS[name] for name in SUBSET])
        )
    return {"one": first, "two": second}


_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def _serve_managed_resources(cluster: Cluster) -> None:
    manifest = PROJECT / "manifests/crds/managedresources.resources.gardener.cloud.yaml"
    cluster.api.create(_DEFINITIONS, yaml.safe_load(manifest.read_text()))


def _definition(group: str, version: str, kind: str, scope: str) -> dict[str, Any]:
    singular = kind.lower()
    plural = singular + ("es" if kind.endswith("s") else "s")
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": singular, "listKind": f"{kind}List"},
            "versions": [
                {"name": version, "served": True, "storage": True, "subresources": {"status": {}}, "schema": schema}
            ],
        },
    }


# --- judging


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name not in DEVIATIONS])
def test_it_leaves_one_cluster_as_recorded(scenario: str, played: dict[str, dict[str, Played]]) -> None:
    _check(SCENARIOS[scenario], played["one"][scenario])


@pytest.mark.parametrize("scenario", [name for name in SUBSET if name not in DEVIATIONS])
def test_it_leaves_two_clusters_as_recorded(scenario: str, played: dict[str, dict[str, Played]]) -> None:
    _check(SCENARIOS[scenario], played["two"][scenario])


@pytest.mark.parametrize("scenario", DEVIATIONS)
def test_it_differs_where_it_does_so_on_purpose(scenario: str, played: dict[str, dict[str, Played]]) -> None:
    found = played["one"][scenario]
    assert not found.error
    assert _difference(SCENARIOS[scenario], found), f"no difference any more: {DEVIATIONS[scenario]}"


def _check(scenario: Scenario, found: Played) -> None:
    assert not found.error
    if scenario.peer_defect:
        wanted = expected(scenario.want)
        assert contains(found.seen, wanted), _diff(wanted, found.seen)
    elif difference := _difference(scenario, found):
        pytest.fail(difference)


def _difference(scenario: Scenario, found: Played) -> str:
    """From the release that comes nearest; empty if there is one without."""
    seen = without_wording(found.seen)
    recorded = [without_wording(expected(observations)) for observations in scenario.expect.values()]
    return "" if seen in recorded else min((_diff(one, seen) for one in recorded), key=len)


def _diff(wanted: Any, seen: Any) -> str:
    texts = [yaml.safe_dump(value, width=1000).splitlines() for value in (wanted, seen)]
    return "\n".join(difflib.unified_diff(*texts, "wanted", "seen", n=2, lineterm=""))
