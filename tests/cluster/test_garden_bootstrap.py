"""What the controller manager makes in a fresh garden, for programs that need it, and what it leaves alone."""

import base64
import hashlib
from collections.abc import AsyncIterator

import pytest

from agent.controller_manager.bootstrap import prepare
from gardenapi.api import AggregatedApi, PlainApi
from kit.garden import Garden
from kit.objects import decoded, secret
from kit.world import connected
from kube.clock import utc_now
from kube.objects import Key, Object, labels, metadata, uid
from kube.resources import CONFIG_MAPS, NAMESPACES, SECRETS
from kube.runtime.client import Client, Selection

ROLE = "gardener.cloud/role"
OF_MONITORING = Selection(namespace="garden", label_selector=f"{ROLE}=global-monitoring")
IDENTITY = "cluster-identity"


@pytest.fixture
async def client(garden: Garden) -> AsyncIterator[Client]:
    """Of a garden in which neither is there, before and after the test."""
    async with connected(garden.cluster) as client:
        await clear(client)
        yield client
        await clear(client)


async def clear(client: Client) -> None:
    for each in await of_monitoring(client):
        await client.delete(SECRETS, Key("garden", metadata(each)["name"]))
    await client.delete_if_exists(CONFIG_MAPS, Key("kube-system", IDENTITY))


async def of_monitoring(client: Client) -> list[Object]:
    return [each async for page in client.pages(SECRETS, OF_MONITORING) for each in page]


async def test_a_fresh_garden_gets_what_gardenlets_need(client: Client) -> None:
    await prepare(client, PlainApi(client), now=utc_now())
    (monitoring,) = await of_monitoring(client)
    data = decoded(monitoring)
    digest = base64.b64encode(hashlib.sha1(data["password"].encode(), usedforsecurity=False).digest()).decode()
    assert (data["username"], len(data["password"]), data["auth"]) == ("admin", 32, f"admin:{{SHA}}{digest}")
    of_manager = {
        "name": "observability-ingress",
        "managed-by": "secrets-manager",
        "manager-identity": "controller-manager",
    }
    assert of_manager.items() <= labels(monitoring).items()
    assert monitoring["immutable"] is True
    identity = await client.get(CONFIG_MAPS, Key("kube-system", IDENTITY))
    assert identity["data"][IDENTITY] == uid(await client.get(NAMESPACES, "kube-system"))
    await client.get(NAMESPACES, "gardener-system-shoot-issuer")


async def test_what_is_there_stays_as_it_is(client: Client) -> None:
    await client.create(SECRETS, secret("garden/given", {"username": "u"}, labels={ROLE: "global-monitoring"}))
    given = {"metadata": {"name": IDENTITY, "namespace": "kube-system"}, "data": {IDENTITY: "mine"}}
    await client.create(CONFIG_MAPS, given)
    await prepare(client, PlainApi(client), now=utc_now())
    assert [metadata(each)["name"] for each in await of_monitoring(client)] == ["given"]
    assert (await client.get(CONFIG_MAPS, Key("kube-system", IDENTITY)))["data"] == given["data"]


async def test_a_second_start_makes_nothing(client: Client) -> None:
    await prepare(client, PlainApi(client), now=utc_now())
    (before,) = await of_monitoring(client)
    await prepare(client, PlainApi(client), now=utc_now())
    assert await of_monitoring(client) == [before]


async def test_the_originals_api_server_makes_the_identity_itself(client: Client) -> None:
    await prepare(client, AggregatedApi(client), now=utc_now())
    assert await of_monitoring(client)
    assert await client.find(CONFIG_MAPS, Key("kube-system", IDENTITY)) is None
