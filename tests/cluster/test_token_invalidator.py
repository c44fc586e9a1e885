"""Secrets of ServiceAccounts get the labels that the settings of these call for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from agent_clusters import at_work, cluster_of, context_of
from token_world import World, user_agent

from agent.token_invalidator import controller, keys
from agent.token_invalidator.controller import TokenInvalidatorLoop
from config.schema_controllers import Controllers, TokenInvalidator
from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kube.client import Client, Transport
from kube.connection import load_kubeconfig
from kube.objects import Object, labels
from kube.resources import SECRETS, SERVICE_ACCOUNTS, Resource

PODS = Resource("", "v1", "Pod", "pods", namespaced=True)
PURPOSE = {keys.PURPOSE: "token-invalidator"}
BOTH = {**PURPOSE, keys.CONSIDER: "true"}


@pytest.fixture
async def transport(cluster: Cluster) -> AsyncIterator[Transport]:
    async with Transport(load_kubeconfig(cluster.kubeconfig)) as opened:
        yield opened


@pytest.fixture
def agent() -> str:
    return user_agent()


@pytest.fixture
def world(transport: Transport, namespace: str) -> World:
    return World(Client(transport, user_agent="test"), namespace)


@pytest.fixture
async def loop(transport: Transport, namespace: str, agent: str) -> AsyncIterator[TokenInvalidatorLoop]:
    async with _loop(Client(transport, user_agent=agent), namespace) as started:
        yield started


@asynccontextmanager
async def _loop(client: Client, namespace: str) -> AsyncIterator[TokenInvalidatorLoop]:
    made = context_of(cluster_of(client, namespace), Controllers(token_invalidator=TokenInvalidator(enabled=True)))
    started = TokenInvalidatorLoop(made)
    async with at_work(made, started):
        yield started


async def account(world: World, name: str = "sa", *, automount: bool | None = None, **labelled: str) -> None:
    obj: Object = {"metadata": {"namespace": world.namespace, "name": name, "labels": labelled}}
    if automount is not None:
        obj["automountServiceAccountToken"] = automount
    await world.client.create(SERVICE_ACCOUNTS, obj)


async def secret(world: World, name: str = "s", *, of: str = "sa", type_: str = keys.SECRET_TYPE) -> None:
    """Waits until Kubernetes has put a token into it."""
    meta = {"namespace": world.namespace, "name": name, "annotations": {keys.SERVICE_ACCOUNT_NAME: of}}
    await world.client.create(SECRETS, {"metadata": meta, "type": type_})
    if type_ == keys.SECRET_TYPE:
        await world.until_token(name)


async def has(world: World, wanted: dict[str, str], name: str = "s") -> None:
    async def is_so() -> bool:
        found = labels(await world.secret(name) or {})
        return {key: found[key] for key in (keys.PURPOSE, keys.CONSIDER) if key in found} == wanted

    await world.until(is_so, what=f"{wanted} on {name}")


async def set_account(world: World, body: Object) -> None:
    await world.client.patch(SERVICE_ACCOUNTS, "sa", body, namespace=world.namespace)


@pytest.mark.parametrize(
    ("automount", "labelled", "wanted"),
    [
        (None, {}, PURPOSE),
        (True, {}, PURPOSE),
        (False, {}, BOTH),
        (False, {keys.SKIP: "false"}, PURPOSE),
    ],
)
async def test_a_new_secret_is_labelled(
    automount: bool | None, labelled: dict[str, str], wanted: dict[str, str], world: World, loop: TokenInvalidatorLoop
) -> None:
    await account(world, automount=automount, **labelled)
    await secret(world)
    await has(world, wanted)


async def test_labels_follow_the_account(world: World, loop: TokenInvalidatorLoop) -> None:
    await account(world, automount=False)
    await secret(world)
    await has(world, BOTH)
    await set_account(world, {"automountServiceAccountToken": True})
    await has(world, PURPOSE)
    await set_account(world, {"automountServiceAccountToken": False})
    await has(world, BOTH)
    await set_account(world, {"metadata": {"labels": {keys.SKIP: ""}}})
    await has(world, PURPOSE)


async def test_a_secret_that_is_there_at_the_start_is_labelled(world: World, transport: Transport) -> None:
    await account(world, automount=False)
    await secret(world)
    async with _loop(Client(transport, user_agent="x"), world.namespace):
        await has(world, BOTH)


async def test_a_secret_in_use_waits(world: World, transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "IN_USE_SECONDS", 0.2)
    await account(world, automount=False)
    await secret(world)
    volume = {"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume], "terminationGracePeriodSeconds": 0}
    meta = {"namespace": world.namespace, "name": "p"}
    await world.client.create(PODS, {"metadata": meta, "spec": spec})
    async with _loop(Client(transport, user_agent="x"), world.namespace):
        await has(world, PURPOSE)
        await asyncio.sleep(1)
        await has(world, PURPOSE)
        await world.client.delete(PODS, "p", namespace=world.namespace)
        await has(world, BOTH)


async def test_other_secrets_and_purposes_are_left_alone(world: World, loop: TokenInvalidatorLoop) -> None:
    await account(world, automount=False)
    await secret(world, "opaque", type_="Opaque")
    await world.client.patch(SECRETS, "opaque", {"metadata": {"labels": {"touched": ""}}}, namespace=world.namespace)
    meta = {
        "namespace": world.namespace,
        "name": "requested",
        "labels": {keys.PURPOSE: "token-requestor"},
        "annotations": {keys.SERVICE_ACCOUNT_NAME: "sa"},
    }
    await world.client.create(SECRETS, {"metadata": meta, "type": keys.SECRET_TYPE})
    await has(world, {keys.PURPOSE: "token-requestor", keys.CONSIDER: "true"}, "requested")
    await has(world, {}, "opaque")


async def test_at_rest_nothing_is_asked(world: World, loop: TokenInvalidatorLoop, audit: Audit, agent: str) -> None:
    await account(world, automount=False)
    await secret(world)
    await has(world, BOTH)

    async def is_quiet() -> bool:
        mark = audit.mark()
        for _ in range(3):
            loop._secrets.resync()
            await asyncio.sleep(0.2)
        return audit.count(since=mark, user_agent=agent) == {}

    await world.until(is_quiet, what="rest")
    await has(world, BOTH)
