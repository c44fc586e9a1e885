"""The flow by which a Shoot leaves its seed, with its keys, its data and the state of its extensions.

The control plane is woken first, so that its resource manager releases the objects in the cluster. Nothing is removed
here before the state was saved in the garden, and read back; etcd goes last.
"""

from agent.gardenlet.flow.graph import Graph
from agent.gardenlet.shoot.main.flows.components import tasks_of, unit_of
from agent.gardenlet.shoot.main.flows.woken import woken
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.tasks import destruction, etcd, machines, migration
from components import kube_apiserver, kube_controller_manager, machine_controllers
from components.resource_manager import shoot as resource_manager

_TASKS = tasks_of(
    *woken(
        *("namespace", "secrets", "service", "address", "etcd", "etcd-ready", "api-server", "api-server-ready"),
        *("resource-manager", "resource-manager-ready"),
    ),
    unit_of(machine_controllers.AUTOSCALER).gone(["resource-manager-ready"]),
    unit_of(machine_controllers.MANAGER).gone(["autoscaler-gone"]),
    migration.MACHINES,
    migration.EXTENSIONS,
    migration.STATE,
    # --- objects in the cluster, which stay there
    migration.KEPT_OBJECTS,
    machines.RELEASE,
    migration.OBJECTS_GO,
    # --- the control plane
    migration.EXTENSIONS_BEFORE,
    unit_of(kube_apiserver.COMPONENT).gone(["extensions-before"], verb="Deleting"),
    unit_of(kube_controller_manager.COMPONENT).gone(["api-server-gone"]),
    unit_of(resource_manager.COMPONENT).gone(["api-server-gone"]),
    migration.EXTENSIONS_AFTER,
    migration.NAMES,
    # --- its data
    migration.SNAPSHOT,
    migration.BACKUP_ENTRY,
    etcd.UNIT.gone(
        ["backup-entry-moved", "controller-manager-gone", "resource-manager-gone", "extensions-after", "names"]
    ),
    destruction.namespace_goes("namespace-goes", ["etcd-gone", "machines-released"]),
    migration.CLUSTER,
)

MIGRATE: Graph[ShootOperation] = Graph("Shoot cluster preparation for migration", [*_TASKS])
