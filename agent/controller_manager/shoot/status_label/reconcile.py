"""One pass over a Shoot: its labels, in one patch."""

from dataclasses import dataclass

from agent.controller_manager.shoot.status_label.rules import needed_labels
from gardener.garden.resources import SHOOTS
from kube.cache import Store
from kube.client import Client
from kube.controller import Done, Result
from kube.errors import NotFound
from kube.objects import Key, Object, metadata


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
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
