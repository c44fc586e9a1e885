"""A gardenlet registers its Seed, and takes over what its predecessor has left; the garden is its own seed here."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agent.controller_manager.certificate_signing_request import declare
from agent.gardenlet.bootstrap.left_over_operations import LeftOverOperations
from agent.gardenlet.bootstrap.registration import Registration
from agent.gardenlet.bootstrap.rules.certificate import gardenlet_of
from agent.gardenlet.bootstrap.rules.registration import MARKER, finalised_marker
from agent.gardenlet.bootstrap.signing import certificate_for
from devcluster.testing.faults import STRANGERS, Answer, Foreign, Rule
from devcluster.testing.proxy import FaultProxy
from gardener.api.garden import SEEDS, SHOOTS
from kit.garden import CONFIRMED, Garden
from kit.garden_controllers import run_garden_controller
from kit.garden_shoots import ShootPlace
from kit.gardenlet_bootstrap import QUICK, Entry
from kit.proxied import proxy_to
from kit.world import connected
from kube.objects import Key, Object, labels, resource_version
from kube.paths import at
from kube.resources import CONFIG_MAPS
from kube.runtime.client import Client
from process.runner import StartError

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def entry(garden: Garden) -> Entry:
    return Entry(garden, garden.cluster)


@pytest.fixture
async def client(garden: Garden) -> AsyncIterator[Client]:
    async with connected(garden.cluster, "gardenlet/test") as client:
        yield client


def registration(entry: Entry, client: Client, configured: Object | None = None) -> Registration:
    return Registration(garden=client, seed=client, configured=configured or entry.seed_config, pace=QUICK)


def labelled(entry: Entry, **labels: str) -> Object:
    configured = entry.seed_config
    return {**configured, "metadata": {**configured["metadata"], "labels": labels}}


# --- the Seed


async def test_a_seed_is_registered_once_and_not_written_again(entry: Entry, client: Client) -> None:
    await registration(entry, client).register()
    before = entry.registered()
    assert labels(before)["gardener.cloud/role"] == "seed"
    again = await registration(entry, client).register()
    assert resource_version(again) == resource_version(before)


async def test_labels_of_others_stay_and_those_of_a_former_configuration_go(entry: Entry, client: Client) -> None:
    await registration(entry, client, labelled(entry, old="1")).register()
    entry.garden.patch(SEEDS, entry.name, {"metadata": {"labels": {"theirs": "x"}}})
    await registration(entry, client, labelled(entry, new="1")).register()
    found = labels(entry.registered())
    assert {name: found.get(name) for name in ("old", "new", "theirs")} == {"old": None, "new": "1", "theirs": "x"}
    assert found[f"provider.extensions.gardener.cloud/{entry.name}"] == "true", "the garden's own"


async def test_a_seed_that_the_garden_refuses_is_an_error_with_its_text(entry: Entry, client: Client) -> None:
    await registration(entry, client).register()
    changed = entry.seed_config
    changed["spec"]["networks"]["pods"] = "10.128.0.0/16"
    with pytest.raises(StartError, match=rf'could not register seed "{entry.name}": .*field is immutable'):
        await registration(entry, client, changed).register()


async def test_without_a_namespace_the_seed_stays_and_the_start_fails(garden: Garden, client: Client) -> None:
    entry = Entry(garden, garden.cluster, has_namespace=False)
    with pytest.raises(StartError, match=f'namespace "seed-{entry.name}".*context deadline exceeded'):
        await registration(entry, client).register()
    assert entry.registered()
    entry.make_namespace(f"seed-{entry.name}")
    await registration(entry, client).register()


async def test_a_seed_that_was_finalised_here_is_not_registered_by_a_restart(entry: Entry, client: Client) -> None:
    seed = await registration(entry, client).register()
    await client.delete_if_exists(CONFIG_MAPS, Key("garden", MARKER))
    await client.create(CONFIG_MAPS, finalised_marker(seed, entry.seed_config))
    entry.garden.patch(SEEDS, entry.name, CONFIRMED)
    entry.garden.delete(SEEDS, entry.name)

    waiting = asyncio.ensure_future(registration(entry, client).register())
    with capture_logs() as logged:
        await asyncio.sleep(0.5)
    assert not waiting.done()
    assert not _is_there(entry)
    assert len([each for each in logged if "not registered again" in each["event"]]) == 1
    # Another configuration is a reason; and then it is not remembered any more.
    await registration(entry, client, labelled(entry, new="1")).register()
    assert _is_there(entry)
    assert not entry.config_map(MARKER)
    await waiting


def _is_there(entry: Entry) -> bool:
    status: int = entry.garden.cluster.api.raw("GET", SEEDS.path(name=entry.name))[0]
    return status == 200


# --- what a predecessor left


async def test_an_operation_that_can_not_be_marked_at_once_is_marked_later_and_stops_nothing(
    garden: Garden, tmp_path: Path
) -> None:
    place = ShootPlace(garden)
    seed = place.seed()
    for name in ("a", "b"):
        place.shoot(name, seedName=seed)
        left = {"type": "Reconcile", "state": "Processing", "progress": 40, "description": "d"}
        left["lastUpdateTime"] = "2024-01-01T00:00:00Z"
        place.patch(SHOOTS, name, {"status": {"lastOperation": left}}, status=True)
    async with proxy_to(garden.cluster) as proxy:
        proxy.write_kubeconfig(tmp_path / "kubeconfig", token=garden.cluster.token)
        busy = Answer(name="busy", code=500, reason="InternalError", message="etcdserver: too slow")
        proxy.rules.add(Rule(fault=busy, path="/shoots/a/status$", methods=("PATCH",), times=2))
        async with connected(tmp_path / "kubeconfig") as client:
            await LeftOverOperations(garden=client, seed_name=seed, pace=QUICK).abort()
        assert proxy.rules.hits == 2
    found = [at(garden.get(SHOOTS, each, namespace=place.namespace), "status", "lastOperation") for each in "ab"]
    assert [each["state"] for each in found] == ["Aborted", "Aborted"]
    assert [each["progress"] for each in found] == [40, 40]


# --- strangers on the way


@pytest.fixture
async def proxy(garden: Garden) -> AsyncIterator[FaultProxy]:
    async with proxy_to(garden.cluster) as running:
        yield running


@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda each: each.name)
async def test_what_a_proxy_answers_does_not_end_the_way_into_the_garden(
    garden: Garden, proxy: FaultProxy, tmp_path: Path, stranger: Foreign
) -> None:
    entry = Entry(garden, garden.cluster, server=proxy.url)
    (tmp_path / "bootstrap").write_bytes(entry.with_token(entry.token_id))
    proxy.write_kubeconfig(tmp_path / "operator", token=garden.cluster.token)
    for rule in (
        Rule(fault=stranger, path="/certificatesigningrequests", times=2),
        Rule(fault=stranger, path="/certificatesigningrequests/", methods=("GET",), times=2),
        Rule(fault=stranger, path=f"/(seeds|namespaces)(/seed-)?(/?{entry.name})?$", times=3),
    ):
        proxy.rules.add(rule)
    async with (
        connected(garden.cluster) as operator,
        run_garden_controller(declare, operator),
        connected(tmp_path / "bootstrap") as bootstrap,
        connected(tmp_path / "operator", "gardenlet/test") as client,
    ):
        issued = await certificate_for(bootstrap, gardenlet_of(entry.name), seconds=None, pace=QUICK)
        assert issued.user == f"system:bootstrap:{entry.token_id}"
        await registration(entry, client).register()
    assert proxy.rules.hits >= 5
