"""Write conditions of Seeds, and check whether they are in use.

Several controllers and the gardenlet write conditions, each its own; `status.phase` sums them up and is written along
with a change.

Only our definitions have the phase. A program that replaces a status without knowing the phase drops it; writing it
again at once would make the next patch of that program a conflict. So it is written again when the Seed has been left
alone.
"""

from collections.abc import Sequence

from agent.controller_manager.context import Context
from config.shared import ConditionThreshold
from gardener.api.garden import SHOOTS
from gardener.conditions import progressing_until, softened
from gardener.garden.seeds import summed_up
from gardener.garden.shoots import selectors_of_users
from kube.clock import seconds_until
from kube.conditions import Condition, conditions_of, with_conditions
from kube.objects import Object, condition, mapping
from kube.runtime.cache import Store
from kube.runtime.client import Client, Form, Selection
from kube.runtime.controller import Done, RequeueAfter, Result
from kube.runtime.status import StatusWriter

_SOON = 0.05
"""Seconds after a limit is reached until it is exceeded."""


class SeedConditions:
    """Conditions of Seeds; `thresholds`: time for which a bad condition counts as progressing, by type."""

    def __init__(
        self, context: Context, seeds: Store[Object], *, thresholds: Sequence[ConditionThreshold] = ()
    ) -> None:
        self._writer = StatusWriter(context.garden.client, seeds)
        self._has_phase = context.api.has_own_fields
        self._thresholds = {each.type: each.duration for each in thresholds}
        self._clock = context.clock

    async def write(self, seed: Object, found: Condition) -> Object | None:
        """Write the condition and return the Seed; None if it is gone.

        A condition that another writer has changed since the Seed was read stays.
        """
        now, before = self._clock(), condition(seed, found.type)

        def compute(status: Object) -> Object:
            having = conditions_of({"status": status})
            updated = with_conditions(having, [found], now=now)
            if condition({"status": status}, found.type) != before or updated == having:
                return status
            return self._summed_up({**status, "conditions": updated})

        return await self._writer.update_if_exists(seed, compute)

    def is_summed_up(self, seed: Object) -> bool:
        """Whether the phase follows from the conditions; other writers may not update it."""
        status = mapping(seed.get("status"))
        return self._summed_up(status) == status

    async def sum_up(self, seed: Object) -> None:
        """Correct the phase."""
        await self._writer.update_if_exists(seed, self._summed_up)

    def _summed_up(self, status: Object) -> Object:
        return summed_up(status, has_phase=self._has_phase)

    async def soften_and_write(self, seed: Object, found: Condition) -> Result:
        """Write the condition; a bad one is progressing until its threshold, then the Seed is checked again."""
        threshold, now = self._thresholds.get(found.type, 0.0), self._clock()
        if found.status != "True":
            status = softened(found.status, condition(seed, found.type), threshold=threshold, now=now)
            found = Condition(found.type, status, found.reason, found.message)
        written = await self.write(seed, found)
        until = progressing_until(condition(written or {}, found.type) or {}, threshold=threshold)
        return Done() if until is None else RequeueAfter(seconds_until(until, self._clock(), longest=threshold) + _SOON)


async def is_used(client: Client, seed: str) -> bool:
    """Whether a Shoot is on the Seed, or has not left it yet."""
    for selector in selectors_of_users(seed):
        page = await client.list_page(SHOOTS, Selection(field_selector=selector), form=Form.METADATA, limit=1)
        if page.get("items"):
            return True
    return False
