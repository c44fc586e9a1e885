"""Tasks of the reconciliation flow that wake the control plane of a Shoot before it is deleted or moved.

They are skipped if there is no cluster to clean up.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from agent.gardenlet.flow.graph import Task
from agent.gardenlet.flow.unit import Leaves, any_of
from agent.gardenlet.shoot.main.flows.reconcile import RECONCILE
from agent.gardenlet.shoot.main.operation import ShootOperation
from agent.gardenlet.shoot.main.skipping import no_clean_up

_NOTHING: Mapping[str, Any] = {}


def woken(
    *ids: str,
    after: Mapping[str, Collection[str]] = _NOTHING,
    names: Mapping[str, str] = _NOTHING,
    unless: Mapping[str, Leaves[ShootOperation]] = _NOTHING,
) -> list[Task[ShootOperation]]:
    """Return tasks of the reconciliation flow, in the given order.

    Args:
        ids: of the tasks.
        after: IDs of further tasks before them.
        names: display names that differ from those of the reconciliation.
        unless: further conditions that skip a task.
    """
    found = []
    for each in ids:
        task = RECONCILE.tasks[each]
        leaves = any_of(no_clean_up, task.unless, unless.get(each))
        before = [*(one for one in task.after if one in ids), *after.get(each, ())]
        found.append(replace(task, name=names.get(each, task.name), after=before, unless=leaves))
    return found
