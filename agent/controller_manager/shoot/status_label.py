"""The controller `shoot-statuslabel`: keeps the labels of Shoots that follow from their status.

They report the health of a Shoot, and the Seeds that it is on or leaves. The webhooks keep the labels of Seeds when a
Shoot is written. The health needs a second write: the API server drops changes of labels from a write of the status,
those of webhooks too, and gardenlets have no right to label Shoots.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from agent.controller_manager.common.api import SHOOTS_VIEW
from agent.controller_manager.context import Context
from gardener import keys
from gardener.api.garden import SHOOTS
from gardener.garden.shoots import SUCCEEDED, last_errors, last_operation
from kube.names import label_name_problems
from kube.objects import Key, Object, labels, mappings, spec, text, uid
from kube.paths import at
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, Result
from kube.runtime.loop import ControlLoop, enqueue
from kube.runtime.predicates import now

_WORST_FIRST = ("unhealthy", "unknown", "progressing", "healthy")
_OF_CONDITION = {"True": "healthy", "Progressing": "progressing", "Unknown": "unknown", "False": "unhealthy"}


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.shoot_status_label, context.garden
    loop = ControlLoop("shoot-statuslabel", kind=SHOOTS, workers=settings.concurrent_syncs)
    shoots = loop.watch(garden.caches, SHOOTS_VIEW, enqueue(when=now(needed_labels)))
    return loop.reconciled_by(Reconciler(client=garden.client, shoots=shoots))


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    """One pass over a Shoot: its labels, in one patch."""

    client: Client
    shoots: Store[Object]

    async def reconcile(self, key: Key) -> Result:
        shoot = self.shoots.get(key)
        changes = needed_labels(shoot) if shoot is not None else {}
        if shoot is None or not changes:
            return Done()
        # Without resourceVersion: while a Shoot is created, its status changes many times a second. No other writer
        # sets these labels, and another change of the status leads to another pass.
        meta = {"uid": uid(shoot), "labels": changes}
        if (written := await self.client.patch_if_exists(SHOOTS, key, {"metadata": meta})) is not None:
            self.shoots.observe(written)
        return Done()


def status(shoot: Object) -> str:
    """Value of the label."""
    operation, errors = last_operation(shoot), last_errors(shoot)
    if not operation:
        return "healthy"
    has_succeeded = operation.get("state") == SUCCEEDED
    without_errors = "unhealthy" if errors else "healthy"
    match operation.get("type"):
        case "Create" if not has_succeeded:
            return without_errors
        case "Delete":
            return without_errors
    if operation.get("state") == "Processing":
        return _worst(without_errors, *_of_conditions(shoot))
    return _worst("healthy" if has_succeeded else "unhealthy", *_of_conditions(shoot))


def _of_conditions(shoot: Object) -> Iterator[str]:
    for condition in mappings(at(shoot, "status", "conditions")):
        yield _OF_CONDITION.get(text(condition.get("status")), "unknown")


def _worst(*statuses: str) -> str:
    return min(statuses, key=_WORST_FIRST.index)


def needed_labels(shoot: Object) -> dict[str, str | None]:
    """Changes of the labels; None removes one."""
    having = labels(shoot)
    names = {text(spec(shoot).get("seedName")), text(at(shoot, "status", "seedName"))} - {""}
    wanted = {f"{keys.SEED_LABEL_PREFIX}{name}": "true" for name in sorted(names)}
    wanted = {name: value for name, value in wanted.items() if not label_name_problems(name)}
    wanted[keys.SHOOT_STATUS] = status(shoot)
    changes: dict[str, str | None] = {n: value for n, value in wanted.items() if having.get(n) != value}
    outdated = (n for n in having if n.startswith(keys.SEED_LABEL_PREFIX) and n not in wanted)
    return changes | dict.fromkeys(outdated)
