"""Seeds have a namespace in the garden, with copies of its Secrets that have a role."""

import base64
import uuid
from collections.abc import AsyncIterator

import pytest

from agent.controller_manager.seed.secrets import declare
from gardener.api.garden import SEEDS
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.errors import NotFound
from kube.objects import Key, Object, controller_of, labels, metadata, uid
from kube.resources import NAMESPACES, SECRETS
from kube.runtime.client import Client

pytestmark = pytest.mark.timeout(600)

GARDEN = "garden"


@pytest.fixture
async def client(garden: Garden) -> AsyncIterator[Client]:
    async with connected(garden.cluster) as client:
        yield client


class Copied:
    """A Secret of the garden, and its copy."""

    def __init__(self, client: Client, seed: str) -> None:
        self.client = client
        self.name = f"s{uuid.uuid4().hex[:6]}"
        self.namespace = f"seed-{seed}"

    async def create(self, **fields: object) -> None:
        meta = {"name": self.name, "namespace": GARDEN, "labels": {"gardener.cloud/role": "test", "a": "b"}}
        await self.client.create(SECRETS, {"metadata": meta, "stringData": {"key": "1"}, **fields})

    async def patch(self, body: Object) -> None:
        await self.client.patch(SECRETS, Key(GARDEN, self.name), body)

    async def delete(self) -> None:
        await self.client.delete(SECRETS, Key(GARDEN, self.name))

    async def copy(self) -> Object:
        return await self.client.get(SECRETS, Key(self.namespace, self.name))

    async def is_copied(self, value: str) -> None:
        async def found() -> bool:
            copy, source = await self.copy(), await self.client.get(SECRETS, Key(GARDEN, self.name))
            assert base64.b64decode(copy["data"]["key"]).decode() == value
            for field in ("data", "type", "immutable"):
                assert copy.get(field) == source.get(field)
            assert labels(copy) == labels(source)
            assert metadata(copy).get("annotations") == metadata(source).get("annotations")
            return True

        await soon(found, "the copy", passing=(NotFound,))

    async def is_gone(self) -> None:
        async def found() -> bool:
            return await self.client.find(SECRETS, Key(self.namespace, self.name)) is None

        await soon(found, "the end of the copy")


async def test_copies_are_as_their_sources(garden: Garden, client: Client) -> None:
    seed = ShootPlace(garden).seed()
    secret, frozen, other = (Copied(client, seed) for _ in range(3))
    await secret.create()
    await frozen.create(immutable=True)
    async with run_garden_controller(declare, client):
        for each in (secret, frozen):
            await each.is_copied("1")
        namespace = await client.get(NAMESPACES, f"seed-{seed}")
        assert labels(namespace)["gardener.cloud/role"] == "seed"
        assert (controller_of(namespace) or {})["uid"] == uid(await client.get(SEEDS, seed))

        await other.create(type="example.com/one")
        await other.is_copied("1")
        await secret.patch({"metadata": {"labels": {"a": None}, "annotations": {"x": "y"}}, "stringData": {"key": "2"}})
        await secret.is_copied("2")
        for each, fields in ((frozen, {"immutable": True}), (other, {"type": "example.com/two"})):
            # The API server refuses to change what is different.
            await each.delete()
            await each.create(stringData={"key": "3"}, **fields)
            await each.is_copied("3")

        await other.patch({"metadata": {"labels": {"gardener.cloud/role": None}}})
        await other.is_gone()
        await frozen.delete()
        await frozen.is_gone()
    await secret.delete()


async def test_what_is_changed_by_hand_is_corrected(garden: Garden, client: Client) -> None:
    seed = ShootPlace(garden).seed()
    secret, own, stray = (Copied(client, seed) for _ in range(3))
    await secret.create()
    async with run_garden_controller(declare, client):
        await secret.is_copied("1")
        changes: list[Object] = [
            {"data": {"key": "MA=="}},
            {"metadata": {"labels": {"gardener.cloud/role": None}}},
            {"metadata": {"labels": {"mine": "1"}}},
        ]
        for change in changes:
            await client.patch(SECRETS, Key(secret.namespace, secret.name), change)
            await secret.is_copied("1")
        await client.delete(SECRETS, Key(secret.namespace, secret.name))
        await secret.is_copied("1")

        meta: Object = {"name": own.name, "namespace": own.namespace}
        await client.create(SECRETS, {"metadata": meta})
        meta = {"name": stray.name, "namespace": own.namespace, "labels": {"gardener.cloud/role": "test"}}
        await client.create(SECRETS, {"metadata": meta})
        await stray.is_gone()
        assert await own.copy()

        name = f"seed-{seed}"
        await client.patch(NAMESPACES, name, {"metadata": {"labels": {"gardener.cloud/role": None}}})

        async def labelled() -> bool:
            return labels(await client.get(NAMESPACES, name)).get("gardener.cloud/role") == "seed"

        await soon(labelled, "the label of the namespace")
    await secret.delete()


async def test_the_namespace_of_another_client_is_left_alone(garden: Garden, client: Client) -> None:
    place = ShootPlace(garden)
    taken = f"seed-{place.name}"
    await client.create(NAMESPACES, {"metadata": {"name": taken}})
    secret, in_taken = Copied(client, f"{place.name}-b"), Copied(client, place.name)
    await secret.create()
    async with run_garden_controller(declare, client):
        place.seed()
        place.seed("-b")
        await secret.is_copied("1")
        in_taken.name = secret.name
        await in_taken.is_gone()
        assert "gardener.cloud/role" not in labels(await client.get(NAMESPACES, taken))
        place.delete(SEEDS, place.name)
    await secret.delete()


async def test_the_namespace_of_a_seed_goes_with_it_whatever_shoots_there_are(garden: Garden, client: Client) -> None:
    place = ShootPlace(garden)
    seed, namespace = place.seed(), f"seed-{place.name}"
    place.shoot()
    owner = SEEDS.reference(name=seed, uid=uid(await client.get(SEEDS, seed)))
    await client.create(NAMESPACES, {"metadata": {"name": namespace, "ownerReferences": [owner]}})
    role = {"gardener.cloud/role": "internal-domain"}
    await client.create(SECRETS, {"metadata": {"name": "internal-domain", "namespace": namespace, "labels": role}})
    garden.delete(SEEDS, seed)

    async def is_gone() -> bool:
        return await client.find(NAMESPACES, namespace) is None

    await soon(is_gone, "the namespace to go")
