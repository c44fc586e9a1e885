"""One reconciliation of a VerticalPodAutoscaler: sets the requirements of its annotations for the current time."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import structlog

from agent.gardenlet.seed.vpa_eviction_requirements.autoscaler import Autoscaler
from agent.gardenlet.seed.vpa_eviction_requirements.rules.requirements import RestrictionError, required
from gardener.api.kinds import VERTICAL_POD_AUTOSCALERS
from kube.objects import Key, Object
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, RequeueAfter, Result

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    """Reconciler of VerticalPodAutoscalers.

    Args:
        autoscalers: None as long as the API server does not serve the kind.
    """

    client: Client
    clock: Callable[[], datetime]
    autoscalers: Store[Autoscaler] | None = None

    async def reconcile(self, key: Key) -> Result:
        autoscaler = self.autoscalers.get(key) if self.autoscalers is not None else None
        if autoscaler is None or not autoscaler.is_managed or autoscaler.is_deleting:
            return Done()
        now = self.clock()
        try:
            wanted = required(autoscaler.restriction, now=now)
        except RestrictionError as error:
            log.warning("Left a VerticalPodAutoscaler unchanged", error=str(error))
            return Done()
        if list(autoscaler.requirements) != wanted.requirements:
            await self._write(key, autoscaler, wanted.requirements)
        return Done() if wanted.until is None else RequeueAfter((wanted.until - now).total_seconds())

    async def _write(self, key: Key, autoscaler: Autoscaler, requirements: list[Object]) -> None:
        body = {
            "metadata": {"resourceVersion": autoscaler.version},
            "spec": {"updatePolicy": {"evictionRequirements": requirements or None}},
        }
        if (written := await self.client.patch_if_exists(VERTICAL_POD_AUTOSCALERS, key, body)) is None:
            return
        log.info("Changed the eviction requirements", may_get_less=not requirements)
        if self.autoscalers is not None:
            self.autoscalers.observe(written)
