"""ServiceAccounts in the namespaces of Seeds get the rights of ClusterRoles that select them."""

import json
import uuid
from collections.abc import AsyncIterator

import pytest

from agent.controller_manager.controller_registration.extension_cluster_role import declare
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.world import connected
from kube.errors import NotFound
from kube.objects import Key, Object, controller_of, uid
from kube.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, NAMESPACES, SERVICE_ACCOUNTS
from kube.runtime.client import Client

pytestmark = pytest.mark.timeout(600)

GROUP = "authorization.gardener.cloud"


@pytest.fixture
async def client(garden: Garden) -> AsyncIterator[Client]:
    async with connected(garden.cluster) as client:
        yield client


async def test_subjects_are_those_that_are_selected(client: Client) -> None:
    name = f"test-{uuid.uuid4().hex[:6]}"
    first, second, other = f"seed-{name}", f"seed-{name}-b", f"other-{name}"
    for namespace in (first, second, other):
        await client.create(NAMESPACES, {"metadata": {"name": namespace}})

    async def account(namespace: str, of: str, label: str) -> None:
        meta = {"name": of, "namespace": namespace, "labels": {"app": label}}
        await client.create(SERVICE_ACCOUNTS, {"metadata": meta})

    async def has(*expected: str) -> Object:
        async def found() -> bool:
            binding = await client.get(CLUSTER_ROLE_BINDINGS, name)
            subjects = binding.get("subjects") or []
            assert [f"{each['namespace']}/{each['name']}" for each in subjects] == list(expected)
            return True

        await soon(found, f"the subjects {expected}", passing=(NotFound,))
        return await client.get(CLUSTER_ROLE_BINDINGS, name)

    await account(second, "a", name)
    await account(first, "b", name)
    await account(other, "a", name)
    meta = {
        "name": name,
        "labels": {f"{GROUP}/custom-extensions-permissions": "true"},
        "annotations": {f"{GROUP}/extensions-serviceaccount-selector": json.dumps({"matchLabels": {"app": name}})},
    }
    role = await client.create(CLUSTER_ROLES, {"metadata": meta, "rules": []})
    async with run_garden_controller(declare, client):
        binding = await has(f"{first}/b", f"{second}/a")
        assert (controller_of(binding) or {})["uid"] == uid(role)
        assert binding["roleRef"]["name"] == name
        await account(first, "a", name)
        await has(f"{first}/a", f"{first}/b", f"{second}/a")
        patch: Object = {"metadata": {"labels": {"app": "other"}}}
        await client.patch(SERVICE_ACCOUNTS, Key(first, "b"), patch)
        await client.delete(SERVICE_ACCOUNTS, Key(second, "a"))
        await has(f"{first}/a")
        await client.patch(CLUSTER_ROLE_BINDINGS, name, {"subjects": None})
        await has(f"{first}/a")
        await client.delete(CLUSTER_ROLE_BINDINGS, name)
        await has(f"{first}/a")
