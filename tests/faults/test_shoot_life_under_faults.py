"""A Shoot's life while things go wrong between its gardenlet and the garden, the seed, or its own API server.

One Shoot goes through all of it, in the order of the tests. Whatever happens on the way, each operation succeeds in the
end, no authority is ever made twice, and in the end nothing is left.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from devcluster.cluster import Cluster
from devcluster.garden.box import GardenBox
from devcluster.garden.seed import SHAPE_WITH_SHOOTS, SeedBox
from devcluster.testing.faults import (
    STRANGERS,
    Answer,
    Delay,
    EndWatch,
    LateEvents,
    RepeatEvents,
    Reset,
    Rule,
    Silence,
    Truncated,
    WatchEnd,
    expired,
    internal_error,
    throttled,
    unavailable,
)
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api.druid import ETCDS
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.garden.seeds import namespace_of
from kit.crash.answers import Strangers
from kit.crash.sweep import Death, Killed, Moment
from kit.eventually import PATIENCE, soon
from kit.meadow import PATH, SEED, TECHNICAL_ID, Meadow
from kit.meadow_roads import Roads, Seen, away, inventory, roads, struck, watched, without_shoots
from kit.objects import decoded
from kube.errors import ServerFailure, Unreachable
from kube.objects import Object, is_deleting, mappings, spec
from kube.paths import at
from kube.resources import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, SECRETS, SERVICES, Resource
from localprovider.extensions.actuators import DNS

pytestmark = [pytest.mark.timeout(1200), pytest.mark.xdist_group("shoot-life-under-faults")]

WRITES = ("POST", "PUT", "PATCH", "DELETE")
CONFLICT = Answer(name="conflict", code=409, reason="Conflict", message="the object has been modified")
REQUESTS = (*STRANGERS, Truncated(), internal_error(), unavailable(), throttled())
MIX = (
    *(Rule(fault=each, probability=0.1, times=1, watch=False) for each in REQUESTS),
    *(
        Rule(fault=each, probability=0.15, times=1, methods=WRITES)
        for each in (Reset(), Reset(carried_out=True), Silence(), internal_error(carried_out=True), CONFLICT)
    ),
    Rule(fault=Delay(seconds=0.5, carried_out=True), probability=0.1, times=10),
    Rule(fault=expired(), probability=0.2, times=5, watch=True),
    Rule(fault=EndWatch(how=WatchEnd.RESET, after_events=1), probability=0.2, times=5, watch=True),
    Rule(fault=EndWatch(how=WatchEnd.SILENT, after_events=1), probability=0.2, times=2, watch=True),
    Rule(fault=RepeatEvents(), probability=0.3, watch=True),
    Rule(fault=LateEvents(seconds=0.5), probability=0.5, watch=True),
)
CUT = Rule(fault=Reset())
TEXT_404 = next(each for each in STRANGERS if each.name == "text-404")
DEAD = {carried_out: Silence(carried_out=carried_out) for carried_out in (False, True)}
"""What meets the last write of a gardenlet that is killed."""
MANY, FEW = 20, 3
BEFORE: dict[str, dict[str, str]] = {}
"""What garden and seed have before there is a Shoot."""
ROLLED_OUT = (Unreachable, ServerFailure)
HELD = SERVICES.path(namespace="default", name="held")
HOLDER = CONFIG_MAPS.path(namespace=TECHNICAL_ID, name="holder")
NAMESPACE_GOES = "Waiting until shoot namespace in Seed has been deleted"


@pytest.fixture(scope="module")
def meadow(devcluster_run: RunClusters) -> Iterator[Meadow]:
    with Cluster(name=f"faults-{os.getpid()}") as garden:
        box = GardenBox(garden)
        box.install()
        box.add_demo_data()
        box.start_controllers()
        seed = garden.below(SEED, nodes=1, shape=SHAPE_WITH_SHOOTS).start()
        made = SeedBox(garden, seed, SEED, shoots=True)
        without_shoots(made)
        made.install()
        yield Meadow(garden, seed)


@pytest.fixture
async def seen(meadow: Meadow) -> AsyncIterator[Seen]:
    """What is true of each operation, whatever disturbs it."""
    async with watched(meadow) as seen:
        yield seen
    assert "Failed" not in [state for _, state, _ in seen.operations]
    assert not seen.codes, "a failure of a request is none of the user's"
    assert {name: len(uids) for name, uids in seen.authorities.items()} == dict.fromkeys(seen.authorities, 1)


async def succeeds(meadow: Meadow, kind: str) -> None:
    shoot = await asyncio.to_thread(partial(meadow.wait, kind, seconds=PATIENCE))
    assert (shoot["status"].get("lastErrors"), shoot["status"].get("retryCycleStartTime")) == (None, None)


async def test_it_comes_up(meadow: Meadow, seen: Seen, tmp_path: Path) -> None:
    """With some of all faults; when it has keys, the garden goes away, and when it has an API server, the seed does."""
    BEFORE.update(garden=inventory(meadow.garden.api), seed=inventory(meadow.seed.api))
    api = meadow.seed.api
    async with roads(meadow, tmp_path) as road:
        for each in (road.garden, road.seed):
            each.rules.add(*MIX)
        meadow.create()
        await soon(lambda: api.get(ETCDS.path(namespace=TECHNICAL_ID))["items"], "an Etcd")
        async with away(road.garden, CUT):
            await struck(road.garden, MANY)
        await soon(lambda: api.get(DEPLOYMENTS.path(namespace=TECHNICAL_ID))["items"], "an API server")
        async with away(road.seed, CUT):
            await struck(road.seed, MANY)
        await succeeds(meadow, "Create")
        for each in (road.garden, road.seed):
            assert len(each.injected) >= len(MIX) / 3, "few faults struck: this shows little"
    assert "ca" in seen.authorities


async def reconciled(meadow: Meadow) -> None:
    meadow.change({"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}})
    await succeeds(meadow, "Reconcile")


async def test_an_overloaded_garden_does_not_make_it_fail(meadow: Meadow, seen: Seen, tmp_path: Path) -> None:
    faults = (throttled(retry_after=0), unavailable(), internal_error())
    async with roads(meadow, tmp_path) as road:
        path = "/(namespaces/[^/]+|projects/[^/]+|cloudprofiles/[^/]+|secrets)$"
        road.garden.rules.add(
            *(Rule(fault=each, path=path, methods=("GET",), watch=False, times=FEW) for each in faults)
        )
        await reconciled(meadow)
        assert all(road.garden.injected[each.name] == FEW for each in faults)
        # What is there is read, and not found out by an attempt to make it.
        written = {each.request.path for each in road.garden.log if each.request.method in WRITES}
        assert {path for path in written if not path.endswith(("/events", "/shoots/rose/status"))} == set()
    texts = [text for _, state, text in seen.operations if state == "Error"]
    assert texts
    assert all(text.startswith("Could not initialize a new operation for Shoot cluster: ") for text in texts)


async def test_nothing_follows_from_absences_that_no_api_server_reports(
    meadow: Meadow, seen: Seen, tmp_path: Path
) -> None:
    """Each sort of call meets one, to each of the three clusters."""
    before = inventory(meadow.seed.api, namespace=TECHNICAL_ID), meadow.replicas(), sorted(meadow.processes())
    async with roads(meadow, tmp_path) as road:
        for each in road.all():
            strangers = each.rules = Strangers(TEXT_404)
            strangers.is_armed = True
            each.drop_all_connections()
        await reconciled(meadow)
        assert all(each.injected[TEXT_404.name] for each in road.all())
    after = inventory(meadow.seed.api, namespace=TECHNICAL_ID), meadow.replicas(), sorted(meadow.processes())
    assert after == before


async def test_it_sleeps_and_wakes_with_its_data(meadow: Meadow, seen: Seen, tmp_path: Path) -> None:
    """What the gardenlet sees is old; the seed goes away while it falls asleep, the garden while it wakes."""
    kept: Object = {**CONFIG_MAPS.type_meta, "metadata": {"name": "kept"}, "data": {"a": "b"}}
    meadow.cluster().create(CONFIG_MAPS.path(namespace="default"), kept)
    path = DEPLOYMENTS.path(namespace=TECHNICAL_ID, name="kube-apiserver")
    async with roads(meadow, tmp_path, seed=7) as road:
        for each in (road.garden, road.seed):
            each.rules.add(*MIX)
        meadow.change({"spec": {"hibernation": {"enabled": True}}})
        await soon(lambda: spec(meadow.seed.api.get(path))["replicas"] == 0, "the API server to go to sleep")
        async with away(road.seed, CUT):
            await struck(road.seed, MANY)
        await succeeds(meadow, "Reconcile")
        assert set(meadow.replicas().values()) == {0}
        await soon(lambda: not meadow.processes(), "the processes to end")
        meadow.change({"spec": {"hibernation": {"enabled": False}}})
        await soon(lambda: spec(meadow.seed.api.get(path))["replicas"], "the API server to wake")
        async with away(road.garden, Rule(fault=unavailable())):
            await struck(road.garden, MANY)
        await succeeds(meadow, "Reconcile")
    assert meadow.cluster().get(CONFIG_MAPS.path(namespace="default", name="kept"))["data"] == {"a": "b"}


async def dies(meadow: Meadow, directory: Path, moment: Moment, *, asleep: bool) -> None:
    """The gardenlet that is to bring it to sleep, or to wake it."""
    death = Death()
    death.arm(moment)
    with suppress(Killed):
        async with roads(meadow, directory) as road:
            both = road.garden, road.seed
            for each in both:
                each.rules = death
            meadow.change({"spec": {"hibernation": {"enabled": asleep}}})
            await soon(lambda: death.at, "its end", state=meadow.explain)
            await soon(lambda: any(each.injected[DEAD[moment.carried_out].name] for each in both), "the last write")
            for each in both:
                await each.pause()
            raise Killed
    assert at(meadow.shoot(), "status", "lastOperation", "state") == "Processing"


async def test_a_killed_gardenlet_is_followed_by_one_that_ends_what_it_began(
    meadow: Meadow, seen: Seen, tmp_path: Path
) -> None:
    """While it falls asleep, and while it wakes, with its processes."""
    before = inventory(meadow.seed.api, namespace=TECHNICAL_ID), meadow.replicas(), meadow.secrets()
    await dies(meadow, tmp_path, Moment(number=8, carried_out=True), asleep=True)
    async with roads(meadow, tmp_path):
        await succeeds(meadow, "Reconcile")
    assert set(meadow.replicas().values()) == {0}
    await soon(lambda: not meadow.processes(), "the processes to end")
    await dies(meadow, tmp_path, Moment(number=6, carried_out=False), asleep=False)
    async with roads(meadow, tmp_path):
        await succeeds(meadow, "Reconcile")
    found, replicas, secrets = inventory(meadow.seed.api, namespace=TECHNICAL_ID), meadow.replicas(), meadow.secrets()
    assert (found.keys(), replicas, secrets) == (before[0].keys(), *before[1:])
    assert meadow.cluster().get(CONFIG_MAPS.path(namespace="default", name="kept"))["data"] == {"a": "b"}


async def test_it_goes_when_all_in_it_is_gone(meadow: Meadow, seen: Seen, tmp_path: Path) -> None:
    """Its own API server is away while it is cleaned up, or another one answers: that is not taken for 'nothing left'."""
    cluster = meadow.cluster()
    meta = {"name": "held", "finalizers": ["example.com/held"]}
    held: Object = {**SERVICES.type_meta, "metadata": meta, "spec": {"ports": [{"port": 80}]}}
    cluster.create(SERVICES.path(namespace="default"), held)
    holder: Object = {**CONFIG_MAPS.type_meta, "metadata": {**meta, "name": "holder"}}
    meadow.seed.api.create(CONFIG_MAPS.path(namespace=TECHNICAL_ID), holder)
    await renew_credentials(meadow)
    async with roads(meadow, tmp_path) as road:
        assert road.shoot is not None
        await is_not_empty(meadow, seen, road)
        await soon(
            lambda: is_deleting(cluster.get(HELD)),
            "the Service to be deleted",
            state=meadow.explain,
            passing=ROLLED_OUT,
        )
        async with away(road.shoot, CUT):
            await struck(road.shoot, FEW)
        assert_all_is_there(meadow)
        cluster.patch(HELD, {"metadata": {"finalizers": None}})
        for each in (road.garden, road.seed):
            each.rules.add(*MIX)
        await soon(lambda: not api_servers(meadow), "the API server to go", state=meadow.explain)
        async with away(road.seed, Rule(fault=TEXT_404)):
            await struck(road.seed, MANY)
        async with away(road.garden, CUT):
            await struck(road.garden, MANY)
        await waits(seen, NAMESPACE_GOES)
    await goes_on_in_a_namespace_that_goes(meadow, seen, tmp_path)
    assert seen.credentials["dnsrecord-rose-external"]["key"] == "renewed"
    await is_gone(meadow)


async def renew_credentials(meadow: Meadow) -> None:
    """Of the provider of DNS, which does not take the former ones any more."""
    api, label = meadow.garden.api, "labelSelector=gardener.cloud%2Frole%3Ddefault-domain"
    api.patch(SECRETS.path(namespace="garden", name="default-domain"), {"stringData": {"key": "renewed"}})

    def is_known() -> bool:
        found = api.get(f"{SECRETS.path(namespace=namespace_of(SEED))}?{label}")["items"]
        return bool(found) and all(decoded(each).get("key") == "renewed" for each in found)

    await soon(is_known, "the credentials to reach the Seed's namespace")


async def goes_on_in_a_namespace_that_goes(meadow: Meadow, seen: Seen, directory: Path) -> None:
    """The next gardenlet makes nothing there any more."""
    seen.operations.clear()
    async with roads(meadow, directory) as road:
        await waits(seen, NAMESPACE_GOES)
        made = [each.request.path for each in road.seed.log if each.request.method == "POST"]
        assert [path for path in made if f"/{TECHNICAL_ID}/" in path] == []
        meadow.seed.api.patch(HOLDER, {"metadata": {"finalizers": None}})
        await soon(lambda: meadow.garden.api.raw("GET", PATH)[0] == 404, "the Shoot to go", state=meadow.explain)


async def waits(seen: Seen, task: str) -> None:
    await soon(lambda: any(task in text for _, _, text in seen.operations), f"the task {task}")


@pytest.mark.parametrize("resource", [NAMESPACES, DEPLOYMENTS], ids=lambda each: each.plural)
async def test_what_never_came_up_goes(meadow: Meadow, seen: Seen, tmp_path: Path, resource: Resource) -> None:
    """The gardenlet ends when it has made the namespace, or the API server; the next one is to remove the Shoot."""
    path = resource.path(namespace=TECHNICAL_ID) if resource.namespaced else resource.path(name=TECHNICAL_ID)
    async with roads(meadow, tmp_path):
        meadow.create()
        await soon(lambda: found(meadow.seed.api.raw("GET", path)), f"the first of the {resource.plural}")
    confirm_and_delete(meadow)
    async with roads(meadow, tmp_path):
        await soon(lambda: meadow.garden.api.raw("GET", PATH)[0] == 404, "the Shoot to go", state=meadow.explain)
    assert not seen.states("Create").count("Succeeded")
    await is_gone(meadow)


def found(answer: tuple[int, bytes]) -> bool:
    """Whether it is an object, or a list that is not empty."""
    status, body = answer
    return status == 200 and json.loads(body).get("items") != []


def confirm_and_delete(meadow: Meadow) -> None:
    meadow.change({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}})
    meadow.garden.api.delete(PATH)


async def is_gone(meadow: Meadow) -> None:
    await soon(lambda: is_as_before(meadow), "all to be as before")


async def is_not_empty(meadow: Meadow, seen: Seen, road: Roads) -> None:
    """Whatever answers for what is in the cluster."""
    assert road.shoot is not None
    kinds, objects = "^/apis$", "/validatingwebhookconfigurations$"
    met = [(each, objects) for each in (Reset(), *STRANGERS, unavailable(), Truncated())]
    confirm_and_delete(meadow)
    for fault, path in (*met, (TEXT_404, kinds)):
        async with away(road.shoot, Rule(fault=fault, path=path)):
            before = seen.states("Delete").count("Error")
            await struck(road.shoot, 1)
            await soon(lambda: seen.states("Delete").count("Error") > before, "an error")  # noqa: B023 - at once
            (error,) = mappings(at(meadow.shoot(), "status", "lastErrors"))
            assert error["taskID"] == "Cleaning up webhooks", fault
        assert_all_is_there(meadow)


def api_servers(meadow: Meadow) -> list[Object]:
    deployments: list[Object] = meadow.seed.api.get(DEPLOYMENTS.path(namespace=TECHNICAL_ID))["items"]
    return [each for each in deployments if each["metadata"]["name"] == "kube-apiserver"]


def assert_all_is_there(meadow: Meadow) -> None:
    """Nothing of the Shoot goes before what is in it is gone."""
    api = meadow.seed.api
    assert not is_deleting(api.get(NAMESPACES.path(name=TECHNICAL_ID)))
    for resource in (DEPLOYMENTS, ETCDS, MANAGED_RESOURCES):
        found = api.get(resource.path(namespace=TECHNICAL_ID))["items"]
        assert found
        assert not [each for each in found if is_deleting(each)]
    assert meadow.cluster().get(HELD)


def is_as_before(meadow: Meadow) -> bool:
    assert meadow.processes() == []
    assert not meadow.seed.api.get(CONFIG_MAPS.path(namespace="garden", name=DNS)).get("data")
    for name, api in (("garden", meadow.garden.api), ("seed", meadow.seed.api)):
        assert set(inventory(api)) - set(BEFORE[name]) <= {f"ConfigMap. garden/{DNS}"}
    return True
