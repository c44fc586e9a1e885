"""The Secret `cloudprovider` of a Shoot, whatever its binding names."""

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from agent.gardenlet.common.component_objects import ComponentObjects
from agent.gardenlet.common.managed_resource_writes import ManagedResourceWrites
from agent.gardenlet.shoot.main.tasks import infrastructure
from gardener import keys
from gardener.api.garden import CREDENTIALS_BINDINGS, WORKLOAD_IDENTITIES
from kit.controllers import cluster_of
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_shoots import ShootPlace
from kit.shoot_components import bare_operation
from kit.world import connected
from kube.objects import Key, Object, annotations, labels
from kube.resources import NAMESPACES, SECRETS
from kube.runtime.client import Client
from kube.runtime.waiting import Waiting

TOKEN, RENEWAL = {"token": base64.b64encode(b"token").decode()}, "2100-01-01T00:00:00Z"


@dataclass(frozen=True)
class Field:
    place: ShootPlace
    client: Client
    operation: dict[str, Any]
    namespace: str

    def bind(self, resource: Any, name: str) -> None:
        """A binding of this name."""
        reference = {"apiVersion": resource.api_version, "kind": resource.kind, "name": name}
        self.place.create(
            CREDENTIALS_BINDINGS,
            name,
            provider={"type": self.place.name},
            credentialsRef={**reference, "namespace": self.place.namespace},
        )

    async def deploy(self, binding: str) -> None:
        shoot = {
            "metadata": {"name": "s", "namespace": self.place.namespace, "uid": "u"},
            "spec": {"credentialsBindingName": binding},
        }
        await infrastructure.credentials(bare_operation(**self.operation, shoot=shoot))

    async def secret(self) -> Object:
        return await self.client.get(SECRETS, Key(self.namespace, "cloudprovider"))


@pytest.fixture
async def field(garden: Garden) -> AsyncIterator[Field]:
    place = ShootPlace(garden)
    namespace = f"shoot--{place.name}--s"
    garden.create(NAMESPACES, namespace)
    # As a gardenlet is called: who has written what counts.
    async with connected(garden.cluster, "gardenlet/test") as client:
        cluster = cluster_of(client)
        objects = ComponentObjects(cluster, scope="shoot", writes=ManagedResourceWrites())
        waiting = Waiting(client=client, caches=cluster.caches, discovery=cluster.discovery)
        operation = {"garden": cluster, "seed": cluster, "objects": objects, "waiting": waiting}
        yield Field(place, client, operation | {"technical_id": namespace}, namespace)
        await objects.close()
        await cluster.caches.close()
    place.remove()


async def test_a_token_stays_until_there_are_other_credentials(field: Field) -> None:
    place = field.place
    system = {"type": place.name, "providerConfig": {"role": "r"}}
    place.create(WORKLOAD_IDENTITIES, "tokens", spec={"audiences": ["a"], "targetSystem": system})
    field.bind(WORKLOAD_IDENTITIES, "tokens")
    field.bind(SECRETS, place.name)
    await field.deploy(place.name)
    static = await field.secret()
    assert set(static["data"]) == {"key"}

    deploying = asyncio.create_task(field.deploy("tokens"))

    async def wants_token() -> bool:
        return keys.SECURITY_PURPOSE in labels(await field.secret())

    await soon(wants_token, "a token to be requested")
    assert not deploying.done()
    notes = {keys.WORKLOAD_IDENTITY_RENEW_TIMESTAMP: RENEWAL}
    body = {"metadata": {"annotations": notes}, "data": TOKEN}
    left = await field.client.patch(SECRETS, Key(field.namespace, "cloudprovider"), body)
    await deploying
    assert set(left["data"]) == {"config", "token"}
    await field.deploy("tokens")
    assert await field.secret() == left

    async def is_as_before() -> bool:
        await field.deploy(place.name)
        found = await field.secret()
        assert found["data"] == static["data"]
        assert (labels(found), annotations(found)) == (labels(static), annotations(static))
        return True

    await soon(is_as_before, "nothing of the token to be left")
