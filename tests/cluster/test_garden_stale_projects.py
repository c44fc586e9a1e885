"""Unused Projects are deleted in the end, but none that is used."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.controller_manager.project.stale import Reconciler, Usage, declare
from config.controller_manager.controllers import Controllers, Project
from gardener import keys
from gardener.api.garden import PROJECTS, QUOTAS, SECRET_BINDINGS
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.clock import format_time, parse_time
from kube.objects import Key, Object, annotations, metadata
from kube.resources import NAMESPACES, SECRETS
from kube.runtime.cache import Store, View, listed, without_managed_fields
from kube.runtime.client import Client
from kube.runtime.controller import RequeueAfter

pytestmark = pytest.mark.timeout(600)

HOLD = "test.example.com/hold"
DAY = 24 * 3600.0


@pytest.fixture
async def client(garden: Garden) -> AsyncIterator[Client]:
    async with connected(garden.cluster) as client:
        yield client


@pytest.fixture
def place(garden: Garden) -> ShootPlace:
    return ShootPlace(garden)


class Passes:
    """Passes over one Project of many in this garden, at any time; what the caches hold is from one moment."""

    def __init__(self, client: Client, place: ShootPlace) -> None:
        self.client = client
        self.place = place
        self.now = datetime.now(UTC)
        self.usage: Usage | None = None

    async def on(self, day: float, *, dry_run: bool = False) -> Object:
        """Days from now; returns the status of the Project then."""
        now = self.now + timedelta(days=day)
        projects = await self._listed(PROJECTS)
        reconciler = Reconciler(
            client=self.client,
            projects=projects,
            namespaces=await self._listed(NAMESPACES),
            usage=self.usage or await Usage.read(self.client, self.place.namespace),
            settings=Project(),
            clock=lambda: now,
            dry_run=dry_run,
        )
        result = await reconciler.reconcile(Key("", self.place.name))
        assert isinstance(result, RequeueAfter)
        assert 0 < result.seconds <= DAY / 2
        return self.status()

    async def _listed(self, resource: Any) -> Store[Object]:
        return await listed(self.client, View(resource, without_managed_fields))

    def status(self) -> Object:
        return self.place.get(PROJECTS, self.place.name).get("status") or {}

    def day(self, field: str) -> float:
        return (parse_time(self.status()[field]) - self.now) / timedelta(days=1)


@pytest.fixture
def passes(client: Client, place: ShootPlace) -> Passes:
    return Passes(client, place)


def hold(place: ShootPlace) -> None:
    """So that it can be looked at when it has been deleted."""
    place.patch(PROJECTS, place.name, {"metadata": {"finalizers": [HOLD]}})


def is_deleted(place: ShootPlace) -> bool:
    return "deletionTimestamp" in place.meta(PROJECTS, place.name)


async def test_an_unused_project_is_deleted_in_the_end(passes: Passes, place: ShootPlace) -> None:
    hold(place)
    assert await passes.on(29) == {}
    assert (await passes.on(31)).keys() == {"staleSinceTimestamp"}
    assert passes.day("staleSinceTimestamp") == pytest.approx(31, abs=1e-3)
    version = place.meta(PROJECTS, place.name)["resourceVersion"]
    await passes.on(40)
    assert place.meta(PROJECTS, place.name)["resourceVersion"] == version
    await passes.on(46)
    assert passes.day("staleAutoDeleteTimestamp") == pytest.approx(121, abs=1e-3)
    await passes.on(120)
    assert not is_deleted(place)
    await passes.on(122, dry_run=True)
    assert not is_deleted(place)
    await passes.on(122)
    deleted = place.get(PROJECTS, place.name)
    assert "deletionTimestamp" in metadata(deleted)
    assert annotations(deleted)[keys.CONFIRM_DELETION] == "true"
    assert parse_time(annotations(deleted)[keys.TIMESTAMP]) == passes.now + timedelta(days=122)
    place.patch(PROJECTS, place.name, {"metadata": {"finalizers": None}})


async def test_a_dry_run_writes_nothing(passes: Passes, place: ShootPlace) -> None:
    before = place.get(PROJECTS, place.name)
    for day in (31, 46, 500):
        await passes.on(day, dry_run=True)
    assert place.get(PROJECTS, place.name) == before


async def test_a_project_that_is_used_again_is_not_stale_any_more(passes: Passes, place: ShootPlace) -> None:
    await passes.on(31)
    place.shoot()
    assert await passes.on(46) == {}
    place.patch(NAMESPACES, place.namespace, {"metadata": {"annotations": {keys.SKIP_STALE_CHECK: "true"}}})


async def test_a_namespace_can_be_exempted(passes: Passes, place: ShootPlace) -> None:
    await passes.on(31)
    place.patch(NAMESPACES, place.namespace, {"metadata": {"annotations": {keys.SKIP_STALE_CHECK: "true"}}})
    assert await passes.on(46) == {}


@pytest.mark.parametrize("used", ["Secret", "Quota"])
async def test_what_shoots_of_other_projects_use_keeps_a_project_also_if_caches_do_not_know_it_yet(
    garden: Garden, client: Client, passes: Passes, place: ShootPlace, used: str
) -> None:
    await passes.on(31)
    await passes.on(46)
    passes.usage = await Usage.read(client, place.namespace)
    other = ShootPlace(garden)
    owner = place if used == "Secret" else other
    secret = {"name": owner.name, "namespace": owner.namespace}
    quota = {"name": "q", "namespace": place.namespace}
    if used == "Quota":
        place.create(QUOTAS, "q", spec={"scope": {"apiVersion": "v1", "kind": "Secret"}, "metrics": {"cpu": "100"}})
    else:
        place.patch(SECRETS, place.name, {"metadata": {"labels": {keys.SECRET_BINDING_REFERENCE: "true"}}})
    quotas = {"quotas": [quota]} if used == "Quota" else {}
    other.create(SECRET_BINDINGS, "other", provider={"type": other.name}, secretRef=secret, **quotas)
    other.shoot(secretBindingName="other")
    await passes.on(122)
    assert not is_deleted(place)
    passes.usage = None
    assert await passes.on(122) == {}


async def test_the_controller_marks_projects_and_hears_of_activity(client: Client, place: ShootPlace) -> None:
    settings = Project(minimum_lifetime_days=30, stale_expiration_time_days=36500)
    moment = datetime.now(UTC) + timedelta(days=50)

    def is_stale() -> bool:
        return "staleSinceTimestamp" in (place.get(PROJECTS, place.name).get("status") or {})

    async with run_garden_controller(declare, client, controllers=Controllers(project=settings), clock=lambda: moment):
        await soon(is_stale, "the Project to be stale")
        used = {"status": {"lastActivityTimestamp": format_time(moment - timedelta(days=29))}}
        place.patch(PROJECTS, place.name, used, status=True)
        await soon(lambda: not is_stale(), "the Project not to be stale")
