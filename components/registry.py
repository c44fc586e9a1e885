"""The components of a Shoot: one line each.

Their order is that of tasks in the flow, but not of their execution.
"""

from functools import cache
from itertools import chain

from components import (
    apiserver_proxy,
    coredns,
    kube_apiserver,
    kube_controller_manager,
    kube_proxy,
    kube_scheduler,
    machine_controllers,
    metrics_server,
    node_problem_detector,
    shoot_system,
)
from components.resource_manager import shoot as resource_manager
from components.sample import needs
from components.secrets.configs import Config
from components.secrets.tables import ControlPlane
from components.vertical_pod_autoscaler import of_shoot as vertical_pod_autoscaler
from components.vpn import client as vpn_client
from components.vpn import server as vpn_server
from components.worker_pools.pools import NODE_AGENT
from gardener.garden.shoots import workers
from kube.objects import Object, spec

ON_NODES = (
    coredns.COMPONENT,
    metrics_server.COMPONENT,
    vpn_server.COMPONENT,
    vpn_client.COMPONENT,
    node_problem_detector.COMPONENT,
    kube_proxy.COMPONENT,
    apiserver_proxy.COMPONENT,
)
"""Workloads that serve all pods of a Shoot with workers, and the tunnel to them."""
COMPONENTS = (
    kube_apiserver.COMPONENT,
    resource_manager.COMPONENT,
    kube_controller_manager.COMPONENT,
    *shoot_system.COMPONENTS,
    kube_scheduler.COMPONENT,
    *ON_NODES,
    machine_controllers.MANAGER,
    machine_controllers.AUTOSCALER,
    vertical_pod_autoscaler.COMPONENT,
)


IMAGES_OF_MACHINES = (NODE_AGENT, "hyperkube", "pause")
"""Images of programs on nodes that start before any Pod: see `shoot.main.tasks.workers`."""


@cache
def images_of_workers(omitted: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Images that only a Shoot with workers needs. Args: omitted: components that are not deployed."""
    deployed = (each for each in COMPONENTS if each.is_of_workers and each.name not in omitted)
    of_components = (needs(each).images for each in deployed)
    return tuple(sorted({*IMAGES_OF_MACHINES, *chain.from_iterable(of_components)}))


def required_deployments(shoot: Object) -> list[str]:
    """Names of Deployments without which the control plane is unhealthy."""
    has_workers = bool(workers(spec(shoot)))
    return [each.name for each in COMPONENTS if (has_workers or not each.is_of_workers) and each.is_required(shoot)]


def secrets(plane: ControlPlane) -> list[Config]:
    """Secrets generated for components, and for every Shoot."""
    wanted = (each for each in COMPONENTS if plane.has_workers or not each.is_of_workers)
    return [*plane.certificates(), *(config for each in wanted for config in each.secrets(plane))]
