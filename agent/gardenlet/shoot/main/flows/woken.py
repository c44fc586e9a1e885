"""Tasks of the flow that makes a Shoot's cluster, which the flows of one that leaves have as well: they wake it.

They are left out where there is no cluster to clean up.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from agent.gardenlet.flow.graph import Task
from agent.gardenlet.shoot.main.flows.reconcile import RECONCILE
from agent.gardenlet.shoot.main.flows.when import any_of, no_clean_up
from agent.gardenlet.shoot.main.operation import ShootOperation

_NOTHING: Mapping[str, str] = {}


def woken(
    *ids: str, after: Mapping[str, Collection[str]] = _NOTHING, names: Mapping[str, str] = _NOTHING
) -> list[Task[ShootOperation]]:
    """In the same order as there.

    Args:
        ids: of the tasks.
        after: IDs of further tasks before them.
        names: what users read, where it is not the same.
    """
    found = []
    for each in ids:
        task = RECONCILE.tasks[each]
        unless = any_of(no_clean_up, *([task.unless] if task.unless else []))
        before = [*(one for one in task.after if one in ids), *after.get(each, ())]
        found.append(replace(task, name=names.get(each, task.name), after=before, unless=unless))
    return found
