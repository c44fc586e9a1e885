"""The flow of a force deletion: removes a Shoot from its seed when a normal deletion can't succeed.

Its cluster is neither woken nor cleaned; the user has to remove resources that extensions can't delete.
"""

from agent.gardenlet.flow.graph import ONCE, Graph, Task
from agent.gardenlet.shoot.main.tasks import destruction, force
from agent.gardenlet.shoot.main.tasks.force import Removal

FORCE: Graph[Removal] = Graph(
    "Shoot cluster force deletion",
    [
        Task("extensions", "Deleting extension resources", force.delete_extensions),
        Task(
            "extensions-gone",
            "Waiting until extension resources have been deleted",
            force.wait_for_extensions,
            after=["extensions"],
            retry=ONCE,
        ),
        Task("machines", "Deleting machine resources", force.delete_machines, after=["extensions-gone"]),
        Task(
            "managed-resources",
            "Deleting managed resources",
            force.delete_managed_resources,
            after=["machines"],
            retry=ONCE,
        ),
        Task("cluster", "Deleting Cluster", force.delete_cluster, after=["managed-resources"]),
        Task("etcd", "Destroying main and events etcd", force.delete_etcds, after=["cluster"], retry=ONCE),
        Task("others", "Deleting Kubernetes resources", force.delete_others, after=["etcd"], retry=ONCE),
        Task("namespace", "Deleting shoot namespace in Seed", destruction.namespace, after=["others"]),
        Task(
            "namespace-gone",
            "Waiting until shoot namespace in Seed has been deleted",
            destruction.wait_for_namespace,
            after=["namespace"],
            retry=ONCE,
        ),
        Task("state", "Deleting Shoot State", destruction.shoot_state, after=["namespace-gone"]),
    ],
)
