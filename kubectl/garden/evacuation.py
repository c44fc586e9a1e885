"""Evacuation of a Seed: its Shoots move to other Seeds, a few at a time.

All state is in the Shoots, so an evacuation can end at any point, and be started again: Shoots that have left are not
selected any more, and those that move already are waited for first.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial

from gardenapi.api import GardenApi
from gardener.api.garden import SEEDS, SHOOTS
from gardener.garden.scheduling import Decision, SeedInfo, Usage, decide
from gardener.garden.shoots import is_settled, obstacle_to_move, seeds_of
from gardener.keys import CORDONED
from kube.errors import KubeError
from kube.objects import Key, Object, is_deleting, key, spec, text
from kubectl import output
from kubectl.errors import UserError
from kubectl.garden import reading
from kubectl.garden.changing import Outcome, Writer, move
from kubectl.garden.waiting import operation_ended, wait_for
from kubectl.garden.why.finding import command
from kubectl.reader import Reader
from kubectl.session import Session, gathered
from kubectl.style import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Attributes:
    to: destination; empty if the Shoot does not move now.
    problem: why not.
    has_begun: whether the move is requested already.
    """

    shoot: Key
    to: str = ""
    problem: str = ""
    has_begun: bool = False


def step_of(shoot: Object, *, leaves: str, choose: Callable[[Object], Decision]) -> Step:
    """Return the next step of a Shoot. Args: leaves: the Seed. choose: its destination."""
    own, scheduled = key(shoot), text(spec(shoot).get("seedName"))
    if scheduled != leaves:
        return Step(shoot=own, to=scheduled, has_begun=True)
    if is_deleting(shoot):
        return Step(shoot=own, problem="it is being deleted")
    if is_settled(shoot) and (problem := obstacle_to_move(shoot)):
        return Step(shoot=own, problem=problem)
    decision = choose(shoot)
    return Step(shoot=own, to=decision.seed, problem=decision.message)


def warning_of_new_shoots(seed: Object) -> str:
    """Warning if the scheduler may still choose the Seed; empty if not."""
    if SeedInfo.of(seed).problem:
        return ""
    cordon = command("annotate", SEEDS, key(seed), f"{CORDONED}=true")
    return f"Seed {key(seed).name} still gets new Shoots; cordon it: {cordon}"


async def planned(reader: Reader, seed: str, *, to: Collection[str], now: datetime) -> list[Step]:
    """Steps of all Shoots of a Seed, begun moves first. Args: to: permitted destinations; empty: all.

    Raises:
        UserError: the user may not read what the choice of destinations depends on.
    """

    def is_candidate(each: Object) -> bool:
        name = key(each).name
        return name != seed and (not to or name in to) and bool(spec(each).get("backup"))

    usage = Usage()
    shoots = await reader.those(SHOOTS, lambda each: seed in seeds_of(each))
    candidates = await reading.seed_candidates(reader, usage, now, is_candidate=is_candidate)
    if candidates is None:
        raise UserError(
            f"you may not read: {', '.join(reader.unread)}", hint="evacuate as an operator of the garden, who may"
        )
    found = []
    for shoot in sorted(shoots, key=lambda each: (text(spec(each).get("seedName")) == seed, key(each))):
        profile = await reading.profile_for(reader, shoot)
        step = step_of(shoot, leaves=seed, choose=partial(decide, profile=profile, candidates=candidates))
        if step.to and not step.has_begun:
            usage.add(step.to)
        found.append(step)
    return found


class Result(StrEnum):
    MOVED = "moved"
    FAILED = "failed"
    NOT_TRIED = "not tried"
    STAYS = "can't move now"


@dataclass(slots=True, kw_only=True)
class Evacuation:
    """Attributes:
    leaves: the Seed.
    at_once: maximum number of Shoots that move at the same time.
    most_failures: number of failed moves after which no further move begins.
    seconds: time limit of a move.
    failures: failed moves, and moves that took too long.
    """

    session: Session
    garden: GardenApi
    leaves: str
    at_once: int
    most_failures: int
    seconds: float
    failures: int = 0
    ended: int = 0
    total: int = 0

    async def carry_out(self, steps: Sequence[Step]) -> list[Result]:
        self.total = len(steps)
        return await gathered(self._carry_out, steps, at_once=self.at_once)

    async def _carry_out(self, step: Step) -> Result:
        if self.failures > self.most_failures:
            return Result.NOT_TRIED
        try:
            has_moved = await self._request(step) and await self._wait(step)
        except KubeError as error:
            output.failed(f"Shoot {step.shoot}: its move can't be requested or followed: {error}")
            has_moved = False
        self.failures += not has_moved
        self.ended += 1
        output.begin(f"{self.ended} of {counted(self.total, 'Shoot')}, {self.failures} failed")
        return Result.MOVED if has_moved else Result.FAILED

    async def _request(self, step: Step) -> bool:
        if step.has_begun:
            return True
        live = await self.garden.client.find(SHOOTS, step.shoot)
        if live is not None and text(spec(live).get("seedName")) != self.leaves:
            return True  # another user has requested a move meanwhile
        outcome = await request(step, self.garden)
        return outcome in {Outcome.CHANGED, Outcome.UNCHANGED}

    async def _wait(self, step: Step) -> bool:
        return await wait_for(self.session, [step.shoot], operation_ended, seconds=self.seconds) == 0


async def request(step: Step, garden: GardenApi, *, is_dry_run: bool = False) -> Outcome:
    """Request the move of a Shoot. Args: garden: with a client of a dry run if `is_dry_run` is set."""
    writer = Writer(reader=Reader(garden.client), garden=garden, change=move(step.to), is_dry_run=is_dry_run)
    return await writer.apply(step.shoot)
