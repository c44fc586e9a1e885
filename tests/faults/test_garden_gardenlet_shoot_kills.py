"""kill -9 while a gardenlet makes, changes, hibernates, wakes, rotates or deletes a Shoot: the next process ends it.

At each step of a life the gardenlet dies at one write, before or after it. After each step, seed and garden are as in
the life of a Shoot whose gardenlet never died, with the very keys of before, or those of a rotation; in the end nothing
is left. There are lives of some sorts; deaths are sampled; with CRASH_SWEEP=full there is one at each write, both ways.

See `kit.gardenlet_shoots` for what is real and what is simulated, and `kit.crash.shoot_lives` for deaths.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from itertools import count, zip_longest
from pathlib import Path
from typing import Any

import pytest

from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api.druid import ETCDS
from gardener.api.extensions import CLUSTERS, DNS_RECORDS, EXTENSIONS
from gardener.api.kinds import GATEWAYS
from gardener.garden.shoots import last_operation
from kit.crash.shoot_lives import Play, Step
from kit.crash.sweep import FULL, Moment
from kit.garden import Garden
from kit.gardenlet_seeds import SENT_AGAIN
from kit.gardenlet_shoots import HELD, SHAPE, HoldUp, ShootsPlace, hurry, played_provider, user_of
from kit.granted_rights import Right
from kube.errors import AlreadyExists
from kube.objects import Object
from kube.paths import at
from kube.resources import SECRETS, SERVICE_ACCOUNTS, SERVICES

pytestmark = pytest.mark.timeout(5400 if FULL else 600)

_MOST_WRITES = 30
"""More than undisturbed: each further attempt writes the status; a deletion wakes what it removes."""

_WAITS = {
    "etcd-main": "etcd-ready",
    "kube-apiserver": "api-server-ready",
    "gardener-resource-manager": "resource-manager-ready",
    "kube-controller-manager": "controller-manager-ready",
}
"""Tasks that wait for pods."""


class Sort(Enum):
    """Of lives, by their steps."""

    WHOLE = Step.CREATE, Step.CHANGE, Step.SLEEP, Step.WAKE, Step.DELETE
    ROTATED = Step.CREATE, Step.ROTATE, Step.COMPLETE, Step.DELETE
    AT_GATEWAY = Step.CREATE, Step.SLEEP, Step.WAKE, Step.DELETE
    GIVEN_UP = Step.CREATE, Step.GIVE_UP


_DEATHS = {
    Sort.WHOLE: {*Sort.WHOLE.value},
    Sort.ROTATED: {Step.ROTATE, Step.COMPLETE},
    Sort.AT_GATEWAY: {*Sort.AT_GATEWAY.value},
    Sort.GIVEN_UP: {Step.GIVE_UP},
}
"""In which steps gardenlets die."""
_SAMPLED = {Sort.WHOLE: 2, Sort.ROTATED: 1, Sort.AT_GATEWAY: 1, Sort.GIVEN_UP: 1}
"""Lives in the normal run."""
_PARTS = {Sort.WHOLE: 6, Sort.ROTATED: 4, Sort.AT_GATEWAY: 1, Sort.GIVEN_UP: 1}
"""Of all lives, in a full run, in which deaths come after writes, or before."""


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """A step of a life without deaths: what was written, and what there was then."""

    writes: Sequence[Right]
    state: Object

    @property
    def at_gateway(self) -> list[int]:
        """Numbers of the writes by which the gateway learns of a name, or forgets it, and of those beside them."""
        own = [number for number, each in enumerate(self.writes, 1) if each.group == GATEWAYS.group]
        return sorted({beside for each in own for beside in (each - 1, each, each + 1) if beside})


@dataclass(slots=True)
class Stage:
    place: ShootsPlace
    at_gateway: ShootsPlace
    """The same seed; Shoots are reached through its gateway."""
    shoots: Cluster
    """The API server of all of them."""
    calm: dict[Sort, dict[Step, Undisturbed]] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)

    @property
    def writes(self) -> dict[Step, Sequence[Right]]:
        return {step: each.writes for step, each in self.calm[Sort.WHOLE].items()}

    @property
    def states(self) -> dict[Step, Object]:
        return {step: each.state for step, each in self.calm[Sort.WHOLE].items()}

    def has_held(self, name: str) -> None:
        """Something in a Shoot that has to go before it does, and that a user holds for a moment."""
        spec = {"ports": [{"port": 80}]}
        self.shoots.api.create(
            SERVICES.path(namespace="default"), {"metadata": {"name": name, "finalizers": [HELD]}, "spec": spec}
        )

    def has_what_is_written_anew(self) -> None:
        """While credentials are rotated: a Secret, and a ServiceAccount that lists one."""
        of_default = SECRETS.path(namespace="default")
        with suppress(AlreadyExists):
            self.shoots.api.create(of_default, {"metadata": {"name": "encrypted"}, "data": {"a": "Yg=="}})
            account = {"metadata": {"name": "robot"}, "secrets": [{"name": "encrypted"}]}
            self.shoots.api.create(SERVICE_ACCOUNTS.path(namespace="default"), account)

    def play(self, sort: Sort = Sort.WHOLE) -> Play:
        place = self.at_gateway if sort is Sort.AT_GATEWAY else self.place
        return Play(place, f"play-{next(self.numbers):04}")

    async def undisturbed(self, sort: Sort) -> dict[Step, Undisturbed]:
        if sort in self.calm:
            return self.calm[sort]
        await asyncio.to_thread(self.has_what_is_written_anew)
        play, found = self.play(sort), dict[Step, Undisturbed]()
        for step in sort.value:
            await asyncio.to_thread(play.ask, step)
            writes = await play.lived()
            if not step.is_end:
                play.check_keys(step)
            if step is Step.CREATE:
                play.place.narrow(play.name)
            found[step] = Undisturbed(writes, play.state())
        self.calm[sort] = found
        return found


@pytest.fixture(scope="module")
def stage(garden: Garden, devcluster_run: RunClusters) -> Iterator[Stage]:
    with Cluster(shape=SHAPE) as seed, Cluster() as shoots:
        yield Stage(ShootsPlace(garden, seed), ShootsPlace(garden, seed, is_local=False), shoots)


@pytest.fixture
async def hold_up(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HoldUp]:
    hurry(monkeypatch, stage.shoots)
    places = stage.place, stage.at_gateway
    async with played_provider(places, tmp_path, token=stage.shoots.token) as hold_up, user_of(stage.shoots):
        await stage.undisturbed(Sort.WHOLE)
        yield hold_up


Deaths = dict[Step, Moment | None]
"""Of the gardenlets of one life; None: in this step it does not die."""


def planned(sort: Sort, calm: Mapping[Step, Undisturbed], *, carried_out: bool) -> list[Deaths]:
    """Lives in which a gardenlet dies at each write, or those of a normal run. Args: carried_out: after it, or before."""
    every = {step: _moments(sort, step, each, carried_out=carried_out) for step, each in calm.items()}
    if FULL:
        return [_as_far_as_it_dies(dict(zip(every, each, strict=True))) for each in zip_longest(*every.values())]
    lives = _SAMPLED[sort]
    return [{step: _sampled(each, number, lives) for step, each in every.items()} for number in range(lives)]


def _moments(sort: Sort, step: Step, calm: Undisturbed, *, carried_out: bool) -> list[Moment]:
    numbers = calm.at_gateway if sort is Sort.AT_GATEWAY else range(1, len(calm.writes) + 1)
    return [Moment(number=each, carried_out=carried_out) for each in numbers] if step in _DEATHS[sort] else []


def _sampled(moments: Sequence[Moment], number: int, lives: int) -> Moment | None:
    if not moments:
        return None
    return replace(moments[len(moments) * (number + 1) // (lives + 1)], carried_out=number % 2 == 1)


def _as_far_as_it_dies(deaths: Deaths) -> Deaths:
    """And the end, since a life that is not disturbed any more shows nothing."""
    first, *others, last = deaths
    while others and deaths[others[-1]] is None:
        others.pop()
    return {step: deaths[step] for step in (first, *others, last)}


_RUNS = [
    pytest.param(sort, carried_out, part, id=f"{sort.name}-{'after' if carried_out else 'before'}-{part}")
    for sort in Sort
    for carried_out in ((True, False) if FULL else (True,))
    for part in range(_PARTS[sort] if FULL else 1)
]


@pytest.mark.slow
@pytest.mark.parametrize(("sort", "carried_out", "part"), _RUNS)
async def test_a_shoot_comes_changes_and_goes_wherever_its_gardenlet_died(
    stage: Stage, hold_up: HoldUp, sort: Sort, carried_out: bool, part: int
) -> None:
    calm = await stage.undisturbed(sort)
    lives = planned(sort, calm, carried_out=carried_out)[part :: _PARTS[sort] if FULL else 1]
    died = 0
    for number, deaths in enumerate(lives):
        play = stage.play(sort)
        if number % 2 and sort is not Sort.GIVEN_UP:
            await asyncio.to_thread(stage.has_held, play.name)
        for step, moment in deaths.items():
            try:
                await _step(calm[step], play, step, moment)
            except BaseException as error:
                error.add_note(f"{step} of {play.name}, killed {moment}")
                raise
        died += play.deaths
    print(f"{sort.name}: {len(lives)} lives, in which {died} gardenlets died")


async def _step(calm: Undisturbed, play: Play, step: Step, moment: Moment | None) -> None:
    await asyncio.to_thread(play.ask, step)
    written = await play.lived(moment)
    changing, most = _changing(written), len(_changing(calm.writes)) + _MOST_WRITES
    await play.check(calm.state, moment)
    if not step.is_end:
        play.check_keys(step)
    assert len(changing) <= most, (
        f"{step}, killed {moment}: {len(changing)} writes instead of {most} at most: {changing}"
    )


def _changing(writes: Sequence[Right]) -> list[Right]:
    return [each for each in writes if (each.verb, each.resource) not in SENT_AGAIN]


async def test_extensions_see_that_it_goes_on_before_they_are_queried_anything(stage: Stage, hold_up: HoldUp) -> None:
    for step, written in stage.writes.items():
        (first, *_) = [number for number, each in enumerate(written) if each.resource == CLUSTERS.plural]
        requested = [number for number, each in enumerate(written) if _is_of_extension(each)]
        assert first < min(requested), (step, written)


async def test_what_is_there_is_not_created_to_find_out(stage: Stage, hold_up: HoldUp) -> None:
    assert [each for each in stage.writes[Step.CHANGE] if each.verb == "create"] == []


def _is_of_extension(written: Right) -> bool:
    return written.group in {EXTENSIONS.group, ETCDS.group} and written.resource != CLUSTERS.plural


async def test_a_gardenlet_that_dies_while_it_waits_leaves_what_the_next_one_goes_on_with(
    stage: Stage, hold_up: HoldUp
) -> None:
    play = stage.play()
    await asyncio.to_thread(play.ask, Step.CREATE)
    for number, task in enumerate(_WAITS.values()):
        hold_up.hold(*[*_WAITS][number:])
        await play.life(until=partial(play.waits_in, task=task))
        operation = last_operation(stage.place.get(play.name))
        assert (operation["type"], operation["state"], operation["progress"]) == ("Create", "Processing", 0), task
    hold_up.release()
    await play.lived()
    await play.check(stage.states[Step.CREATE], "held up")
    play.check_keys(Step.CREATE)
    await asyncio.to_thread(play.ask, Step.DELETE)
    await play.lived()


@pytest.mark.slow
@pytest.mark.parametrize("part", [0.2, 0.4, 0.6, 0.8] if FULL else [0.6])
async def test_what_was_requested_last_is_what_comes_out(stage: Stage, hold_up: HoldUp, part: float) -> None:
    """Though a gardenlet died in the middle of what was requested before."""
    play = stage.play()

    async def begin(step: Step, *, carried_out: bool = True) -> None:
        await asyncio.to_thread(play.ask, step)
        number = 2 + round((len(stage.writes[step]) - 6) * part)
        await play.life(Moment(number=number, carried_out=carried_out))

    async def end(*steps: Step) -> Any:
        for each in steps:
            await asyncio.to_thread(play.ask, each)
        await play.lived()
        return play.state()["seed"]

    async def wake(what: str, *steps: Step) -> None:
        await end(*steps)
        await play.check(stage.states[Step.WAKE], what)
        play.check_keys(Step.WAKE)

    await begin(Step.CREATE)
    assert _sleeps(await end(Step.CHANGE, Step.SLEEP))
    await begin(Step.WAKE)
    await wake("created asleep")
    await begin(Step.SLEEP)
    await wake("woken while going to sleep", Step.WAKE)
    await end(Step.SLEEP)
    await begin(Step.WAKE)
    assert _sleeps(await end(Step.SLEEP))
    await wake("sent to sleep while waking", Step.WAKE)
    await begin(Step.SLEEP)
    await begin(Step.DELETE, carried_out=False)
    await end(Step.CHANGE)
    await play.check(stage.states[Step.DELETE], "deleted while going to sleep")


def _sleeps(objects: Object) -> bool:
    """Of the seed: nothing runs, and no name leads to it."""
    replicas = {at(each, "spec", "replicas") for (each, *_) in objects.values()}
    return replicas == {None, 0} and not any(name.startswith(DNS_RECORDS.kind) for name in objects)
