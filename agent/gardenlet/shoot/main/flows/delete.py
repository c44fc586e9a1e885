"""The flow that removes a Shoot's cluster, with what users have left in it.

The control plane is woken first, since controllers in the cluster have to undo what they have done outside. Nothing is
made any more once the namespace goes.
"""

from functools import partial

from agent.gardenlet.flow.graph import ONCE, Graph, Retry, Task
from agent.gardenlet.shoot.main.flows import workers
from agent.gardenlet.shoot.main.flows.when import Run
from agent.gardenlet.shoot.main.flows.when import local as _local
from agent.gardenlet.shoot.main.flows.when import no_clean_up as _no_clean_up
from agent.gardenlet.shoot.main.flows.when import wakes as _wakes
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.rules import cleanup as kinds
from agent.gardenlet.shoot.main.rules.extensions import Stage
from agent.gardenlet.shoot.main.tasks import (
    cleanup,
    control_plane,
    destruction,
    etcd,
    exposure,
    extensions,
    foundation,
    shoot_objects,
)

_AFTER = (Stage.AFTER_API_SERVER, Stage.AFTER_WORKER)


def _removes(its_id: str, name: str, run: Run, after: list[str]) -> Task[ShootOperation]:
    return Task(its_id, name, run, after=after, retry=ONCE)


_SHORT, _LONG = Retry(), Retry(within=120.0)

DELETE: Graph[ShootOperation] = Graph(
    "Shoot cluster deletion",
    [
        # --- awake
        _wakes("namespace", "Deploying Shoot namespace in Seed", foundation.namespace, [], _SHORT),
        _wakes("identity", "Ensuring Shoot cluster identity", foundation.cluster_identity, ["namespace"], _SHORT),
        _wakes("secrets", "Initializing secrets management", foundation.secrets, ["namespace"], _SHORT),
        _wakes("referenced", "Deploying referenced resources", foundation.referenced, ["namespace"], _SHORT),
        _wakes(
            "service",
            "Deploying Kubernetes API server service in the Seed cluster",
            exposure.service,
            ["namespace", "identity"],
            _SHORT,
        ),
        _wakes(
            "address",
            "Waiting until Kubernetes API LoadBalancer in the Seed cluster has reported readiness",
            exposure.wait_for_address,
            ["service"],
        ),
        Task(
            "names-at-gateway",
            "Deploying Kubernetes API server service SNI settings in the Seed cluster",
            exposure.names_at_gateway,
            after=["service"],
            unless=lambda operation: _no_clean_up(operation) or _local(operation),
        ),
        _wakes("advertised", "Ensuring advertised addresses for the Shoot", exposure.advertise, ["address"], _SHORT),
        _wakes(
            "internal-name",
            "Deploying internal domain DNS record",
            exposure.internal_name,
            ["referenced", "address"],
        ),
        _wakes("etcd", "Deploying main and events etcd", etcd.deploy, ["secrets", "referenced"], _SHORT),
        _wakes("etcd-ready", "Waiting until main and event etcd report readiness", etcd.wait, ["etcd"]),
        _wakes(
            "api-server",
            "Deploying Kubernetes API server",
            control_plane.api_server,
            ["etcd-ready", "address"],
            _SHORT,
        ),
        _wakes(
            "api-server-ready",
            "Waiting until Kubernetes API server reports readiness",
            control_plane.wait_for_api_server,
            ["api-server"],
        ),
        _wakes(
            "resource-manager",
            "Deploying gardener-resource-manager",
            control_plane.deploy_resource_manager,
            ["api-server-ready"],
            _SHORT,
        ),
        _wakes(
            "resource-manager-ready",
            "Waiting until gardener-resource-manager reports readiness",
            control_plane.wait_for_resource_manager,
            ["resource-manager"],
        ),
        _wakes(
            "access",
            "Deploying Gardener shoot access resources",
            shoot_objects.access,
            ["resource-manager-ready"],
            _SHORT,
        ),
        _wakes(
            "connection",
            "Initializing connection to Shoot",
            shoot_objects.connection,
            ["access", "internal-name", "names-at-gateway"],
            _LONG,
        ),
        *workers.WOKEN,
        # --- what users have left in it
        _wakes("webhooks", "Cleaning up webhooks", partial(cleanup.clean_up, wanted=kinds.WEBHOOKS), ["connection"]),
        _wakes(
            "controller-manager",
            "Deploying Kubernetes controller manager",
            control_plane.controller_manager,
            ["connection", "control-plane-ready"],
            _SHORT,
        ),
        _wakes(
            "controller-manager-ready",
            "Waiting until kube-controller-manager is active",
            control_plane.wait_for_controller_manager,
            ["controller-manager", "webhooks"],
        ),
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
        # --- what Gardener and extensions have in it
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
        _removes(
            "extensions-before",
            "Deleting extension resources before kube-apiserver",
            extensions.deletes(Stage.BEFORE_API_SERVER),
            ["managed-resources-gone"],
        ),
        _removes(
            "extensions-before-gone",
            "Waiting until extension resources that should be handled before kube-apiserver have been deleted",
            extensions.waits_until_gone(Stage.BEFORE_API_SERVER),
            ["extensions-before"],
        ),
        _removes(
            "stale-extensions",
            "Deleting stale extension resources",
            extensions.delete_stale,
            ["managed-resources-gone"],
        ),
        _removes(
            "stale-extensions-gone",
            "Waiting until all stale extension resources have been deleted",
            extensions.wait_until_stale_are_gone,
            ["stale-extensions"],
        ),
        *workers.CONTROL_PLANE_GONE,
        _removes(
            "shoot-managed-resources-gone",
            "Waiting until shoot managed resources have been deleted",
            destruction.wait_for_all_of_shoot,
            ["extensions-before-gone", "stale-extensions-gone", "control-plane-gone"],
        ),
        # --- the control plane
        _removes(
            "api-server-gone",
            "Deleting Kubernetes API server",
            control_plane.destroy_api_server,
            ["shoot-managed-resources-gone"],
        ),
        _removes(
            "extensions-after",
            "Deleting extension resources after kube-apiserver",
            extensions.deletes(*_AFTER),
            ["api-server-gone"],
        ),
        _removes(
            "extensions-after-gone",
            "Waiting until extension resources that should be handled after kube-apiserver have been deleted",
            extensions.waits_until_gone(*_AFTER),
            ["extensions-after"],
        ),
        _removes(
            "controller-manager-gone",
            "Destroying Kubernetes controller manager",
            control_plane.destroy_controller_manager,
            ["api-server-gone"],
        ),
        _removes(
            "resource-manager-gone",
            "Destroying gardener-resource-manager",
            control_plane.destroy_resource_manager,
            ["api-server-gone"],
        ),
        _removes(
            "external-name",
            "Destroying external domain DNS record",
            exposure.remove_external_name,
            ["api-server-gone"],
        ),
        Task(
            "names-at-gateway-gone",
            "Destroying Kubernetes API server service SNI",
            exposure.remove_names_at_gateway,
            after=["api-server-gone"],
            unless=_local,
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
