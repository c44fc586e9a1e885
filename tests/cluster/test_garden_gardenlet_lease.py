"""The heartbeat of a gardenlet: the Lease of its Seed, the condition, and its own health."""

import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agent.gardenlet.context import Context
from agent.gardenlet.seed.lease import declare
from config.gardenlet.controllers import Controllers, Seed
from devcluster.testing.faults import Answer, Rule
from devcluster.testing.proxy import FaultProxy
from gardener.api.garden import SEEDS
from gardener.garden.seeds import LEASE_NAMESPACE
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_shoots import ShootPlace
from kit.gardenlet_controllers import gardenlet_at_work, gardenlet_config, gardenlet_context
from kit.proxied import proxy_to
from kit.world import connected
from kube.clock import format_time, utc_now
from kube.errors import AlreadyExists, NotFound
from kube.objects import Object, condition, spec
from kube.resources import LEASES, NAMESPACES
from process.probes import CheckFailed

pytestmark = pytest.mark.timeout(600)

READY = "GardenletReady"
EACH_SECOND = Controllers(seed=Seed(lease_resync_seconds=1, lease_resync_miss_threshold=600))


@pytest.fixture
def place(garden: Garden) -> ShootPlace:
    with contextlib.suppress(AlreadyExists):
        garden.create(NAMESPACES, LEASE_NAMESPACE)
    return ShootPlace(garden)


@pytest.fixture
async def proxy(garden: Garden) -> AsyncIterator[FaultProxy]:
    """Between the gardenlet and its seed, which is the garden as well."""
    async with proxy_to(garden.cluster) as running:
        yield running


@pytest.fixture
async def context(place: ShootPlace, proxy: FaultProxy, tmp_path: Path) -> AsyncIterator[Context]:
    name = place.seed()
    proxy.write_kubeconfig(tmp_path / "seed", token=place.garden.cluster.token)
    async with (
        connected(place.garden.cluster, f"garden-of-{name}") as garden,
        connected(tmp_path / "seed", f"seed-of-{name}") as seed,
    ):
        config = gardenlet_config(name, controllers=EACH_SECOND)
        yield await gardenlet_context(garden=garden, seed=seed, config=config, as_gardenlet=True)


async def problem(context: Context) -> str:
    """What `/healthz` reports; empty: nothing."""
    try:
        await context.health.check.run()
    except CheckFailed as error:
        return str(error)
    return ""


def lease_of(place: ShootPlace) -> Object | None:
    try:
        return place.garden.get(LEASES, place.name, namespace=LEASE_NAMESPACE)
    except NotFound:
        return None


async def renewed(place: ShootPlace) -> Object:
    """The Lease after another renewal."""
    before = spec(lease_of(place) or {}).get("renewTime") or ""

    def found() -> Object | None:
        lease = lease_of(place)
        return lease if lease is not None and (spec(lease).get("renewTime") or "") > before else None

    lease: Object = await soon(found, "the Lease to be renewed")
    return lease


async def test_a_lease_is_made_kept_and_made_again(place: ShootPlace, context: Context) -> None:
    async with gardenlet_at_work(context, declare):
        lease = await renewed(place)
        assert lease["spec"]["holderIdentity"] == place.name
        assert lease["spec"]["leaseDurationSeconds"] == 1
        assert [each["kind"] for each in lease["metadata"]["ownerReferences"]] == ["Seed"]
        changed: Object = {
            "metadata": {"labels": {"theirs": "x"}, "ownerReferences": None},
            "spec": {"holderIdentity": "other", "leaseDurationSeconds": 77},
        }
        place.garden.patch(LEASES, place.name, changed, namespace=LEASE_NAMESPACE)
        await renewed(place)
        lease = await renewed(place)
        assert lease["spec"]["holderIdentity"] == place.name
        assert lease["spec"]["leaseDurationSeconds"] == 1
        assert lease["metadata"]["labels"] == {"theirs": "x"}
        assert [each["name"] for each in lease["metadata"]["ownerReferences"]] == [place.name]
        place.garden.delete(LEASES, place.name, namespace=LEASE_NAMESPACE)
        await renewed(place)
        assert await problem(context) == ""


async def test_the_condition_is_restored_and_others_stay(place: ShootPlace, context: Context) -> None:
    async with gardenlet_at_work(context, declare):
        await soon(lambda: condition(place.get(SEEDS, place.name), READY), "the condition")
        times = dict.fromkeys(("lastTransitionTime", "lastUpdateTime"), format_time(utc_now()))
        conditions = [
            {"type": READY, "status": "Unknown", "reason": "SeedStatusUnknown", "message": "m", **times},
            {"type": "Theirs", "status": "True", "reason": "R", "message": "m", **times},
        ]
        place.patch(SEEDS, place.name, {"status": {"conditions": conditions}}, status=True)

        def is_restored() -> bool:
            found = {each["type"]: each for each in place.get(SEEDS, place.name)["status"]["conditions"]}
            assert found["Theirs"]["status"] == "True"
            return bool(found[READY]["status"] == "True" and found[READY]["reason"] == "GardenletReady")

        await soon(is_restored, "the condition to be restored")


async def test_steady_state_costs_one_call_to_each_cluster_a_period(
    place: ShootPlace, context: Context, proxy: FaultProxy
) -> None:
    audit = place.garden.cluster.audit()
    async with gardenlet_at_work(context, declare):
        await renewed(place)
        await soon(lambda: condition(place.get(SEEDS, place.name), READY), "the condition")
        await renewed(place)
        since, sent = audit.mark(), len(proxy.log)
        for _ in range(3):
            await renewed(place)
        garden = audit.count(since=since, user_agent=f"garden-of-{place.name}", leases=True)
        seed = {(each.request.method, each.request.path) for each in [*proxy.log][sent:]}
    audit.close()
    assert set(garden) == {("patch", "leases")}
    assert seed == {("GET", "/healthz")}


async def test_a_seed_that_does_not_answer_is_reported_at_once(
    place: ShootPlace, context: Context, proxy: FaultProxy
) -> None:
    with capture_logs() as logs:
        await outage(place, context, proxy)
    logged = [each["event"] for each in logs]
    assert logged.count("Reconciler error") == 1, "it is not logged every two seconds"
    assert logged.count("The Lease of the Seed is renewed again") == 1


async def outage(place: ShootPlace, context: Context, proxy: FaultProxy) -> None:
    """It is reported meanwhile."""
    async with gardenlet_at_work(context, declare):
        await renewed(place)
        away = Answer(name="away", code=503, reason="", message="no healthy upstream", plain=True)
        proxy.rules.add(Rule(fault=away, path="/healthz$"))
        await soon(lambda: problem(context), "the problem to be reported")
        assert f"{LEASE_NAMESPACE}/{place.name}" in await problem(context)
        for _ in range(3):
            await probed(proxy)
        proxy.rules.clear()

        async def is_well() -> bool:
            return await problem(context) == ""

        await soon(is_well, "the gardenlet to be well again")


async def test_without_a_seed_there_is_no_lease_and_no_problem(
    place: ShootPlace, context: Context, proxy: FaultProxy
) -> None:
    async with gardenlet_at_work(context, declare):
        await renewed(place)
        place.delete(SEEDS, place.name)
        with contextlib.suppress(NotFound):
            place.patch(SEEDS, place.name, {"metadata": {"finalizers": None}})
        await soon(lambda: place.find(SEEDS, place.name) is None, "the Seed to go")
        await probed(proxy)
        with contextlib.suppress(NotFound):
            place.garden.delete(LEASES, place.name, namespace=LEASE_NAMESPACE)
        await probed(proxy)
        assert await problem(context) == ""
        assert lease_of(place) is None


async def probed(proxy: FaultProxy) -> None:
    """Returns after a pass that began now."""
    for _ in range(2):
        await soon(partial(has_probe, proxy, len(proxy.log)), "a pass")


def has_probe(proxy: FaultProxy, since: int) -> bool:
    return any(each.request.path == "/healthz" for each in [*proxy.log][since:])
