"""The flow by which a Shoot leaves its seed, with its keys, its data and the state of its extensions.

The control plane is woken first, so that its resource manager releases the objects in the cluster. Nothing is removed
here before the state was saved in the garden, and read back; etcd goes last.
"""

from agent.gardenlet.flow.graph import ONCE, Graph, Retry, Task
from agent.gardenlet.shoot.main.flows.components import destroys
from agent.gardenlet.shoot.main.flows.when import Run
from agent.gardenlet.shoot.main.flows.woken import woken
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.tasks import destruction, etcd, migration, snapshots
from components import kube_apiserver, kube_controller_manager
from components.resource_manager import shoot as resource_manager


def _moves(its_id: str, name: str, run: Run, after: list[str], retry: Retry = ONCE) -> Task[ShootOperation]:
    return Task(its_id, name, run, after=after, retry=retry)


_SHORT = Retry()

MIGRATE: Graph[ShootOperation] = Graph(
    "Shoot cluster preparation for migration",
    [
        *woken(
            *("namespace", "secrets", "service", "address", "etcd", "etcd-ready", "api-server", "api-server-ready"),
            *("resource-manager", "resource-manager-ready"),
        ),
        # --- state
        _moves(
            "extensions-migrated",
            "Migrating extension resources, and waiting until they have been migrated",
            migration.migrate_extensions,
            ["resource-manager-ready"],
        ),
        _moves(
            "state",
            "Persisting ShootState in garden cluster",
            migration.persist,
            ["extensions-migrated"],
            _SHORT,
        ),
        # --- objects in the cluster, which stay there
        _moves(
            "keep-objects",
            "Configuring Managed Resources objects to be kept in the Shoot",
            migration.keep_objects,
            ["state"],
            _SHORT,
        ),
        _moves(
            "managed-resources",
            "Deleting all Managed Resources from the Shoot's namespace",
            migration.delete_managed_resources,
            ["keep-objects"],
            _SHORT,
        ),
        _moves(
            "managed-resources-gone",
            "Waiting until ManagedResources are deleted",
            destruction.wait_for_all_of_shoot,
            ["managed-resources"],
        ),
        # --- the control plane
        _moves(
            "extensions-before",
            "Deleting extension resources before kube-apiserver",
            migration.delete_extensions_before,
            ["managed-resources-gone"],
        ),
        destroys(kube_apiserver.COMPONENT, ["extensions-before"], verb="Deleting"),
        destroys(kube_controller_manager.COMPONENT, ["api-server-gone"]),
        destroys(resource_manager.COMPONENT, ["api-server-gone"]),
        _moves(
            "extensions-after",
            "Deleting extension resources after kube-apiserver",
            migration.delete_extensions_after,
            ["api-server-gone"],
        ),
        _moves("names", "Migrating domain DNS records", migration.move_names, ["api-server-gone"]),
        # --- its data
        _moves("snapshot", "Creating ETCD Snapshot", snapshots.last, ["api-server-gone"]),
        _moves(
            "backup-entry",
            "Migrating BackupEntry to new seed",
            migration.move_backup_entry,
            ["snapshot"],
            _SHORT,
        ),
        _moves(
            "backup-entry-moved",
            "Waiting until BackupEntry has been migrated to new seed",
            migration.wait_for_backup_entry,
            ["backup-entry"],
        ),
        _moves(
            "etcd-gone",
            "Destroying main and events etcd",
            etcd.destroy,
            [
                *("backup-entry-moved", "controller-manager-gone", "resource-manager-gone"),
                *("extensions-after", "names"),
            ],
        ),
        _moves("namespace-goes", "Deleting shoot namespace in Seed", destruction.namespace, ["etcd-gone"]),
        _moves(
            "namespace-gone",
            "Waiting until shoot namespace in Seed has been deleted",
            destruction.wait_for_namespace,
            ["namespace-goes"],
        ),
        _moves("cluster", "Deleting Cluster", migration.forget, ["namespace-gone"], _SHORT),
    ],
)
