"""kill -9 at every write of bootstrap, registration and rotation: the next process finishes what was begun.

The garden is its own seed here.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest

from agent.controller_manager.certificate_signing_request import declare
from agent.gardenlet.bootstrap import self_upgrade
from agent.gardenlet.bootstrap.entrance import enter
from gardener.api.garden import GARDENLETS, SEEDS, SHOOTS
from kit.crash.lives import Killed, begin, moments
from kit.crash.sweep import Moment
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.garden_objects import garden_object
from kit.garden_shoots import ShootPlace
from kit.gardenlet_bootstrap import BOOTSTRAP, KUBECONFIG, QUICK, Entry
from kit.world import connected
from kube.clock import utc_now
from kube.objects import Object, annotations, condition, labels
from kube.paths import at

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
async def approving(garden: Garden) -> AsyncIterator[None]:
    async with connected(garden.cluster) as operator, run_garden_controller(declare, operator):
        yield


Live = Callable[[], Awaitable[None]]


async def lived(live: Live, monkeypatch: pytest.MonkeyPatch, moment: Moment | None) -> list[str]:
    """What was written in a life that ends at a moment, and in the next one."""
    first = begin(monkeypatch, moment)
    if moment is None:
        await live()
        return first.writes
    with pytest.raises((Killed, BaseExceptionGroup)):
        await live()
    assert first.is_over, moment
    next_life = begin(monkeypatch)
    await live()
    return [*first.writes, *next_life.writes]


# --- from nothing


class Bootstrap:
    """A token, no Seed, and an object for upgrades."""

    def __init__(self, garden: Garden) -> None:
        self.entry = Entry(garden, garden.cluster)
        self.token = self.entry.token_id
        self.entry.put(BOOTSTRAP, self.entry.with_token(self.token))
        gardenlet = {**garden_object(GARDENLETS), **GARDENLETS.type_meta, "metadata": {"name": self.entry.name}}
        gardenlet["spec"]["config"]["seedConfig"] = {"spec": self.entry.seed_config["spec"]}
        self.entry.put_config_map(self_upgrade.NAME, **{self_upgrade.KEY: json.dumps(gardenlet)})

    async def live(self) -> None:
        async with self.entry.access(pace=QUICK) as access:
            await enter(access, self.entry.seed_config)

    def state(self) -> Object:
        secret = self.entry.secret(KUBECONFIG)
        return {
            "kubeconfig": sorted(secret["data"]),
            "annotations": annotations(secret),
            "bootstrap": [self.entry.exists(BOOTSTRAP), self.entry.has_token(self.token)],
            "seed": labels(self.entry.registered())["gardener.cloud/role"],
            "gardenlet": bool(self.entry.garden.get(GARDENLETS, self.entry.name, namespace="garden")),
            "config map": self.entry.config_map(self_upgrade.NAME),
        }


BOOTSTRAPPED: Object = {
    "kubeconfig": ["kubeconfig"],
    "annotations": {},
    "bootstrap": [False, False],
    "seed": "seed",
    "gardenlet": True,
    "config map": False,
}


async def test_a_bootstrap_is_finished_wherever_it_ended(
    garden: Garden, approving: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ShootPlace(garden, is_garden=True)
    whole = Bootstrap(garden)
    writes = await lived(whole.live, monkeypatch, None)
    assert whole.state() == BOOTSTRAPPED
    assert writes == [
        "create certificatesigningrequests.certificates.k8s.io",
        "create secrets",
        "delete secrets",
        "delete secrets",
        "patch secrets",
        "create seeds.core.gardener.cloud",
        "create gardenlets.seedmanagement.gardener.cloud",
        "delete configmaps",
    ]
    for moment in moments(len(writes)):
        scene = Bootstrap(garden)
        again = await lived(scene.live, monkeypatch, moment)
        assert scene.state() == BOOTSTRAPPED, moment
        # Both deletions may be sent again, and what follows them.
        assert len(again) <= len(writes) + 3, (moment, again)


# --- a Seed that is there, and an operation that was left


class Registration:
    def __init__(self, garden: Garden) -> None:
        self.place = ShootPlace(garden)
        self.entry = Entry(garden, garden.cluster, name=self.place.name)
        self.entry.put(KUBECONFIG, self.entry.with_certificate(since=utc_now(), lifetime=timedelta(hours=1)))
        self.entry.register()
        garden.patch(SEEDS, self.entry.name, {"metadata": {"labels": {"gardener.cloud/role": None}}})
        self.place.shoot(seedName=self.entry.name)
        left: Object = {"type": "Reconcile", "state": "Processing", "progress": 40, "description": "half"}
        left["lastUpdateTime"] = "2024-01-01T00:00:00Z"
        self.place.patch(SHOOTS, "s", {"status": {"lastOperation": left}}, status=True)

    async def live(self) -> None:
        async with self.entry.access(pace=QUICK) as access:
            await enter(access, self.entry.seed_config)

    def state(self) -> Object:
        shoot = self.entry.garden.get(SHOOTS, "s", namespace=self.place.namespace)
        return {
            "role": labels(self.entry.registered()).get("gardener.cloud/role"),
            "state": at(shoot, "status", "lastOperation", "state"),
        }


async def test_a_seed_is_registered_and_operations_are_aborted_wherever_that_ended(
    garden: Garden, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Registration(garden)
    writes = await lived(whole.live, monkeypatch, None)
    assert whole.state() == {"role": "seed", "state": "Aborted"}
    assert writes == ["patch seeds.core.gardener.cloud", "patch shoots/status.core.gardener.cloud"]
    for moment in moments(len(writes)):
        scene = Registration(garden)
        again = await lived(scene.live, monkeypatch, moment)
        assert scene.state() == whole.state(), moment
        assert len(again) <= len(writes) + 1, (moment, again)


# --- another certificate


class Renewal:
    def __init__(self, garden: Garden) -> None:
        self.entry = Entry(garden, garden.cluster)
        self.entry.put(KUBECONFIG, self.entry.with_certificate(since=utc_now(), lifetime=timedelta(hours=1)))
        self.first = self.entry.stored().content
        self.entry.register()
        self.entry.patch(KUBECONFIG, {"metadata": {"annotations": {"gardener.cloud/operation": "renew"}}})

    def is_done(self) -> bool:
        found = condition(self.entry.registered(), "GardenletCertificate")
        is_renewed = self.entry.stored().content != self.first
        return is_renewed and not annotations(self.entry.secret(KUBECONFIG)) and found is not None

    async def live(self) -> None:
        async with self.entry.access(pace=QUICK) as access:
            rotation = await enter(access, self.entry.seed_config)
            await rotation.start()
            ended = asyncio.ensure_future(rotation.wait())
            try:
                await soon(lambda: ended.done() or self.is_done(), "another certificate")
                if ended.done():
                    ended.result()
            finally:
                ended.cancel()
                await rotation.stop()


async def test_a_certificate_is_renewed_once_wherever_that_ended(
    garden: Garden, approving: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Renewal(garden)
    writes = await lived(whole.live, monkeypatch, None)
    assert writes == [
        "create certificatesigningrequests.certificates.k8s.io",
        "patch secrets",
        "patch seeds/status.core.gardener.cloud",
    ]
    # After the last but one the certificate is new, so there is nothing to say any more.
    for moment in moments(2):
        scene = Renewal(garden)
        again = await renewed_in_lives(scene, monkeypatch, moment)
        asked = again.count("create certificatesigningrequests.certificates.k8s.io")
        assert asked == (1 if moment == Moment(number=2, carried_out=True) else 2), (moment, again)


async def renewed_in_lives(scene: Renewal, monkeypatch: pytest.MonkeyPatch, moment: Moment) -> list[str]:
    first = begin(monkeypatch, moment)
    with pytest.raises(Killed):
        await scene.live()
    if scene.entry.stored().content != scene.first:
        return first.writes
    second = begin(monkeypatch)
    await scene.live()
    return [*first.writes, *second.writes]
