"""What the flows of a Shoot have beside, if it has workers: tasks for its provider, its machines, and for pods."""

from collections.abc import Collection

from agent.gardenlet.flow.graph import ONCE, Retry, Task
from agent.gardenlet.shoot.main.flows.system_components import SYSTEM_COMPONENTS
from agent.gardenlet.shoot.main.flows.when import (
    Leaves,
    Run,
    asleep,
    awake,
    has_ssh,
    local,
    no_clean_up,
    no_waiting,
    not_built,
)
from agent.gardenlet.shoot.main.flows.when import for_workers as _task
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.rules.extensions import Stage
from agent.gardenlet.shoot.main.tasks import (
    container_runtimes,
    extensions,
    for_workers,
    infrastructure,
    system_components,
    workers,
)

_SHORT = Retry()


def _wait(its_id: str, name: str, run: Run, after: Collection[str], *unless: Leaves) -> Task[ShootOperation]:
    return _task(its_id, name, run, after, *unless, retry=ONCE)


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
        infrastructure.infrastructure,
        ["credentials", "secrets", "referenced"],
    ),
    _wait(
        "infrastructure-ready",
        "Waiting until shoot infrastructure has been reconciled",
        infrastructure.wait_for_infrastructure,
        ["infrastructure"],
    ),
]

AFTER_API_SERVER = [
    _task(
        "control-plane",
        "Deploying shoot control plane components",
        infrastructure.control_plane,
        ["infrastructure-ready", "api-server-ready", "resource-manager-ready"],
    ),
    _wait(
        "control-plane-ready",
        "Waiting until shoot control plane has been reconciled",
        infrastructure.wait_for_control_plane,
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
    _task(
        "scheduler",
        "Deploying Kubernetes scheduler",
        for_workers.scheduler,
        ["secrets", "resource-manager-ready"],
    ),
    # --- what is on machines
    _task(
        "systems",
        "Deploying operating system specific configuration for shoot workers",
        workers.systems,
        ["referenced", "infrastructure-ready", "control-plane-ready", "extensions-after-ready"],
    ),
    _wait(
        "systems-ready",
        "Waiting until operating system configurations for worker nodes have been reconciled",
        workers.wait_for_systems,
        ["systems"],
    ),
    _task(
        "stale-systems",
        "Delete stale operating system config resources",
        workers.delete_stale_systems,
        ["systems-ready"],
    ),
    _wait(
        "stale-systems-gone",
        "Waiting until stale operating system config resources are deleted",
        workers.wait_until_stale_systems_are_gone,
        ["stale-systems"],
        asleep,
        no_waiting,
    ),
    _task(
        "network",
        "Deploying shoot network plugin",
        infrastructure.network,
        ["referenced", "resource-manager-ready", "systems-ready", "scheduler", "namespaces-ready"],
    ),
    _wait(
        "network-ready",
        "Waiting until shoot network plugin has been reconciled",
        infrastructure.wait_for_network,
        ["network"],
        no_waiting,
    ),
    *SYSTEM_COMPONENTS,
    _task(
        "node-agents",
        "Deploying managed resources for the gardener-node-agent",
        workers.node_agents,
        ["resource-manager-ready", "identity", "systems-ready"],
        asleep,
    ),
    _task(
        "runtimes",
        "Deploying container runtime resources",
        container_runtimes.deploy,
        ["referenced", "connection"],
    ),
    _wait(
        "runtimes-ready",
        "Waiting until container runtime resources are ready",
        container_runtimes.wait,
        ["runtimes"],
        no_waiting,
    ),
    _wait(
        "stale-runtimes",
        "Deleting stale container runtime resources",
        container_runtimes.remove_stale,
        ["connection"],
    ),
    # --- machines
    _task(
        "autoscaler-stopped",
        "Scaling down cluster autoscaler",
        for_workers.stop_cluster_autoscaler,
        ["node-agents"],
        awake,
    ),
    _wait(
        "machine-controller-manager",
        "Deploying machine-controller-manager",
        for_workers.machine_controller_manager,
        [
            "credentials",
            "referenced",
            "infrastructure-ready",
            "connection",
            "systems-ready",
            "network-ready",
            "autoscaler-stopped",
        ],
    ),
    _task(
        "worker",
        "Configuring shoot worker pools",
        workers.deploy,
        ["machine-controller-manager", "node-agents"],
    ),
    _wait(
        "machine-deployments",
        "Waiting until worker resource status is updated with latest machine deployments",
        workers.wait_for_machine_deployments,
        ["worker"],
        asleep,
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
    _task(
        "autoscaler",
        "Deploying cluster autoscaler",
        for_workers.cluster_autoscaler,
        ["machine-deployments", "node-agents"],
        asleep,
    ),
    _wait(
        "worker-ready",
        "Waiting until shoot worker nodes have been reconciled",
        workers.wait,
        ["worker", "machine-deployments", "node-agents"],
        no_waiting,
    ),
    _task(
        "machine-controller-manager-stopped",
        "Scaling down machine-controller-manager",
        for_workers.stop_machine_controller_manager,
        ["worker-ready"],
        awake,
    ),
    _task(
        "tunnel",
        "Waiting until the Kubernetes API server can connect to the Shoot workers",
        system_components.demand_tunnel,
        ["network-ready", "system", "worker-ready", *(each.id for each in SYSTEM_COMPONENTS)],
        asleep,
        no_waiting,
        local,
        retry=Retry(within=900.0),
    ),
    _task(
        "nodes-configured",
        "Waiting until all shoot worker nodes have updated the operating system config",
        workers.demand_configured_nodes,
        ["worker-ready", "tunnel"],
        asleep,
        no_waiting,
    ),
    _task(
        "vertical-pod-autoscaler",
        "Deploying Kubernetes vertical pod autoscaler",
        for_workers.vertical_pod_autoscaler,
        ["resource-manager-ready"],
        asleep,
    ),
    not_built(
        "dependency-watchdog",
        "Deploying dependency-watchdog shoot access resources",
        after=["resource-manager-ready"],
    ),
]

BEFORE_SLEEP = (
    *("machine-controller-manager-stopped", "extensions-after-worker-ready", "scheduler", "stale-systems"),
    *("runtimes-ready", "stale-runtimes", "vpn-seed-server"),
)
"""What a Shoot with workers has done before it sleeps."""


# --- their end


def _wakes(its_id: str, name: str, run: Run, after: Collection[str], retry: Retry = _SHORT) -> Task[ShootOperation]:
    return _task(its_id, name, run, after, no_clean_up, retry=retry)


WOKEN = [
    _wakes("credentials", "Deploying cloud provider account secret", infrastructure.credentials, ["namespace"]),
    _wakes(
        "control-plane",
        "Deploying shoot control plane components",
        infrastructure.control_plane,
        ["credentials", "resource-manager-ready"],
    ),
    _wakes(
        "control-plane-ready",
        "Waiting until shoot control plane has been reconciled",
        infrastructure.wait_for_control_plane,
        ["control-plane"],
        ONCE,
    ),
]
MACHINES_GONE = [
    _wakes(
        "autoscaler-gone",
        "Deleting cluster autoscaler",
        for_workers.remove_cluster_autoscaler,
        ["controller-manager-ready"],
    ),
    _task("network-gone", "Destroying shoot network plugin", infrastructure.remove_network, ["workloads"], retry=ONCE),
    _wakes(
        "machine-controller-manager",
        "Deploying machine-controller-manager",
        for_workers.machine_controller_manager,
        ["workloads"],
    ),
    _task(
        "worker",
        "Destroying shoot workers",
        workers.remove,
        ["network-gone", "machine-controller-manager", "autoscaler-gone"],
        retry=ONCE,
    ),
    _wait(
        "worker-gone",
        "Waiting until shoot worker nodes have been terminated",
        workers.wait_until_gone,
        ["worker"],
    ),
    _wait(
        "systems-gone",
        "Deleting operating system config resources",
        workers.remove_systems,
        ["worker-gone"],
    ),
]
CONTROL_PLANE_GONE = [
    _wait(
        "runtimes-gone",
        "Deleting container runtime resources",
        container_runtimes.remove,
        ["managed-resources-gone"],
    ),
    _wait(
        "control-plane-gone",
        "Destroying shoot control plane",
        infrastructure.remove_control_plane,
        ["managed-resources-gone", "extensions-before-gone", "systems-gone", "runtimes-gone"],
    ),
]
INFRASTRUCTURE_GONE = [
    _wait(
        "infrastructure-gone",
        "Destroying shoot infrastructure",
        infrastructure.remove_infrastructure,
        ["api-server-gone", "control-plane-gone"],
    ),
]
