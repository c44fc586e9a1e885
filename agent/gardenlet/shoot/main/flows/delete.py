"""The flow that deletes a Shoot's cluster, including user objects in it.

The control plane is woken first, since controllers in the cluster have to undo their effects outside. Nothing is
created any more while the namespace is being deleted.
"""

from dataclasses import replace

from agent.gardenlet.flow.graph import Graph
from agent.gardenlet.shoot.main.flows import extensions, workers
from agent.gardenlet.shoot.main.flows.components import tasks_of, unit_of
from agent.gardenlet.shoot.main.flows.woken import woken
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.results import EXTENSIONS_AFTER, EXTENSIONS_BEFORE
from agent.gardenlet.shoot.main.rules.extensions import Stage
from agent.gardenlet.shoot.main.skipping import no_control_plane
from agent.gardenlet.shoot.main.tasks import cleanup, destruction, etcd, exposure, foundation
from components import kube_apiserver, kube_controller_manager
from components.resource_manager import shoot as resource_manager

_TASKS = tasks_of(
    workers.CREDENTIALS,
    *woken(
        *("namespace", "identity", "secrets", "referenced", "service", "address"),
        *("names-at-gateway", "advertised", "internal-name", "etcd", "etcd-ready", "api-server"),
        *("api-server-ready", "resource-manager", "resource-manager-ready", "access", "connection"),
        *("control-plane", "control-plane-ready", "controller-manager", "controller-manager-ready"),
        "machine-controller-manager",
        after={
            "etcd": ["referenced"],
            "control-plane": ["credentials"],
            "controller-manager": ["connection", "control-plane-ready"],
            "controller-manager-ready": ["webhooks"],
            "machine-controller-manager": ["workloads"],
        },
        names={
            "address": "Waiting until Kubernetes API LoadBalancer in the Seed cluster has reported readiness",
            "api-server-ready": "Waiting until Kubernetes API server reports readiness",
            "controller-manager-ready": "Waiting until kube-controller-manager is active",
        },
        unless=dict.fromkeys(("control-plane", "control-plane-ready"), no_control_plane),
    ),
    # --- user objects in the cluster
    *cleanup.TASKS,
    *workers.MACHINES_GONE,
    # --- objects of Gardener and extensions in the cluster
    destruction.OBJECTS_OF_GARDENER,
    extensions.deletes(
        *("extensions-before", "before kube-apiserver"),
        [Stage.BEFORE_API_SERVER],
        ["managed-resources-gone"],
        EXTENSIONS_BEFORE,
    ),
    extensions.STALE_BEFORE_DELETION,
    *workers.CONTROL_PLANE_GONE,
    destruction.OBJECTS_OF_SHOOT_GONE,
    # --- the control plane
    unit_of(kube_apiserver.COMPONENT).gone(["shoot-managed-resources-gone"], verb="Deleting"),
    extensions.deletes(
        *("extensions-after", "after kube-apiserver"),
        [Stage.AFTER_API_SERVER, Stage.AFTER_WORKER],
        ["api-server-gone"],
        EXTENSIONS_AFTER,
    ),
    unit_of(kube_controller_manager.COMPONENT).gone(["api-server-gone"]),
    unit_of(resource_manager.COMPONENT).gone(["api-server-gone"]),
    replace(exposure.EXTERNAL_NAME.gone(["api-server-gone"]), id="external-name"),
    exposure.AT_GATEWAY.gone(["api-server-gone"]),
    exposure.SERVICE.gone(["names-at-gateway-gone"]),
    workers.INFRASTRUCTURE_GONE,
    # --- the rest
    exposure.INTERNAL_NAME.gone(["external-name", "service-gone", "extensions-after-gone", "infrastructure-gone"]),
    foundation.REFERENCED.gone(["extensions-after-gone", "service-gone", "external-name"], verb="Deleting"),
    etcd.UNIT.gone(["internal-name-gone", "referenced-gone", "resource-manager-gone", "controller-manager-gone"]),
    destruction.namespace_goes("namespace-goes", ["etcd-gone"]),
    destruction.state_goes(["etcd-gone"]),
)

DELETE: Graph[ShootOperation] = Graph("Shoot cluster deletion", [*_TASKS])
