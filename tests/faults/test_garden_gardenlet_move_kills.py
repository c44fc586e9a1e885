"""kill -9 while a Shoot moves between two Seeds, and Seeds that are lost: it comes with its data and its keys.

On each way a gardenlet of the source dies at one write, and one of the destination; with CRASH_SWEEP=full there is a way
for each write, before and after it, in parts. The kubeconfig of the Shoot leads to the first seed, since nothing is written there.

See `kit.gardenlet_shoots` for what is real and what is simulated, and `kit.crash.shoot_lives` for deaths.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from itertools import count, zip_longest
from pathlib import Path
from typing import Any, Literal

import pytest

from devcluster.cluster import Cluster
from devcluster.testing.faults import Rule, Silence
from devcluster.testing.proxy import FaultProxy
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api.extensions import CLUSTERS
from gardener.api.garden import BACKUP_ENTRIES, SHOOT_STATES, SHOOTS
from kit.crash.shoot_lives import Step
from kit.crash.shoot_moves import Travel, Visit, answers, gardenlet_behind_proxy
from kit.crash.sweep import FULL, Moment
from kit.eventually import soon
from kit.garden import Garden
from kit.gardenlet_shoots import SHAPE, ShootsPlace, hurry, played_provider
from kube.errors import NotFound
from kube.objects import Object, metadata, spec, uid
from kube.paths import at

pytestmark = pytest.mark.timeout(5400 if FULL else 600)

_MOST_WRITES = 16
"""More than undisturbed."""
_MANY = 0.95
"""Part of the gardenlets that are to die."""
_REFUSED = 2
"""Writes after which a gardenlet has shown what it does when it has not heard that a Shoot is another Seed's."""

_NAMES = (f"play-{number:04}" for number in count())


# What a gardenlet still writes about the Shoot of one part would count in the next one.
_SCOPE: Literal["function", "module"] = "function" if FULL else "module"


@pytest.fixture(scope=_SCOPE)
def places(garden: Garden, devcluster_run: RunClusters) -> Iterator[Sequence[ShootsPlace]]:
    """Of two Seeds."""
    with Cluster(shape=SHAPE) as one, Cluster(shape=SHAPE) as other:
        first = ShootsPlace(garden, one)
        yield first, ShootsPlace(garden, other, beside=first)


@pytest.fixture(scope=_SCOPE)
def directories(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Path]:
    """Of their providers, for all that Shoots have there: those of former tests stay."""
    return [tmp_path_factory.mktemp(name) for name in ("first", "second")]


@pytest.fixture
async def travel(
    places: Sequence[ShootsPlace], directories: Sequence[Path], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Travel]:
    """A Shoot on the first Seed, that is going to travel."""
    shoots, buckets = places[0].cluster, directories[0] / "buckets"
    hurry(monkeypatch, shoots)
    async with AsyncExitStack() as stack:
        for place, directory in zip(places, directories, strict=True):
            await stack.enter_async_context(played_provider([place], directory, token=shoots.token, buckets=buckets))
        travel = Travel(places, directories, next(_NAMES))
        await travel.begins()
        yield travel


def on_one_way(writes: int, *, carried_out: bool) -> list[Moment]:
    numbers = range(1, writes + 1) if FULL else [round(writes * 0.6)]
    return [Moment(number=each, carried_out=carried_out) for each in numbers]


_PARTS = 4 if FULL else 1
_RUNS = [
    pytest.param(carried_out, part, id=f"{'after' if carried_out else 'before'}-{part}")
    for carried_out in ((True, False) if FULL else (True,))
    for part in range(_PARTS)
]


@pytest.mark.slow
@pytest.mark.parametrize(("carried_out", "part"), _RUNS)
async def test_a_shoot_moves_wherever_gardenlets_died(travel: Travel, carried_out: bool, part: int) -> None:
    """Each time with all that its etcd had at the end, and with its very keys, and nothing is left where it was."""
    calm, states = await travel.to(1), {1: travel.state()}
    await travel.to(0)
    states[0] = travel.state()
    every = zip_longest(*(on_one_way(len(each), carried_out=carried_out) for each in calm))
    deaths = list(every)[part::_PARTS]
    for leaves, arrives in deaths:
        try:
            written = await travel.to(1 - travel.here, leaves=leaves, arrives=arrives)
            await travel.visits[travel.here].check(states[travel.here], (leaves, arrives))
        except BaseException as error:
            error.add_note(f"killed {leaves} while it left, {arrives} while it came")
            raise
        for found, undisturbed in zip(written, calm, strict=True):
            more = Counter(map(str, found)) - Counter(map(str, undisturbed))
            assert len(found) <= len(undisturbed) + _MOST_WRITES, (leaves, arrives, more)
    planned = sum(moment is not None for both in deaths for moment in both)
    print(f"{len(deaths)} ways, on which {travel.deaths} of {planned} gardenlets died that were to")
    assert travel.deaths >= planned * _MANY, "the last writes of a way may be fewer, but no others"


RESTORED: Object = {"lastOperation": {"type": "Migrate", "state": "Aborted"}}


def taken(shoot: Visit, target: Visit, **status: Any) -> None:
    """By hand, as docs/disaster-recovery.md has it. Args: status: other fields than those by which it is restored."""
    garden, key = shoot.place.garden, shoot.place.key(shoot.name)
    garden.patch(SHOOTS, key.name, {"spec": {"seedName": target.place.name}}, namespace=key.namespace)
    fields = {"seedName": target.place.name, **(status or RESTORED)}
    garden.patch(SHOOTS, key.name, {"status": fields}, namespace=key.namespace, status=True)


def hears_nothing(proxy: FaultProxy) -> None:
    """Of changes."""
    proxy.rules.add(Rule(fault=Silence(), watch=True))
    proxy.drop_all_connections()


@pytest.mark.slow
async def test_a_shoot_is_taken_from_a_seed_that_is_lost(travel: Travel, tmp_path: Path) -> None:
    """Its gardenlet still runs, but what it hears of the garden is old: from then on it writes nothing more."""
    source, target = travel.visits
    garden, key = source.place.garden, source.place.key(travel.name)
    travel.write(b"written before the seed was lost")
    await source.has_snapshot()
    async with gardenlet_behind_proxy(source.place, tmp_path) as (proxy, loops):
        saved = partial(garden.get, SHOOT_STATES, key.name, namespace=key.namespace)
        await soon(lambda: asyncio.to_thread(saved), "its state to be saved", passing=(NotFound,))
        await soon(lambda: all(each.queue.is_idle for each in loops), "the gardenlet to have nothing to do")
        hears_nothing(proxy)
        taken(source, target)
        before, since = source.versions(), len(proxy.log)
        for loop in loops:
            loop.queue.add(key)
        refused = partial(answers, proxy, since, 409)
        await soon(
            lambda: len(refused()) >= _REFUSED, "its writes to be refused", state=lambda: list(proxy.log)[since:]
        )
        assert (answers(proxy, since, 200), source.versions()) == ([], before)
    await shows_nothing_of_what_is_on_another_seed(source, target, tmp_path)
    target.goal = "Restore"
    await target.lived()
    travel.here = 1
    travel.check(b"written before the seed was lost")
    name = f"{source.technical_id}--{uid(target.place.get(key.name))}"
    entry = garden.get(BACKUP_ENTRIES, name, namespace=key.namespace)
    assert (spec(entry)["seedName"], at(entry, "status", "seedName")) == (target.place.name, target.place.name)
    await is_restored_in_a_new_cluster(travel, target)


async def shows_nothing_of_what_is_on_another_seed(source: Visit, target: Visit, directory: Path) -> None:
    """A gardenlet that only has extensions see a Shoot, and has not heard that it was taken."""
    generation = metadata(source.place.get(source.name))["generation"]
    taken(target, source, lastOperation={"type": "Reconcile", "state": "Failed"}, observedGeneration=generation + 1)
    async with gardenlet_behind_proxy(source.place, directory) as (proxy, (loop, *_)):
        await soon(lambda: source.shown().get("state") == "Failed", "extensions to see that it has failed")
        await soon(lambda: loop.queue.is_idle, "the gardenlet to have nothing to do")
        hears_nothing(proxy)
        taken(source, target)
        source.place.cluster.api.delete(CLUSTERS.path(name=source.technical_id))
        loop.queue.add(source.place.key(source.name))
        await soon(lambda: loop.queue.is_idle, "the gardenlet to have nothing to do")
    assert source.shown() == {}


async def is_restored_in_a_new_cluster(travel: Travel, visit: Visit) -> None:
    """Of the same Seed, whose gardenlet works already. Then it is deleted as any other."""
    travel.write(b"written before the cluster was lost")
    await visit.has_snapshot()
    await travel.loses_all()
    visit.ask(Step.CHANGE)
    living = asyncio.create_task(visit.lived())
    await soon(lambda: "restore the Shoot" in str(visit.explain()), "the gardenlet to refuse to make new keys")
    # That is made only where there is a namespace, and there was none at first.
    visit.loses_backup_secret()
    taken(visit, visit)
    await living
    travel.check(b"written before the cluster was lost")
    visit.goal = ""
    visit.ask(Step.DELETE)
    await visit.lived()
