"""The flow that deletes a Shoot's cluster, including user objects in it.

The control plane is woken first, since controllers in the cluster have to undo their effects outside. Nothing is
created any more while the namespace is being deleted.
"""

from functools import partial
from typing import Any

from agent.gardenlet.flow.graph import ONCE, Graph, Task
from agent.gardenlet.shoot.main.flows import extensions, workers
from agent.gardenlet.shoot.main.flows.components import destroys
from agent.gardenlet.shoot.main.flows.when import Run, no_control_plane
from agent.gardenlet.shoot.main.flows.when import no_gateways as _no_gateways
from agent.gardenlet.shoot.main.flows.when import wakes as _wakes
from agent.gardenlet.shoot.main.flows.woken import woken
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.results import EXTENSIONS_AFTER, EXTENSIONS_BEFORE, STALE_EXTENSIONS
from agent.gardenlet.shoot.main.rules import cleanup as kinds
from agent.gardenlet.shoot.main.rules.extensions import Stage
from agent.gardenlet.shoot.main.tasks import (
    cleanup,
    destruction,
    etcd,
    exposure,
)
from agent.gardenlet.shoot.main.tasks.extensions import delete_stale
from components import kube_apiserver, kube_controller_manager
from components.resource_manager import shoot as resource_manager
from components.results import ADDRESS


def _removes(its_id: str, name: str, run: Run, after: list[str], **results: Any) -> Task[ShootOperation]:
    """Args: results: those that it provides or reads, as for `Task`."""
    return Task(its_id, name, run, after=after, retry=ONCE, **results)


DELETE: Graph[ShootOperation] = Graph(
    "Shoot cluster deletion",
    [
        *workers.CREDENTIALS,
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
        _wakes("webhooks", "Cleaning up webhooks", partial(cleanup.clean_up, wanted=kinds.WEBHOOKS), ["connection"]),
        _wakes(
            "extended-apis",
            "Cleaning extended API groups",
            partial(cleanup.clean_up, wanted=kinds.EXTENDED_APIS),
            ["controller-manager-ready"],
        ),
        _wakes(
            "workloads",
            "Cleaning Kubernetes resources",
            partial(cleanup.clean_up, wanted=kinds.WORKLOADS),
            ["extended-apis"],
        ),
        *workers.MACHINES_GONE,
        # --- objects of Gardener and extensions in the cluster
        _removes(
            "managed-resources",
            "Deleting managed resources",
            destruction.delete_managed_resources,
            ["workloads", "systems-gone"],
        ),
        _removes(
            "managed-resources-gone",
            "Waiting until managed resources have been deleted",
            destruction.wait_for_managed_resources,
            ["managed-resources"],
        ),
        *extensions.deletes(
            "extensions-before",
            "before kube-apiserver",
            [Stage.BEFORE_API_SERVER],
            ["managed-resources-gone"],
            EXTENSIONS_BEFORE,
        ),
        _removes(
            "stale-extensions",
            "Deleting stale extension resources",
            delete_stale,
            ["managed-resources-gone"],
            provides=STALE_EXTENSIONS,
        ),
        extensions.waits_until_gone(
            "stale-extensions-gone",
            "Waiting until all stale extension resources have been deleted",
            "stale-extensions",
            STALE_EXTENSIONS,
        ),
        *workers.CONTROL_PLANE_GONE,
        _removes(
            "shoot-managed-resources-gone",
            "Waiting until shoot managed resources have been deleted",
            destruction.wait_for_all_of_shoot,
            ["extensions-before-gone", "stale-extensions-gone", "control-plane-gone"],
        ),
        # --- the control plane
        destroys(kube_apiserver.COMPONENT, ["shoot-managed-resources-gone"], verb="Deleting"),
        *extensions.deletes(
            "extensions-after",
            "after kube-apiserver",
            [Stage.AFTER_API_SERVER, Stage.AFTER_WORKER],
            ["api-server-gone"],
            EXTENSIONS_AFTER,
        ),
        destroys(kube_controller_manager.COMPONENT, ["api-server-gone"]),
        destroys(resource_manager.COMPONENT, ["api-server-gone"]),
        _removes(
            "external-name",
            "Destroying external domain DNS record",
            exposure.remove_external_name,
            ["api-server-gone"],
            reads=[ADDRESS],
        ),
        Task(
            "names-at-gateway-gone",
            "Destroying Kubernetes API server service SNI",
            exposure.remove_names_at_gateway,
            after=["api-server-gone"],
            unless=_no_gateways,
            retry=ONCE,
        ),
        _removes(
            "service-gone",
            "Destroying Kubernetes API server service",
            destruction.service,
            ["names-at-gateway-gone"],
        ),
        *workers.INFRASTRUCTURE_GONE,
        # --- the rest
        _removes(
            "internal-name-gone",
            "Destroying internal domain DNS record",
            exposure.remove_internal_name,
            ["external-name", "service-gone", "extensions-after-gone", "infrastructure-gone"],
            reads=[ADDRESS],
        ),
        _removes(
            "referenced-gone",
            "Deleting referenced resources",
            destruction.referenced,
            ["extensions-after-gone", "service-gone", "external-name"],
        ),
        _removes(
            "etcd-gone",
            "Destroying main and events etcd",
            etcd.destroy,
            ["internal-name-gone", "referenced-gone", "resource-manager-gone", "controller-manager-gone"],
        ),
        _removes("namespace-goes", "Deleting shoot namespace in Seed", destruction.namespace, ["etcd-gone"]),
        _removes(
            "namespace-gone",
            "Waiting until shoot namespace in Seed has been deleted",
            destruction.wait_for_namespace,
            ["namespace-goes"],
        ),
        _removes("state", "Deleting Shoot State", destruction.shoot_state, ["etcd-gone"]),
    ],
)
