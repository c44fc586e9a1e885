"""Additional tasks in the flows of a Shoot with workers: its provider, its machines, and pods."""

from collections.abc import Collection
from functools import partial
from typing import Any

from agent.gardenlet.flow.graph import ONCE, Retry, Task
from agent.gardenlet.shoot.main.flows.components import removes, stops, tasks_of
from agent.gardenlet.shoot.main.flows.when import (
    Leaves,
    Run,
    asleep,
    has_ssh,
    no_clean_up,
    no_tunnels,
    no_waiting,
    not_built,
)
from agent.gardenlet.shoot.main.flows.when import for_workers as _task
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.results import STALE_SYSTEMS, SYSTEMS, WORKER_GOING
from agent.gardenlet.shoot.main.rules.extensions import Stage
from agent.gardenlet.shoot.main.tasks import (
    extensions,
    infrastructure,
    requests,
    workers,
)
from components import machine_controllers
from components.registry import ON_NODES
from components.results import ADDRESS, INFRASTRUCTURE, NAMESPACE, WORKER

_SHORT = Retry()


def _wait(
    its_id: str, name: str, run: Run, after: Collection[str], *unless: Leaves, **results: Any
) -> Task[ShootOperation]:
    return _task(its_id, name, run, after, *unless, retry=ONCE, **results)


BEFORE_API_SERVER = [
    _task(
        "credentials",
        "Deploying cloud provider account secret",
        infrastructure.credentials,
        ["namespace"],
    ),
    _task(
        "infrastructure",
        "Deploying Shoot infrastructure",
        partial(requests.deploy, requests=infrastructure.INFRASTRUCTURE),
        ["credentials", "secrets", "referenced"],
    ),
    _wait(
        "infrastructure-ready",
        "Waiting until shoot infrastructure has been reconciled",
        partial(requests.wait_for_one, requests=infrastructure.INFRASTRUCTURE),
        ["infrastructure"],
        provides=INFRASTRUCTURE,
    ),
]

_NOT_BUILT = [
    not_built(its_id, name, after=["resource-manager-ready"])
    for its_id, name in (
        ("node-local-dns-system", "Reconcile node-local-dns system component"),
        ("blackbox-exporter-system", "Deploying blackbox-exporter"),
        ("node-exporter-system", "Deploying node-exporter"),
        ("dashboard-system", "Deploying addon Kubernetes Dashboard"),
        ("nginx-ingress-system", "Deploying addon Nginx Ingress Controller"),
        ("dependency-watchdog", "Deploying dependency-watchdog shoot access resources"),
    )
]

AFTER_API_SERVER = [
    _task(
        "control-plane",
        "Deploying shoot control plane components",
        infrastructure.control_plane,
        ["infrastructure-ready", "api-server-ready", "resource-manager-ready"],
        reads=[INFRASTRUCTURE],
    ),
    _wait(
        "control-plane-ready",
        "Waiting until shoot control plane has been reconciled",
        partial(requests.wait, requests=infrastructure.CONTROL_PLANE),
        ["control-plane"],
        no_waiting,
    ),
    _wait(
        "bastions",
        "Deleting Bastions",
        infrastructure.remove_bastions,
        ["referenced", "infrastructure-ready", "control-plane-ready"],
        has_ssh,
    ),
    # --- configuration of machines
    _task(
        "systems",
        "Deploying operating system specific configuration for shoot workers",
        workers.systems,
        ["referenced", "infrastructure-ready", "control-plane-ready", "extensions-after-ready"],
        reads=[ADDRESS],
    ),
    _wait(
        "systems-ready",
        "Waiting until operating system configurations for worker nodes have been reconciled",
        workers.wait_for_systems,
        ["systems"],
        provides=SYSTEMS,
    ),
    _task(
        "stale-systems",
        "Delete stale operating system config resources",
        partial(requests.delete_stale, requests=workers.SYSTEMS),
        ["systems-ready"],
        provides=STALE_SYSTEMS,
    ),
    _wait(
        "stale-systems-gone",
        "Waiting until stale operating system config resources are deleted",
        workers.wait_until_stale_systems_are_gone,
        ["stale-systems"],
        asleep,
        no_waiting,
        reads=[STALE_SYSTEMS],
    ),
    _task(
        "network",
        "Deploying shoot network plugin",
        partial(requests.deploy, requests=infrastructure.NETWORK),
        ["referenced", "resource-manager-ready", "systems-ready", "scheduler", "namespaces-ready"],
    ),
    _wait(
        "network-ready",
        "Waiting until shoot network plugin has been reconciled",
        partial(requests.wait, requests=infrastructure.NETWORK),
        ["network"],
        no_waiting,
    ),
    *_NOT_BUILT,
    _task(
        "node-agents",
        "Deploying managed resources for the gardener-node-agent",
        workers.node_agents,
        ["resource-manager-ready", "identity", "systems-ready"],
        asleep,
        reads=[SYSTEMS],
    ),
    _task(
        "runtimes",
        "Deploying container runtime resources",
        partial(requests.deploy, requests=infrastructure.CONTAINER_RUNTIMES),
        ["referenced", "connection"],
    ),
    _wait(
        "runtimes-ready",
        "Waiting until container runtime resources are ready",
        partial(requests.wait, requests=infrastructure.CONTAINER_RUNTIMES),
        ["runtimes"],
        no_waiting,
    ),
    _wait(
        "stale-runtimes",
        "Deleting stale container runtime resources",
        partial(requests.remove_stale, requests=infrastructure.CONTAINER_RUNTIMES),
        ["connection"],
    ),
    # --- machines
    stops(machine_controllers.AUTOSCALER, after=["node-agents"], reads=[NAMESPACE]),
    _task(
        "worker",
        "Configuring shoot worker pools",
        partial(requests.deploy, requests=workers.WORKER),
        ["machine-controller-manager", "node-agents"],
        reads=[INFRASTRUCTURE, SYSTEMS],
    ),
    _wait(
        "machine-deployments",
        "Waiting until worker resource status is updated with latest machine deployments",
        partial(requests.wait_for_one, requests=workers.WORKER),
        ["worker"],
        asleep,
        provides=WORKER,
    ),
    _task(
        "extensions-after-worker",
        "Deploying extension resources after workers",
        extensions.deploys(Stage.AFTER_WORKER),
        ["machine-deployments"],
    ),
    _wait(
        "extensions-after-worker-ready",
        "Waiting until extension resources handled after workers are ready",
        extensions.waits(Stage.AFTER_WORKER),
        ["extensions-after-worker"],
        no_waiting,
    ),
    _wait(
        "worker-ready",
        "Waiting until shoot worker nodes have been reconciled",
        partial(requests.wait, requests=workers.WORKER),
        ["worker", "machine-deployments", "node-agents"],
        no_waiting,
    ),
    stops(machine_controllers.MANAGER, after=["worker-ready"], reads=[NAMESPACE]),
    _task(
        "tunnel",
        "Waiting until the Kubernetes API server can connect to the Shoot workers",
        workers.demand_tunnel,
        ["network-ready", "system", "worker-ready", *(task.id for each in ON_NODES for task in tasks_of(each))],
        asleep,
        no_waiting,
        no_tunnels,
        retry=Retry(within=900.0),
    ),
    _task(
        "nodes-configured",
        "Waiting until all shoot worker nodes have updated the operating system config",
        workers.demand_configured_nodes,
        ["worker-ready", "tunnel"],
        asleep,
        no_waiting,
        reads=[SYSTEMS],
    ),
]

BEFORE_SLEEP = (
    *("machine-controller-manager-stopped", "extensions-after-worker-ready", "scheduler", "stale-systems"),
    *("runtimes-ready", "stale-runtimes", "vpn-seed-server"),
)
"""Tasks that precede the hibernation of a Shoot with workers."""


# --- deletion


MACHINES_GONE = [
    removes(machine_controllers.AUTOSCALER, ["controller-manager-ready"], no_clean_up),
    _task(
        "network-gone",
        "Destroying shoot network plugin",
        partial(requests.remove, requests=infrastructure.NETWORK),
        ["workloads"],
        retry=ONCE,
    ),
    _task(
        "worker",
        "Destroying shoot workers",
        workers.delete,
        ["network-gone", "machine-controller-manager", "autoscaler-gone"],
        retry=ONCE,
        provides=WORKER_GOING,
    ),
    _wait(
        "worker-gone",
        "Waiting until shoot worker nodes have been terminated",
        workers.wait_until_gone,
        ["worker"],
        reads=[WORKER_GOING],
    ),
    _wait(
        "systems-gone",
        "Deleting operating system config resources",
        partial(requests.remove, requests=workers.SYSTEMS),
        ["worker-gone"],
    ),
]
CONTROL_PLANE_GONE = [
    _wait(
        "runtimes-gone",
        "Deleting container runtime resources",
        partial(requests.remove, requests=infrastructure.CONTAINER_RUNTIMES),
        ["managed-resources-gone"],
    ),
    _wait(
        "control-plane-gone",
        "Destroying shoot control plane",
        partial(requests.remove, requests=infrastructure.CONTROL_PLANE),
        ["managed-resources-gone", "extensions-before-gone", "systems-gone", "runtimes-gone"],
    ),
]
INFRASTRUCTURE_GONE = [
    _wait(
        "infrastructure-gone",
        "Destroying shoot infrastructure",
        partial(requests.remove, requests=infrastructure.INFRASTRUCTURE),
        ["api-server-gone", "control-plane-gone"],
    ),
]
