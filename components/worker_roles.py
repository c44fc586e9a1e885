"""Rights of the controllers of worker nodes in the seed: one role each, bound in the namespaces of Shoots."""

from components.access import EVERYTHING, READ, cluster_role, rule
from components.parts import in_seed
from components.seed_component import SeedComponent, SeedInputs
from kube.objects import Object

CLUSTER_AUTOSCALER = "cluster-autoscaler"
MACHINE_CONTROLLER_MANAGER = "machine-controller-manager"
_MACHINES = "machine.sapcloud.io"
_COORDINATION = "coordination.k8s.io"
_CHANGES = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def _cluster_autoscaler(_: SeedInputs) -> list[Object]:
    role = cluster_role(
        "system:cluster-autoscaler-seed", rule(_MACHINES, "*", _CHANGES), rule("apps", "deployments", READ)
    )
    return in_seed(CLUSTER_AUTOSCALER, [role])


def _machine_controller_manager(_: SeedInputs) -> list[Object]:
    leases = ("machine-controller", MACHINE_CONTROLLER_MANAGER)
    role = cluster_role(
        "system:machine-controller-manager-runtime",
        rule(_MACHINES, "*", EVERYTHING),
        rule("", ("configmaps", "secrets", "endpoints", "events", "pods"), EVERYTHING),
        rule(_COORDINATION, "leases", "create"),
        rule(_COORDINATION, "leases", ("get", "watch", "update"), names=leases),
    )
    return in_seed(MACHINE_CONTROLLER_MANAGER, [role])


COMPONENTS = (
    SeedComponent(name=CLUSTER_AUTOSCALER, title=CLUSTER_AUTOSCALER, objects=_cluster_autoscaler),
    SeedComponent(
        name=MACHINE_CONTROLLER_MANAGER, title=MACHINE_CONTROLLER_MANAGER, objects=_machine_controller_manager
    ),
)
