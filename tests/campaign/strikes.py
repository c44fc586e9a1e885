"""Carries out a plan's strikes: one lane after its own clock, each strike healed before the next of its lane."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from campaign.faults import inject
from campaign.oracles import Problem
from campaign.plan import LANES, Plan, Step, Strike
from campaign.stage import Stage

_HEAL_SECONDS = 150.0


@dataclass(slots=True)
class Injected:
    """A strike that was carried out; times are seconds since the begin."""

    strike: Strike
    begin: float
    healed: float = 0.0
    note: str = ""


@dataclass(slots=True)
class Acts:
    """Users and faults at work."""

    stage: Stage
    plan: Plan
    injected: list[Injected] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    _began: float = 0.0

    async def play(self) -> None:
        """Returns when all was done and healed."""
        self._began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._users(self.plan.steps))
            for lane in LANES:
                strikes = [strike for strike in self.plan.strikes if strike.lane == lane]
                group.create_task(self._lane(strikes))

    @property
    def now(self) -> float:
        return time.monotonic() - self._began

    async def _users(self, steps: Sequence[Step]) -> None:
        for step in steps:
            await asyncio.sleep(step.at - self.now)
            self.stage.world.edit(step.edits)

    async def _lane(self, strikes: Sequence[Strike]) -> None:
        for strike in strikes:
            # Healing may have taken longer than planned. What is late comes at once, but nothing after the end.
            await asyncio.sleep(strike.at - self.now)
            if self.now > self.plan.seconds:
                return
            await self._carry_out(strike)

    async def _carry_out(self, strike: Strike) -> None:
        done = Injected(strike, self.now)
        self.injected.append(done)
        note = None
        try:
            async with asyncio.timeout(strike.seconds + _HEAL_SECONDS * self.stage.patience):
                async with inject(self.stage, strike.fault, strike.settings) as note:
                    await asyncio.sleep(strike.seconds)
        except TimeoutError:
            self.problems.append(Problem("healing", f"{strike} was not healed in time"))
        except Exception as error:  # noqa: BLE001 - the others go on, and it is reported
            self.problems.append(Problem("campaign", f"{strike} could not be carried out: {error!r}"))
        done.healed = self.now
        done.note = note() if callable(note) else note or ""
