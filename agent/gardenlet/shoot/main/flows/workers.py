"""Additional tasks in the flows of a Shoot with workers: its provider, its machines, and pods."""

from collections.abc import Collection, Iterator
from functools import partial
from typing import Any

from agent.gardenlet.flow.graph import ONCE, Retry, Task
from agent.gardenlet.shoot.main.flows import extensions
from agent.gardenlet.shoot.main.flows.components import removes, stops, tasks_of
from agent.gardenlet.shoot.main.flows.when import (
    Leaves,
    Run,
    asleep,
    has_ssh,
    no_clean_up,
    no_namespace,
    no_tunnels,
    no_waiting,
    not_built,
    workerless,
)
from agent.gardenlet.shoot.main.flows.when import for_workers as _task
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.results import STALE_SYSTEMS, SYSTEMS, WORKER_GOING
from agent.gardenlet.shoot.main.rules.extensions import Stage
from agent.gardenlet.shoot.main.tasks import (
    infrastructure,
    requests,
    workers,
)
from agent.gardenlet.shoot.main.tasks.requests import Requests
from components import machine_controllers
from components.registry import ON_NODES
from components.results import NAMESPACE


def _wait(
    its_id: str, name: str, run: Run, after: Collection[str], *unless: Leaves, **results: Any
) -> Task[ShootOperation]:
    return _task(its_id, name, run, after, *unless, retry=ONCE, **results)


def _tasks_of(
    definition: Requests, *, deploy: Run | None = None, wait: Run | None = None
) -> Iterator[Task[ShootOperation]]:
    """Task that writes objects for extensions, and the one that waits for responses."""
    deploy = deploy or partial(requests.deploy, requests=definition)
    waits = requests.wait_for_one if definition.names is None else requests.wait
    yield _task(definition.task, f"Deploying {definition.title}", deploy, definition.after, reads=definition.reads)
    yield _wait(
        f"{definition.task}-ready",
        f"Waiting until {definition.awaited}",
        wait or partial(waits, requests=definition),
        [definition.task],
        *(() if definition.is_needed else (no_waiting,)),
        provides=definition.provides,
    )


def _removes(
    definition: Requests, after: Collection[str], *, verb: str = "Deleting", title: str = ""
) -> Task[ShootOperation]:
    """Task that deletes objects of extensions, and waits until they are gone."""
    run = partial(requests.remove, requests=definition)
    return _wait(f"{definition.task}-gone", f"{verb} {title or definition.title}", run, after)


BEFORE_API_SERVER = [
    _task(
        "credentials",
        "Deploying cloud provider account secret",
        infrastructure.credentials,
        ["namespace"],
    ),
    *_tasks_of(infrastructure.INFRASTRUCTURE),
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
    *_tasks_of(infrastructure.CONTROL_PLANE, deploy=infrastructure.control_plane),
    _wait(
        "bastions",
        "Deleting Bastions",
        infrastructure.remove_bastions,
        ["referenced", "infrastructure-ready", "control-plane-ready"],
        has_ssh,
    ),
    # --- configuration of machines
    *_tasks_of(workers.SYSTEMS, deploy=workers.systems, wait=workers.wait_for_systems),
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
        partial(requests.wait_for, kind=workers.SYSTEMS.kind, result=STALE_SYSTEMS),
        ["stale-systems"],
        asleep,
        no_waiting,
        reads=[STALE_SYSTEMS],
    ),
    *_tasks_of(infrastructure.NETWORK),
    *_NOT_BUILT,
    _task(
        "node-agents",
        "Deploying managed resources for the gardener-node-agent",
        workers.node_agents,
        ["resource-manager-ready", "identity", "systems-ready"],
        asleep,
        reads=[SYSTEMS],
    ),
    *_tasks_of(infrastructure.CONTAINER_RUNTIMES),
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
        f"Configuring {workers.WORKER.title}",
        partial(requests.deploy, requests=workers.WORKER),
        workers.WORKER.after,
        reads=workers.WORKER.reads,
    ),
    _wait(
        "machine-deployments",
        f"Waiting until {workers.WORKER.awaited}",
        partial(requests.wait_for_one, requests=workers.WORKER),
        ["worker"],
        asleep,
        provides=workers.WORKER.provides,
    ),
    *extensions.deploys(
        "extensions-after-worker", "after workers", Stage.AFTER_WORKER, ["machine-deployments"], workerless
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


CREDENTIALS = [
    _task(
        "credentials",
        "Deploying cloud provider account secret",
        infrastructure.credentials,
        ["namespace"],
        no_namespace,
    ),
]
"""Repeated in each attempt, since extensions may wait for corrected credentials."""
MACHINES_GONE = [
    removes(machine_controllers.AUTOSCALER, ["controller-manager-ready"], no_clean_up),
    _removes(infrastructure.NETWORK, ["workloads", "credentials"], verb="Destroying"),
    _task(
        "worker",
        "Destroying shoot workers",
        partial(requests.delete_all, requests=workers.WORKER),
        ["network-gone", "machine-controller-manager", "autoscaler-gone"],
        retry=ONCE,
        provides=WORKER_GOING,
    ),
    _wait(
        "worker-gone",
        "Waiting until shoot worker nodes have been terminated",
        partial(requests.wait_for, kind=workers.WORKER.kind, result=WORKER_GOING),
        ["worker"],
        reads=[WORKER_GOING],
    ),
    _removes(workers.SYSTEMS, ["worker-gone"], title="operating system config resources"),
]
CONTROL_PLANE_GONE = [
    _removes(infrastructure.CONTAINER_RUNTIMES, ["managed-resources-gone"]),
    _wait(
        "control-plane-gone",
        "Destroying shoot control plane",
        infrastructure.destroy_control_plane,
        ["managed-resources-gone", "extensions-before-gone", "systems-gone", "runtimes-gone"],
    ),
]
INFRASTRUCTURE_GONE = [
    _removes(
        infrastructure.INFRASTRUCTURE,
        ["api-server-gone", "control-plane-gone"],
        verb="Destroying",
        title="shoot infrastructure",
    ),
]
