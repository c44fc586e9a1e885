"""Deletions that find something special; nothing is there but objects, and extensions are simulated."""

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.gardenlet.shoot.main.controller import declare
from agent.gardenlet.shoot.main.tasks import destruction
from devcluster.cluster import Cluster
from devcluster.testing.faults import Rule, Silence
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api.extensions import DNS_RECORDS, EXTENSIONS, INFRASTRUCTURES
from gardener.api.garden import EXPOSURE_CLASSES, SECRET_BINDINGS
from kit.eventually import soon
from kit.played_shoots import NAMESPACE, SEED, LeftShoot, PlayedPlace
from kit.proxied import proxied
from kube.objects import Object, is_deleting
from kube.paths import at
from kube.resources import CONFIG_MAPS, LEASES, NAMESPACES, SECRETS
from kube.runtime.connection import load_kubeconfig

pytestmark = [pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def place(devcluster_run: RunClusters) -> Iterator[PlayedPlace]:
    with Cluster() as own:
        yield PlayedPlace(own)


@pytest.mark.parametrize("seed", [SEED, ""], ids=["its seed", "an empty name"])
async def test_what_is_deleted_but_for_its_finalizer_goes_at_the_start(place: PlayedPlace, seed: str) -> None:
    ended = {"type": "Delete", "state": "Succeeded", "progress": 100, "description": "", "lastUpdateTime": TIME}
    left = LeftShoot(place, "a" if seed else "b", status={"lastOperation": ended, "seedName": seed})
    left.delete()
    async with place.gardenlet(declare, shoots=load_kubeconfig(place.cluster.kubeconfig)):
        await left.until_gone()


async def test_what_has_not_begun_to_move_is_deleted_where_it_is(place: PlayedPlace) -> None:
    left = LeftShoot(place, "c", seedName="another")
    left.create(NAMESPACES, left.namespace)
    left.delete()
    async with place.gardenlet(declare, shoots=load_kubeconfig(place.cluster.kubeconfig)), place.player():
        await left.until_gone()


async def test_the_handler_of_its_exposure_class_may_have_left_the_configuration(place: PlayedPlace) -> None:
    place.garden.create(EXPOSURE_CLASSES, "former", handler="former")
    left = LeftShoot(place, "e", exposureClassName="former")
    left.create(NAMESPACES, left.namespace)
    left.delete()
    async with place.gardenlet(declare, shoots=load_kubeconfig(place.cluster.kubeconfig)), place.player():
        await left.until_gone()


async def test_the_holder_of_its_namespace_is_named(place: PlayedPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a namespace that goes gets nothing new."""
    monkeypatch.setattr(destruction, "_NAMESPACE_SECONDS", 1.0)
    left = LeftShoot(place, "f")
    left.create(NAMESPACES, left.namespace)
    left.create(CONFIG_MAPS, "kept", metadata={"finalizers": ["example.com/held"]})
    left.delete()

    def errors() -> str:
        return str(left.shoot()["status"].get("lastErrors"))

    async with place.gardenlet(declare, shoots=load_kubeconfig(place.cluster.kubeconfig)), place.player():
        await soon(lambda: "not gone" in errors(), "the deletion to fail", state=errors)
        assert f"ConfigMap {left.namespace}/kept (waits for example.com/held)" in errors()
        place.garden.patch(CONFIG_MAPS, "kept", {"metadata": {"finalizers": None}}, namespace=left.namespace)
        await left.until_gone()


async def test_a_name_is_removed_with_the_credentials_of_today(place: PlayedPlace) -> None:
    left = LeftShoot(place, "d", dns={"domain": "d.local.external.example.com"})
    left.create(NAMESPACES, left.namespace)
    left.create(SECRETS, "dnsrecord-d-external", stringData={"token": "old"})
    spec = {
        "type": "local",
        "name": "api.d.local.external.example.com",
        "recordType": "A",
        "values": ["10.0.0.1"],
        "secretRef": {"name": "dnsrecord-d-external", "namespace": left.namespace},
    }
    left.create(DNS_RECORDS, "d-external", metadata={"finalizers": ["example.com/held"]}, spec=spec)
    place.garden.patch(SECRETS, "default", {"stringData": {"token": "new"}}, namespace=f"seed-{SEED}")
    left.delete()

    def going() -> Object | None:
        found = left.find(DNS_RECORDS, "d-external")
        return found if found and is_deleting(found) else None

    async with place.gardenlet(declare, shoots=load_kubeconfig(place.cluster.kubeconfig)):
        await soon(going, "the record to be deleted")
        secret = left.find(SECRETS, "dnsrecord-d-external")
        assert secret
        assert base64.b64decode(secret["data"]["token"]) == b"new"
        async with place.player():
            await left.until_gone()


@pytest.mark.parametrize("is_gone", [True, False], ids=["gone", "corrected"])
async def test_extensions_delete_with_the_credentials_that_there_are(place: PlayedPlace, is_gone: bool) -> None:
    """Also when the API server is gone already: those of today, or those in the seed if the garden has none."""
    name = "g" if is_gone else "h"
    pool = {"name": "pool", "machine": {"type": "small"}, "minimum": 1, "maximum": 1}
    workers = {"type": "local", "workers": [pool]}
    left = LeftShoot(place, name, secretBindingName=name, provider=workers, networking={"services": "10.4.0.0/16"})
    left.create(NAMESPACES, left.namespace)
    left.create(SECRETS, "cloudprovider", stringData={"token": "old"})
    spec = {"type": "local", "region": "local", "secretRef": {"name": "cloudprovider", "namespace": left.namespace}}
    left.create(INFRASTRUCTURES, name, metadata={"finalizers": ["example.com/held"]}, spec=spec)
    if not is_gone:
        place.garden.create(SECRETS, name, namespace=NAMESPACE, stringData={"token": "new"})
        reference = {"name": name, "namespace": NAMESPACE}
        provider = {"type": "local"}
        place.garden.create(SECRET_BINDINGS, name, namespace=NAMESPACE, provider=provider, secretRef=reference)
    left.delete()

    def going() -> bool:
        found = left.find(INFRASTRUCTURES, name)
        return found is not None and is_deleting(found)

    async with place.gardenlet(declare, shoots=load_kubeconfig(place.cluster.kubeconfig)), place.player():
        await soon(going, "the infrastructure to be deleted", state=lambda: left.shoot()["status"])
        secret = left.find(SECRETS, "cloudprovider")
        assert secret
        assert base64.b64decode(secret["data"]["token"]) == (b"old" if is_gone else b"new")
        place.garden.patch(INFRASTRUCTURES, name, {"metadata": {"finalizers": None}}, namespace=left.namespace)
        await left.until_gone()


@pytest.fixture
def many(place: PlayedPlace) -> list[LeftShoot]:
    """Whose extensions hold them. They are to go by force: what else a Seed has to have does not count."""
    found = [LeftShoot(place, f"many{number:02}", forced=True) for number in range(MANY)]
    for each in found:
        each.create(NAMESPACES, each.namespace)
        each.create(EXTENSIONS, "held", metadata={"finalizers": ["example.com/held"]}, spec={"type": "local"})
    return found


async def test_a_process_that_is_stopped_amid_many_leaves_them_to_the_next(
    place: PlayedPlace, many: list[LeftShoot], tmp_path: Path
) -> None:
    """Soon, and with its lease given back, though the API server does not answer all of its requests."""
    *waiting, unanswered = many
    silence = Rule(fault=Silence(), methods=("DELETE",), path=f"/{unanswered.namespace}/extensions/")
    async with proxied(place.cluster, tmp_path) as (proxy, _):
        proxy.rules.add(silence)
        # What is blocking here would keep the proxy from its work.
        with await asyncio.to_thread(lambda: place.process(tmp_path / "kubeconfig").start()) as process:
            for each in waiting:
                await asyncio.to_thread(each.delete)

            async def all_wait() -> bool:
                return await asyncio.to_thread(going, place) == len(waiting)

            await soon(all_wait, "extensions to be deleted", state=lambda: process.log)
            await asyncio.to_thread(unanswered.delete)
            await soon(lambda: proxy.injected["silence"], "a request without an answer", state=lambda: process.log)
            assert await asyncio.to_thread(holder, place)
            await asyncio.to_thread(process.stop)
    assert (process.exit_code, holder(place), LATE & {*process.messages()}) == (0, "", set())
    assert {at(each.shoot(), "status", "lastOperation", "state") for each in waiting} == {"Processing"}
    async with place.gardenlet(declare, shoots=load_kubeconfig(place.cluster.kubeconfig)), place.player():
        for each in many:
            await each.until_gone()


def going(place: PlayedPlace) -> int:
    """Extensions that are being deleted."""
    return sum(map(is_deleting, place.cluster.api.get(EXTENSIONS.path())["items"]))


def holder(place: PlayedPlace) -> str:
    """Of the gardenlet's lease."""
    lease = LEASES.path(namespace=NAMESPACE, name="gardenlet-leader-election")
    return str(place.cluster.api.get(lease)["spec"].get("holderIdentity") or "")


MANY = 10
"""Fewer than are worked on at a time when they are found at the start."""
LATE = {"Tasks did not stop in time", "Reconciliations did not stop in time"}
TIME = "2026-01-01T00:00:00Z"
