"""The controller manager leaves a garden as the original does: recorded scenarios, all in one garden.

They are played at once, since they mostly wait; then each has a test that judges what was seen. Those that were not
chosen are not played.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from conformance.api_cases import prelude, put
from conformance.garden_judge import difference
from conformance.garden_player import play_all
from conformance.garden_scenarios import GardenScenario, load
from conformance.scenario_data import Observations
from conformance.scenario_player import check, chosen
from devcluster.cluster import Cluster
from devcluster.garden.box import Garden as Box
from devcluster.pytest_plugin import RunClusters
from kit.garden import Garden
from kit.processes.agent import AgentProcess
from kit.world import connected

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # the first test waits for all scenarios

MAIN, SHORT = load("main"), load("short")
AT_ONCE = 64
_QUOTA = {"apiVersion": "v1", "kind": "ResourceQuota"}
_QUOTAS = [
    {
        "config": {
            **_QUOTA,
            "metadata": {"labels": {"from": "config"}, "annotations": {"note": "first"}},
            "spec": {"hard": {"count/configmaps": "50", "count/secrets": "60"}},
        },
        "projectSelector": {"matchLabels": {"quota": "conf"}},
    },
    {
        "config": {**_QUOTA, "spec": {"hard": {"count/configmaps": "5"}}},
        "projectSelector": {"matchExpressions": [{"key": "quota", "operator": "In", "values": ["two", "conf"]}]},
    },
]
_PROJECT = {"minimumLifetimeDays": 30, "staleGracePeriodDays": 14, "staleExpirationTimeDays": 90, "quotas": _QUOTAS}
_CONTROLLERS = {
    "bastion": {"maxLifetime": "60s"},
    "seed": {"syncPeriod": "3s", "monitorPeriod": "90s", "shootMonitorPeriod": "20s"},
    "seedExtensionsCheck": {
        "syncPeriod": "3s",
        "conditionThresholds": [{"type": "ExtensionsReady", "duration": "8s"}],
    },
    "seedBackupBucketsCheck": {
        "syncPeriod": "3s",
        "conditionThresholds": [{"type": "BackupBucketsReady", "duration": "8s"}],
    },
    "shootQuota": {"syncPeriod": "4s"},
    "shootRetry": {"retryPeriod": "6s", "retryJitterPeriod": "1s"},
    "shootHibernation": {"triggerDeadlineDuration": "2h"},
    "shootMaintenance": {"enableShootControlPlaneRestarter": True, "enableShootCoreAddonRestarter": False},
    "managedSeedSet": {"syncPeriod": "15s", "maxShootRetries": 3},
    "project": _PROJECT,
}
"""As they were recorded: periods are short, so that nothing has to be waited for.

But a Lease that is fresh stays so for longer, on a busy machine.
"""
_CONTROLLERS_SHORT = {
    **_CONTROLLERS,
    "event": {"ttlNonShootEvents": "15s"},
    "project": {
        **_PROJECT,
        "minimumLifetimeDays": 0,
        "staleGracePeriodDays": 1,
        "staleExpirationTimeDays": 2,
        "staleSyncPeriod": "4s",
    },
}


@pytest.fixture(scope="module")
def furnished(devcluster_run: RunClusters) -> Iterator[Cluster]:
    """A garden with what all scenarios expect to be there."""
    with Cluster() as cluster:
        Box(cluster).install()
        for obj in prelude():
            put(Garden(cluster), obj, "garden")
        yield cluster


@pytest.fixture(scope="module")
def seen(furnished: Cluster, request: pytest.FixtureRequest) -> dict[str, Observations]:
    """By the scenario. First what was recorded with short lives: not many objects are there yet that end by them."""
    return {
        **_played(furnished, chosen(request.session, SHORT), _CONTROLLERS_SHORT),
        **_played(furnished, chosen(request.session, MAIN), _CONTROLLERS),
    }


def _played(
    garden: Cluster, scenarios: list[GardenScenario], controllers: Mapping[str, Any]
) -> dict[str, Observations]:
    if not scenarios:
        return {}
    as_recorded = garden.kubeconfig_for("admin", ("system:masters",))

    async def play() -> dict[str, Observations]:
        async with connected(as_recorded, "scenarios") as client:
            return await play_all(scenarios, client, manager, at_once=AT_ONCE)

    config = {
        "apiVersion": "controllermanager.config.gardener.cloud/v1alpha1",
        "kind": "ControllerManagerConfiguration",
        "gardenClientConnection": {"qps": 1000, "burst": 1300},
        "leaderElection": {"leaderElect": False},
        "controllers": controllers,
    }
    own = garden.kubeconfig_for("gardener-controller-manager", ("system:masters",))
    with AgentProcess(config, kubeconfig=own) as manager:
        manager.wait_until_ready()
        return asyncio.run(play())


@pytest.mark.parametrize("scenario", MAIN)
def test_it_leaves_a_garden_as_recorded(scenario: str, seen: dict[str, Observations]) -> None:
    check(difference(MAIN[scenario], seen[scenario]))


@pytest.mark.parametrize("scenario", SHORT)
def test_it_leaves_a_garden_of_short_lives_as_recorded(scenario: str, seen: dict[str, Observations]) -> None:
    check(difference(SHORT[scenario], seen[scenario]))
