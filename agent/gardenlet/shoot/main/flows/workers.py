"""Additional entries in the flows of a Shoot with workers: its provider, its machines, and pods."""

from agent.gardenlet.flow.graph import Retry, Task
from agent.gardenlet.flow.unit import any_of
from agent.gardenlet.shoot.main.flows import extensions, not_built
from agent.gardenlet.shoot.main.flows.components import Entry, removes, stops, tasks_of
from agent.gardenlet.shoot.main.rules.extensions import Stage
from agent.gardenlet.shoot.main.skipping import asleep_or_no_waiting, no_clean_up, no_namespace, no_tunnels, workerless
from agent.gardenlet.shoot.main.tasks import infrastructure, machines, workers
from components import machine_controllers
from components.registry import ON_NODES
from components.results import NAMESPACE

AFTER_API_SERVER: list[Entry] = [
    infrastructure.CONTROL_PLANE,
    infrastructure.BASTIONS,
    # --- configuration of machines
    workers.SYSTEMS,
    workers.STALE_SYSTEMS,
    infrastructure.NETWORK,
    *not_built.ON_NODES,
    workers.NODE_AGENTS,
    infrastructure.CONTAINER_RUNTIMES,
    infrastructure.STALE_RUNTIMES,
    # --- machines
    stops(machine_controllers.AUTOSCALER, after=["node-agents"], reads=[NAMESPACE]),
    workers.MACHINES,
    extensions.deploys(
        "extensions-after-worker", "after workers", Stage.AFTER_WORKER, ["machine-deployments"], workerless
    ),
    workers.READY,
    stops(machine_controllers.MANAGER, after=["worker-ready"], reads=[NAMESPACE]),
    machines.START,
    Task(
        "tunnel",
        "Waiting until the Kubernetes API server can connect to the Shoot workers",
        workers.demand_tunnel,
        after=["network-ready", "system", "worker-ready", *(each.id for each in tasks_of(*ON_NODES))],
        unless=any_of(workerless, asleep_or_no_waiting, no_tunnels),
        retry=Retry(within=900.0),
    ),
    workers.CONFIGURED,
]
BEFORE_SLEEP = (
    *("machine-controller-manager-stopped", "extensions-after-worker-ready", "scheduler", "stale-systems"),
    *("runtimes-ready", "stale-runtimes", "vpn-seed-server"),
)
"""Tasks that precede the hibernation of a Shoot with workers."""


# --- deletion


CREDENTIALS = Task(
    "credentials",
    "Deploying cloud provider account secret",
    infrastructure.credentials,
    after=["namespace"],
    unless=any_of(workerless, no_namespace),
)
"""Repeated in each attempt, since extensions may wait for corrected credentials."""
MACHINES_GONE = [
    removes(machine_controllers.AUTOSCALER, ["controller-manager-ready"], no_clean_up),
    infrastructure.NETWORK.unit.gone(["workloads", "credentials"]),
    *workers.MACHINES_GO.tasks(),
    workers.SYSTEMS.unit.gone(["worker-gone"], verb="Deleting"),
]
CONTROL_PLANE_GONE = [
    infrastructure.CONTAINER_RUNTIMES.unit.gone(["managed-resources-gone"], verb="Deleting"),
    infrastructure.CONTROL_PLANE.unit.gone(
        ["managed-resources-gone", "extensions-before-gone", "systems-gone", "runtimes-gone"]
    ),
]
INFRASTRUCTURE_GONE = infrastructure.INFRASTRUCTURE.unit.gone(["api-server-gone", "control-plane-gone"])
