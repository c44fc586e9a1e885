"""Many Shoots when their gardenlet starts, also with another version: with objects only, and a flow that does little."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace

import pytest

from agent.gardenlet.flow.graph import Graph, Task
from agent.gardenlet.shoot.main import controller
from agent.gardenlet.shoot.main.operation import ShootOperation
from config.gardenlet.controllers import Controllers, Shoot
from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from gardener import keys, operations
from gardener.api.garden import SEEDS, SHOOTS
from kit.eventually import soon
from kit.garden_objects import garden_object
from kit.gardenlet_controllers import GARDENER
from kit.played_shoots import NAMESPACE, SEED, PlayedPlace
from kube.clock import utc_now
from kube.objects import Object, key, metadata
from kube.paths import at
from kube.runtime.connection import load_kubeconfig

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("shoot-restarts")]

AWAKE, ASLEEP, FAILED = (
    tuple(f"{kind}{number:02}" for number in range(count))
    for kind, count in (("awake", 26), ("asleep", 8), ("failed", 6))
)
SHOOTS_OF_ALL = (*AWAKE, *ASLEEP, *FAILED)
AT_ONCE = 4
WRITES = ("create", "update", "patch", "delete")
LONGEST_CALLS = 20
"""To garden and seed, for one Shoot whose flow makes none."""


@dataclass(eq=False, slots=True)
class Work:
    """What flows do. Attributes: begun: names, in this order; most: that were worked on at a time."""

    begun: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    most: int = 0
    going_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, operation: ShootOperation) -> None:
        name = key(operation.shoot).name
        self.begun.append(name)
        self.most = max(self.most, len(self.begun) - len(self.ended))
        await self.going_on.wait()
        await asyncio.sleep(0.02)
        self.ended.append(name)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    made = Work()
    flow = Graph("Shoot cluster reconciliation", [Task("work", "Working", made.run)])
    monkeypatch.setattr(controller, "FLOWS", dict.fromkeys((operations.CREATE, operations.RECONCILE), flow))
    return made


@pytest.fixture(scope="module")
def place(devcluster_run: RunClusters) -> Iterator[PlayedPlace]:
    with Cluster() as own:
        place = PlayedPlace(own)
        for name in SHOOTS_OF_ALL:
            create(place, name)
        yield place


def create(place: PlayedPlace, name: str) -> None:
    wanted = {
        **garden_object(SHOOTS)["spec"],
        "seedName": SEED,
        "networking": {"services": "10.4.0.0/16"},
        "provider": {"type": "local"},
        "hibernation": {"enabled": name in ASLEEP},
    }
    del wanted["secretBindingName"]
    labels = {f"{keys.SEED_LABEL_PREFIX}{SEED}": "true"}
    place.create_shoot(name, wanted, finalizers=[keys.GARDENER_FINALIZER], labels=labels)


def left_by(place: PlayedPlace, version: str) -> None:
    """All Shoots are as a gardenlet of this version has left them."""
    for name in SHOOTS_OF_ALL:
        wanted = {"spec": {"hibernation": {"enabled": name in ASLEEP}}}
        shoot = place.garden.patch(SHOOTS, name, wanted, namespace=NAMESPACE)
        state = operations.FAILED if name in FAILED else operations.SUCCEEDED
        status: Object = {
            "uid": metadata(shoot)["uid"],
            "technicalID": f"shoot--local--{name}",
            "seedName": SEED,
            "gardener": {**GARDENER, "version": version},
            "observedGeneration": metadata(shoot)["generation"],
            "hibernated": name in ASLEEP,
            "lastOperation": operations.operation("Reconcile", state, 100, "left", now=utc_now()),
        }
        place.garden.patch(SHOOTS, name, {"status": status}, namespace=NAMESPACE, status=True)


def set_seed(place: PlayedPlace, state: str) -> None:
    operation = operations.operation("Reconcile", state, 50, "test", now=utc_now())
    place.garden.patch(SEEDS, SEED, {"status": {"lastOperation": operation}}, status=True)


def settings() -> Controllers:
    return replace(Controllers(), shoot=Shoot(enabled=True, concurrent_syncs=AT_ONCE))


async def test_few_are_worked_on_at_a_time_and_those_that_can_wait_come_last(place: PlayedPlace, work: Work) -> None:
    """What is requested meanwhile does not wait for all of them."""
    await asyncio.to_thread(left_by, place, GARDENER["version"])
    set_seed(place, operations.SUCCEEDED)
    with closing(place.cluster.audit()) as audit:
        since = audit.mark()
        async with place.gardenlet(
            controller.declare, shoots=load_kubeconfig(place.cluster.kubeconfig), controllers=settings()
        ):
            await soon(lambda: len(work.begun) == AT_ONCE - 1, "as many as are worked on in bulk")
            place.garden.patch(SHOOTS, ASLEEP[-1], {"spec": {"hibernation": {"enabled": False}}}, namespace=NAMESPACE)
            await soon(lambda: len(work.begun) == AT_ONCE, "what is requested")
            assert work.begun[-1] == ASLEEP[-1]
            work.going_on.set()
            # Those that have failed with this version are left alone.
            await soon(lambda: len(work.ended) == len(AWAKE) + len(ASLEEP), "all but those that failed")
        calls = audit.calls(since=since, user_agent="gardenlet/")
    assert work.most == AT_ONCE
    assert sorted(work.begun) == sorted((*AWAKE, *ASLEEP))
    in_bulk = [each for each in work.begun if each != ASLEEP[-1]]
    assert not set(in_bulk[: len(AWAKE) - AT_ONCE]) & set(ASLEEP), work.begun
    assert len(calls) < LONGEST_CALLS * len(SHOOTS_OF_ALL)


@pytest.mark.parametrize("version", ["v0.0.0-alpha", "v999.0.0"], ids=["from an older one", "back from a newer one"])
async def test_after_another_version_they_wait_for_the_seed(place: PlayedPlace, work: Work, version: str) -> None:
    """Without a word in their status, until the Seed is reconciled; what failed is tried again, after the others."""
    await asyncio.to_thread(left_by, place, version)
    set_seed(place, operations.PROCESSING)
    work.going_on.set()
    requested = AWAKE[0]
    with closing(place.cluster.audit()) as audit:
        since = audit.mark()
        async with place.gardenlet(
            controller.declare, shoots=load_kubeconfig(place.cluster.kubeconfig), controllers=settings()
        ):
            purpose = {"spec": {"purpose": "testing" if version == "v0.0.0-alpha" else "development"}}
            place.garden.patch(SHOOTS, requested, purpose, namespace=NAMESPACE)
            await soon(lambda: work.ended == [requested], "what is requested", state=lambda: work.begun)
            written = audit.calls(since=since, user_agent="gardenlet/", namespace=NAMESPACE, verbs=WRITES)
            assert {each.name for each in written if each.resource.startswith("shoots")} == {requested}
            set_seed(place, operations.SUCCEEDED)
            await soon(lambda: len(work.ended) == len(SHOOTS_OF_ALL), "all of them", state=lambda: work.begun)
            await soon(lambda: states(place) == {"Succeeded"}, "all to succeed")
    assert work.most <= AT_ONCE
    assert not set(work.begun[: len(AWAKE) - AT_ONCE]) & {*ASLEEP, *FAILED}, work.begun


def states(place: PlayedPlace) -> set[str]:
    found = place.cluster.api.get(SHOOTS.path(namespace=NAMESPACE))["items"]
    return {str(at(each, "status", "lastOperation", "state")) for each in found}
