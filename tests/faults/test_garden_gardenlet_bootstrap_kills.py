"""kill -9 at every write of bootstrap, registration and rotation: the next process finishes what was begun.

The garden is its own seed here.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import timedelta

import pytest

from agent.controller_manager.certificate_signing_request import declare
from agent.gardenlet.bootstrap.entrance import enter
from agent.gardenlet.bootstrap.rules.certificate import Life, said_of
from gardener.api.garden import SEEDS, SHOOTS
from gardener.conditions import GARDENLET_CERTIFICATE
from kit.crash.lives import Killed, begin, moments
from kit.crash.sweep import Moment
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.garden_shoots import ShootPlace
from kit.gardenlet_bootstrap import BOOTSTRAP, KUBECONFIG, QUICK, Entry
from kit.world import connected
from kube.clock import format_time, utc_now
from kube.conditions import with_conditions
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
    # What waits for the last write may see it in the garden before the process sees its own end.
    with suppress(Killed, BaseExceptionGroup):
        await live()
    assert first.is_over, moment
    next_life = begin(monkeypatch)
    await live()
    return [*first.writes, *next_life.writes]


# --- from nothing


class Bootstrap:
    """A token, and no Seed."""

    def __init__(self, garden: Garden) -> None:
        self.entry = Entry(garden, garden.cluster)
        self.token = self.entry.token_id
        self.put()

    def put(self) -> None:
        self.entry.put(BOOTSTRAP, self.entry.with_token(self.token))

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
        }


BOOTSTRAPPED: Object = {
    "kubeconfig": ["kubeconfig"],
    "annotations": {},
    "bootstrap": [False, False],
    "seed": "seed",
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
        "create seeds.core.gardener.cloud",
        "delete secrets",
        "delete secrets",
        "patch secrets",
    ]
    for moment in moments(len(writes)):
        scene = Bootstrap(garden)
        again = await lived(scene.live, monkeypatch, moment)
        assert scene.state() == BOOTSTRAPPED, moment
        # Both deletions may be sent again, and what follows them.
        assert len(again) <= len(writes) + 3, (moment, again)


# --- in other ways


class BootstrapByAccount(Bootstrap):
    """The kubeconfig has the token of a ServiceAccount."""

    def put(self) -> None:
        self.entry.put(BOOTSTRAP, self.entry.with_account())

    def state(self) -> Object:
        return super().state() | {"bootstrap": [self.entry.exists(BOOTSTRAP), self.entry.has_account()]}


class BootstrapAnew(Bootstrap):
    """A certificate that has expired is replaced."""

    def put(self) -> None:
        super().put()
        long_ago = utc_now() - timedelta(hours=2)
        self.entry.put(KUBECONFIG, self.entry.with_certificate(since=long_ago, lifetime=timedelta(hours=1)))


@pytest.mark.parametrize(
    ("scene", "entered"),
    [
        (
            BootstrapByAccount,
            [
                "create certificatesigningrequests.certificates.k8s.io",
                "create secrets",
                "create seeds.core.gardener.cloud",
                "delete secrets",
                "delete serviceaccounts",
                "delete clusterrolebindings.rbac.authorization.k8s.io",
                "patch secrets",
            ],
        ),
        (
            BootstrapAnew,
            [
                "create certificatesigningrequests.certificates.k8s.io",
                "patch secrets",
                "create seeds.core.gardener.cloud",
                "delete secrets",
                "delete secrets",
                "patch secrets",
            ],
        ),
    ],
)
async def test_other_bootstraps_are_finished_wherever_they_ended(
    scene: type[Bootstrap], entered: list[str], garden: Garden, approving: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ShootPlace(garden, is_garden=True)
    whole = scene(garden)
    writes = await lived(whole.live, monkeypatch, None)
    assert whole.state() == BOOTSTRAPPED
    assert writes[: len(entered)] == entered
    for moment in moments(len(entered)):
        interrupted = scene(garden)
        await lived(interrupted.live, monkeypatch, moment)
        assert interrupted.state() == BOOTSTRAPPED, moment


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
    """It is requested; the Seed reports how long the present certificate is valid."""

    age = timedelta(0)

    def __init__(self, garden: Garden) -> None:
        self.entry = Entry(garden, garden.cluster)
        since = utc_now() - self.age
        self.entry.put(KUBECONFIG, self.entry.with_certificate(since=since, lifetime=timedelta(hours=1)))
        self.first = self.entry.stored().content
        self.entry.register()
        life = self.life()
        status = {
            "conditions": with_conditions([], [said_of(life, now=utc_now())], now=since),
            "clientCertificateExpirationTimestamp": format_time(life.until),
        }
        garden.patch(SEEDS, self.entry.name, {"status": status}, status=True)
        self.ask()

    def ask(self) -> None:
        self.entry.patch(KUBECONFIG, {"metadata": {"annotations": {"gardener.cloud/operation": "renew"}}})

    def life(self) -> Life:
        life = self.entry.stored().life
        assert life is not None
        return life

    def is_done(self) -> bool:
        seed, life = self.entry.registered(), self.life()
        is_renewed = self.entry.stored().content != self.first and not annotations(self.entry.secret(KUBECONFIG))
        reported = (condition(seed, GARDENLET_CERTIFICATE) or {})["message"] == said_of(life, now=utc_now()).message
        return (
            is_renewed
            and reported
            and at(seed, "status", "clientCertificateExpirationTimestamp") == format_time(life.until)
        )

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


class RenewalInTime(Renewal):
    """Not requested: most of the lifetime is over."""

    age = timedelta(minutes=55)

    def ask(self) -> None:
        pass


@pytest.mark.parametrize("scene", [Renewal, RenewalInTime])
async def test_a_certificate_is_renewed_once_wherever_that_ended(
    scene: type[Renewal], garden: Garden, approving: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = await lived(scene(garden).live, monkeypatch, None)
    assert writes == [
        "create certificatesigningrequests.certificates.k8s.io",
        "patch secrets",
        "patch seeds/status.core.gardener.cloud",
    ]
    for moment in moments(len(writes)):
        again = await lived(scene(garden).live, monkeypatch, moment)
        requested = again.count(writes[0])
        # Once the new one is stored, none is requested any more.
        is_stored = moment.number > 2 or moment == Moment(number=2, carried_out=True)
        assert requested == (1 if is_stored else 2), (moment, again)
