"""How a rotation of certificate authorities is completed: see `tasks.rotation`."""

from collections.abc import Collection, Iterator

from agent.gardenlet.flow.graph import ONCE, Retry, Task
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.tasks import rotation

LAST = "others-current"
"""ID of the last task."""
_TASKS = (
    ("servers-by-current", "Waiting until all servers have certificates of the new certificate authorities"),
    ("current-bundles", "Removing old certificate authorities from bundles"),
    ("etcd-current", "Removing old certificate authorities from main and events etcd"),
    ("api-server-current", "Removing old certificate authorities from Kubernetes API server"),
    (LAST, "Removing old certificate authorities from other components"),
)
_RUN = (rotation.see_servers, rotation.trust_current, rotation.etcds, rotation.api_server, rotation.others)


def completion(*, after: Collection[str]) -> Iterator[Task[ShootOperation]]:
    """One after the other. Args: after: all that uses certificates and bundles before."""
    for (its_id, name), run in zip(_TASKS, _RUN, strict=True):
        retry = ONCE if run is rotation.see_servers else Retry()
        yield Task(its_id, name, run, after=after, unless=rotation.no_completion, retry=retry)
        after = [its_id]
