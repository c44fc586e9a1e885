"""The controller `shoot-statuslabel`: keeps the labels of Shoots that follow from their status."""

from dataclasses import dataclass

from agent.controller_manager.common.api import SHOOTS_VIEW
from agent.controller_manager.context import Context
from agent.controller_manager.shoot.status_label.rules import needed_labels
from gardener.api.garden import SHOOTS
from kube.errors import NotFound
from kube.objects import Key, Object, metadata
from kube.runtime.cache import Change, Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, Result
from kube.runtime.loop import ControlLoop, enqueue


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.shoot_status_label, context.garden
    loop = ControlLoop("shoot-statuslabel", kind=SHOOTS, workers=settings.concurrent_syncs)
    shoots = loop.watch(garden.caches, SHOOTS_VIEW, enqueue(when=_lacks_labels))
    return loop.reconciled_by(Reconciler(client=garden.client, shoots=shoots))


def _lacks_labels(change: Change[Object]) -> bool:
    return change.new is not None and bool(needed_labels(change.new))


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
        meta = {"resourceVersion": metadata(shoot)["resourceVersion"], "labels": changes}
        try:
            written = await self.client.patch(SHOOTS, key.name, {"metadata": meta}, namespace=key.namespace)
        except NotFound:
            return Done()
        self.shoots.observe(written)
        return Done()
