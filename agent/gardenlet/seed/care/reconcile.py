"""One check of the seed's components: the condition of the Seed reports the first problem."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from agent.gardenlet.seed.care.rules.condition import found_in, wanted
from agent.gardenlet.seed.care.stores import Components, PoliciesElsewhere
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.conditions import SEED_SYSTEM_COMPONENTS_HEALTHY, not_checked
from gardener.network_policies import GARDEN_NAMESPACE
from kube.conditions import Condition, conditions_of, with_conditions
from kube.errors import KindNotServed
from kube.objects import Key, Object, condition
from kube.runtime.cache import Store
from kube.runtime.controller import Done, RequeueAfter, Result
from kube.runtime.status import StatusWriter

_SOON = 0.5
"""Seconds between checks for complete lists."""


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    """Reconciler of the condition.

    Args:
        threshold: seconds for which a problem is `Progressing` first; None if it is `False` at once.
        period: seconds between two checks.
    """

    seeds: Store[Object]
    statuses: StatusWriter
    components: Components
    policies: PoliciesElsewhere | None
    threshold: float | None
    period: float
    clock: Callable[[], datetime]

    async def reconcile(self, key: Key) -> Result:
        seed = self.seeds.get(key)
        if seed is None:
            return Done()  # its creation triggers a pass
        if not self.components.are_listed:
            return RequeueAfter(_SOON)
        if (found := await self._check(seed)) is not None:
            await self._write(seed, found)
        return RequeueAfter(self.period)

    async def _check(self, seed: Object) -> Condition | None:
        """Check the components; None if the condition stays unchanged."""
        if not self.components.are_served:
            problem = KindNotServed(MANAGED_RESOURCES.api_version, MANAGED_RESOURCES.kind)
            message = f"failed listing ManagedResources in namespace {GARDEN_NAMESPACE}: {problem}"
            return not_checked(SEED_SYSTEM_COMPONENTS_HEALTHY, message)
        now = self.clock()
        found = found_in(
            self.components.all(),
            missing_policies=await self.policies.missing() if self.policies is not None else {},
            is_answered=self.components.writes.is_answered,
            now=now,
        )
        return wanted(seed, found, threshold=self.threshold, now=now)

    async def _write(self, seed: Object, found: Condition) -> None:
        """Write the condition, unless another writer has changed it since this check."""
        before, moment = condition(seed, found.type), self.clock()

        def compute(status: Object) -> Object:
            having = conditions_of({"status": status})
            updated = with_conditions(having, [found], now=moment)
            if condition({"status": status}, found.type) != before or updated == having:
                return status
            return {**status, "conditions": updated}

        await self.statuses.update_if_exists(seed, compute)
