"""kill -9 while a gardenlet makes, changes, hibernates, wakes, rotates or deletes a Shoot: the next process ends it.

Each Shoot goes through its whole life, and at each step the gardenlet dies at one write, before or after it. After each
step, seed and garden are as in the life of a Shoot whose gardenlet never died, with the very keys of before, or those of a rotation; in the end
nothing is left. Deaths are sampled; with CRASH_SWEEP=full there is one at each write, both ways.

See `kit.gardenlet_shoots` for what is real and what is played, and `kit.crash.shoot_lives` for deaths.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count, cycle
from pathlib import Path
from typing import Any

import pytest

from agent.gardenlet import component_objects, shoot_clusters
from agent.gardenlet.secrets_manager.rules import configs
from agent.gardenlet.shoot.main.tasks import cleanup
from devcluster.cluster import Cluster
from devcluster.pytest_plugin import RunClusters
from gardener.api.druid import ETCDS
from gardener.api.extensions import CLUSTERS, DNS_RECORDS, EXTENSIONS
from gardener.garden.shoots import last_operation
from kit.crash.shoot_lives import Play, Step
from kit.crash.sweep import FULL, Moment
from kit.garden import Garden
from kit.gardenlet_shoots import HELD, SHAPE, HoldUp, ShootsPlace, leads_to, played_provider, user_of
from kit.granted_rights import Right
from kube.objects import Object
from kube.paths import at
from kube.resources import SECRETS, SERVICE_ACCOUNTS, SERVICES
from kube.x509 import make_rsa_key

pytestmark = pytest.mark.timeout(5400 if FULL else 600)

_SAMPLED = 2
"""Lives in the normal run."""
_MOST_WRITES = {Step.DELETE: 30}
"""More than undisturbed: of a deletion that begins again, and wakes what is to be removed."""
_MOST_WRITES_OF_OTHERS = 16

_WAITS = {
    "etcd-main": "etcd-ready",
    "kube-apiserver": "api-server-ready",
    "gardener-resource-manager": "resource-manager-ready",
    "kube-controller-manager": "controller-manager-ready",
}
"""Tasks that wait for pods."""


@dataclass(slots=True)
class Stage:
    place: ShootsPlace
    shoots: Cluster
    """The API server of all of them."""
    writes: dict[Step, list[Right]] = field(default_factory=dict)
    states: dict[Step, Object] = field(default_factory=dict)
    """Of a life without deaths."""
    numbers: Iterator[int] = field(default_factory=count)

    def has_held(self, name: str) -> None:
        """Something in a Shoot that has to go before it does, and that somebody holds for a moment."""
        spec = {"ports": [{"port": 80}]}
        self.shoots.api.create(
            SERVICES.path(namespace="default"), {"metadata": {"name": name, "finalizers": [HELD]}, "spec": spec}
        )

    def has_what_is_written_anew(self) -> None:
        """While credentials are rotated: a Secret, and a ServiceAccount that lists one."""
        of_default = SECRETS.path(namespace="default")
        self.shoots.api.create(of_default, {"metadata": {"name": "encrypted"}, "data": {"a": "Yg=="}})
        account = {"metadata": {"name": "robot"}, "secrets": [{"name": "encrypted"}]}
        self.shoots.api.create(SERVICE_ACCOUNTS.path(namespace="default"), account)

    def play(self) -> Play:
        return Play(self.place, f"play-{next(self.numbers):04}")

    async def undisturbed(self) -> None:
        if Step.DELETE in self.states:
            return
        await asyncio.to_thread(self.has_what_is_written_anew)
        play = self.play()
        for step in Step:
            await asyncio.to_thread(play.ask, step)
            self.writes[step] = await play.lived()
            if step is not Step.DELETE:
                play.check_keys(step)
            if step is Step.CREATE:
                self.place.narrow(play.name)
            self.states[step] = play.state()


@pytest.fixture(scope="module")
def stage(garden: Garden, devcluster_run: RunClusters) -> Iterator[Stage]:
    with Cluster(shape=SHAPE) as seed, Cluster() as shoots:
        yield Stage(ShootsPlace(garden, seed), shoots)


@pytest.fixture
async def hold_up(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[HoldUp]:
    keys = cycle([make_rsa_key(2048) for _ in range(4)])
    monkeypatch.setattr(configs, "make_rsa_key", lambda _: next(keys))
    monkeypatch.setattr(shoot_clusters, "connection_of_kubeconfig", leads_to(stage.shoots))
    for module in (cleanup, component_objects):
        monkeypatch.setattr(module, "_LOOK_SECONDS", 0.05)
    async with played_provider(stage.place, tmp_path, token=stage.shoots.token) as hold_up, user_of(stage.shoots):
        await stage.undisturbed()
        yield hold_up


def moments(writes: int, *, lives: int) -> list[Moment | None]:
    """Of so many lives; None: it is not disturbed."""
    if FULL:
        every = [Moment(number=n, carried_out=done) for n in range(1, writes + 1) for done in (False, True)]
        return [*every, *[None] * (lives - len(every))]
    return [Moment(number=writes * (n + 1) // (lives + 1), carried_out=n % 2 == 1) for n in range(lives)]


@pytest.mark.slow
async def test_a_shoot_comes_changes_and_goes_wherever_its_gardenlet_died(stage: Stage, hold_up: HoldUp) -> None:
    lives = max(2 * len(each) for each in stage.writes.values()) if FULL else _SAMPLED
    deaths = {step: moments(len(stage.writes[step]), lives=lives) for step in Step}
    for life in range(lives):
        play = stage.play()
        if life % 2:
            await asyncio.to_thread(stage.has_held, play.name)
        for step in Step:
            moment = deaths[step][life]
            if moment is None and step not in {Step.CREATE, Step.DELETE}:
                continue
            try:
                await _step(stage, play, step, moment)
            except BaseException as error:
                error.add_note(f"{step} of {play.name}, killed {moment}")
                raise


async def _step(stage: Stage, play: Play, step: Step, moment: Moment | None) -> None:
    await asyncio.to_thread(play.ask, step)
    written = await play.lived(moment)
    most = len(stage.writes[step]) + _MOST_WRITES.get(step, _MOST_WRITES_OF_OTHERS)
    await play.check(stage.states[step], moment)
    if step is not Step.DELETE:
        play.check_keys(step)
    assert len(written) <= most, f"{step}, killed {moment}: {len(written)} writes instead of {most} at most: {written}"


async def test_extensions_see_that_it_goes_on_before_they_are_asked_anything(stage: Stage, hold_up: HoldUp) -> None:
    for step, written in stage.writes.items():
        (first, *_) = [number for number, each in enumerate(written) if each.resource == CLUSTERS.plural]
        asked = [number for number, each in enumerate(written) if _is_of_extension(each)]
        assert first < min(asked), (step, written)


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
async def test_what_was_asked_for_last_is_what_comes_out(stage: Stage, hold_up: HoldUp, part: float) -> None:
    """Though a gardenlet died in the middle of what was asked for before."""
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
