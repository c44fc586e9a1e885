"""Deletions that find something special; nothing is there but objects, and extensions are played."""

import base64
from collections.abc import Iterator

import pytest

from agent.gardenlet.shoot.main.controller import declare
from devcluster.cluster import Cluster
from devcluster.pytest_plugin import RunClusters
from gardener.api.extensions import DNS_RECORDS
from kit.eventually import soon
from kit.played_shoots import SEED, LeftShoot, PlayedPlace
from kube.objects import Object, is_deleting
from kube.resources import NAMESPACES, SECRETS
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


TIME = "2026-01-01T00:00:00Z"
