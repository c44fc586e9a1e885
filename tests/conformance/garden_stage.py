"""A garden in which scenarios are replayed, with programs that have the settings of the recording."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from conformance.api_cases import prelude, put
from conformance.garden_player import play_all
from conformance.garden_scenarios import GardenScenario
from conformance.scenario_data import Observations
from devcluster.cluster import Cluster
from kit.garden import installed
from kit.processes.agent import AgentProcess
from kit.world import connected

_AT_ONCE = 64
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
PROJECT = {"minimumLifetimeDays": 30, "staleGracePeriodDays": 14, "staleExpirationTimeDays": 90, "quotas": _QUOTAS}
CONTROLLERS = {
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
    "project": PROJECT,
}
"""As they were recorded: periods are short, so that nothing has to be waited for.

But a Lease that is fresh stays so for longer, on a busy machine.
"""
_UNLIMITED = {"qps": 1000, "burst": 1300}
_ADMINISTRATORS = ("system:masters",)


@contextmanager
def furnished() -> Iterator[Cluster]:
    """A garden with what all scenarios expect to be there."""
    with Cluster() as cluster:
        garden = installed(cluster)
        for obj in prelude():
            put(garden, obj, "garden")
        yield cluster


def played(
    garden: Cluster,
    scenarios: Sequence[GardenScenario],
    *,
    controllers: Mapping[str, Any] = CONTROLLERS,
    scheduler: Mapping[str, Any] | None = None,
    at_once: int = _AT_ONCE,
) -> dict[str, Observations]:
    """What was seen, by the scenario. Args: scheduler: its settings; None: there is none."""
    if not scenarios:
        return {}
    as_recorded = garden.kubeconfig_for("admin", _ADMINISTRATORS)

    async def play(agents: Sequence[AgentProcess]) -> dict[str, Observations]:
        async with connected(as_recorded, "scenarios") as client:
            return await play_all(scenarios, client, agents, at_once=at_once)

    configs = {
        "gardener-controller-manager": {
            "apiVersion": "controllermanager.config.gardener.cloud/v1alpha1",
            "kind": "ControllerManagerConfiguration",
            "gardenClientConnection": _UNLIMITED,
            "controllers": controllers,
        }
    }
    if scheduler is not None:
        configs["gardener-scheduler"] = {
            "apiVersion": "scheduler.config.gardener.cloud/v1alpha1",
            "kind": "SchedulerConfiguration",
            "clientConnection": _UNLIMITED,
            "schedulers": {"shoot": scheduler},
        }
    with ExitStack() as stack:
        agents = [stack.enter_context(_agent(garden, name, config)) for name, config in configs.items()]
        for agent in agents:
            agent.wait_until_ready()
        return asyncio.run(play(agents))


def _agent(garden: Cluster, name: str, config: Mapping[str, Any]) -> AgentProcess:
    own = garden.kubeconfig_for(name, _ADMINISTRATORS)
    return AgentProcess({**config, "leaderElection": {"leaderElect": False}}, kubeconfig=own)
