"""Completion of a rotation of certificate authorities: see `tasks.rotation`."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from agent.gardenlet.flow.graph import ONCE, Task
from agent.gardenlet.flow.unit import any_of
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.results import CLUSTER
from agent.gardenlet.shoot.main.skipping import asleep
from agent.gardenlet.shoot.main.tasks import rotation
from components import kube_apiserver
from components.registry import COMPONENTS
from components.results import ADDRESS

LAST = "others-current"
"""ID of the last completion task that applies to all Shoots."""
_TASKS: tuple[Task[ShootOperation], ...] = (
    Task(
        "servers-by-current",
        "Waiting until all servers have certificates of the new certificate authorities",
        rotation.see_servers,
        retry=ONCE,
    ),
    Task(
        "current-bundles",
        "Removing old certificate authorities from bundles",
        rotation.trust_current,
        provides=CLUSTER,
        reads=[CLUSTER],
    ),
    Task("etcd-current", "Removing old certificate authorities from main and events etcd", rotation.etcds),
    Task(
        "api-server-current",
        "Removing old certificate authorities from Kubernetes API server",
        rotation.api_server,
        reads=kube_apiserver.COMPONENT.results,
    ),
    Task(
        LAST,
        "Removing old certificate authorities from other components",
        rotation.others,
        reads=[ADDRESS],
    ),
)
WITH_BUNDLES = frozenset(
    (
        *(each.id for each in COMPONENTS if each.has_bundles),
        *("extensions-before", "extensions-before-ready", "extensions-after", "extensions-after-ready"),
        *("control-plane", "control-plane-ready", "systems", "systems-ready"),
        *("node-agents", "worker"),
        *("machine-deployments", "extensions-after-worker", "extensions-after-worker-ready"),
        *("worker-ready", "nodes-configured"),
    )
)
"""IDs of tasks that deploy bundles or their names, repeated with smaller bundles before old Secrets are deleted."""


def with_completion(tasks: Sequence[Task[ShootOperation]], *, after: Collection[str]) -> list[Task[ShootOperation]]:
    """Return the tasks of a flow, followed by those that complete a rotation, and by all tasks with bundles again.

    A hibernated Shoot gets the new bundles when it wakes up.

    Args: after: tasks that must precede the completion, in addition to those with bundles.
    """
    with_bundles = [each for each in tasks if each.id in WITH_BUNDLES]
    return [*tasks, *_completion([*after, *(each.id for each in with_bundles)]), *map(_again, with_bundles)]


def _completion(after: Collection[str]) -> Iterator[Task[ShootOperation]]:
    for each in _TASKS:
        yield replace(each, after=after, unless=rotation.no_completion)
        after = [each.id]


def _again(task: Task[ShootOperation]) -> Task[ShootOperation]:
    return replace(
        task,
        id=f"{task.id}-current",
        name=f"{task.name}, without old certificate authorities",
        after=[LAST, *(f"{each}-current" for each in task.after if each in WITH_BUNDLES)],
        unless=any_of(rotation.no_completion, asleep, task.unless),
    )
