"""The flow of a force deletion: removes a Shoot from its seed when a normal deletion can't succeed.

Its cluster is neither woken nor cleaned; the user has to remove resources that extensions can't delete.
"""

from agent.gardenlet.flow.graph import ONCE, USUAL, Graph, Task
from agent.gardenlet.shoot.main.tasks import destruction, force
from agent.gardenlet.shoot.main.tasks.force import Removal

FORCE: Graph[Removal] = Graph(
    "Shoot cluster force deletion",
    [
        *force.EXTENSIONS.tasks(),
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
        *destruction.namespace_goes("namespace", ["others"], USUAL).tasks(),
        destruction.state_goes(["namespace-gone"], USUAL),
    ],
)
