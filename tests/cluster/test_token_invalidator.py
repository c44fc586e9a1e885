"""Secrets of ServiceAccounts get the labels that the settings of these call for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest

from agent.resource_manager.token_invalidator import usage
from agent.resource_manager.token_invalidator.controller import declare
from agent.resource_manager.token_invalidator.rules import SECRET_TYPE, SERVICE_ACCOUNT_NAME
from config.resource_manager.controllers import Controllers, TokenInvalidator
from devcluster.audit import Audit
from gardener import keys
from kit.controllers import counted, run_controller
from kit.eventually import soon
from kit.objects import obj, pod
from kit.tokens import TokenWorld
from kube.objects import Object, labels
from kube.resources import SECRETS
from kube.runtime.client import Client
from kube.runtime.loop import ControlLoop

PURPOSE = {keys.PURPOSE: "token-invalidator"}
BOTH = {**PURPOSE, keys.TOKEN_INVALIDATOR_CONSIDER: "true"}


@pytest.fixture
def world(admin: Client, namespace: str) -> TokenWorld:
    return TokenWorld(admin, namespace)


@pytest.fixture
async def loop(client: Client, namespace: str) -> AsyncIterator[ControlLoop]:
    async with running(client, namespace) as started:
        yield started


def running(client: Client, namespace: str) -> AbstractAsyncContextManager[ControlLoop]:
    controllers = Controllers(token_invalidator=TokenInvalidator(enabled=True))
    return run_controller(declare, client, namespace, controllers=controllers)


async def account(world: TokenWorld, name: str = "sa", *, automount: bool | None = None, **labelled: str) -> None:
    automounts = {} if automount is None else {"automountServiceAccountToken": automount}
    await world.create(obj("ServiceAccount", name, labels=labelled, **automounts))


async def secret(world: TokenWorld, name: str = "s", *, of: str = "sa", type_: str = SECRET_TYPE) -> None:
    """Waits until Kubernetes has put a token into it."""
    await world.create(obj(SECRETS, name, annotations={SERVICE_ACCOUNT_NAME: of}, type=type_))
    if type_ == SECRET_TYPE:
        await world.until_token(name)


async def has(world: TokenWorld, wanted: dict[str, str], name: str = "s") -> None:
    async def is_so() -> bool:
        found = labels(await world.secret(name) or {})
        return {key: found[key] for key in (keys.PURPOSE, keys.TOKEN_INVALIDATOR_CONSIDER) if key in found} == wanted

    await soon(is_so, what=f"{wanted} on {name}")


def looks_again() -> float:
    """How often it was looked and will be looked again."""
    name = "controller_runtime_reconcile_total"
    return counted(name, controller="token-invalidator", result="requeue_after")


async def set_account(world: TokenWorld, body: Object) -> None:
    await world.patch("ServiceAccount", "sa", body)


@pytest.mark.parametrize(
    ("automount", "labelled", "wanted"),
    [
        (None, {}, PURPOSE),
        (True, {}, PURPOSE),
        (False, {}, BOTH),
        (False, {keys.TOKEN_INVALIDATOR_SKIP: "false"}, PURPOSE),
    ],
)
async def test_a_new_secret_is_labelled(
    automount: bool | None,
    labelled: dict[str, str],
    wanted: dict[str, str],
    world: TokenWorld,
    loop: ControlLoop,
) -> None:
    await account(world, automount=automount, **labelled)
    await secret(world)
    await has(world, wanted)


async def test_labels_follow_the_account(world: TokenWorld, loop: ControlLoop) -> None:
    await account(world, automount=False)
    await secret(world)
    await has(world, BOTH)
    await set_account(world, {"automountServiceAccountToken": True})
    await has(world, PURPOSE)
    await set_account(world, {"automountServiceAccountToken": False})
    await has(world, BOTH)
    await set_account(world, {"metadata": {"labels": {keys.TOKEN_INVALIDATOR_SKIP: ""}}})
    await has(world, PURPOSE)


async def test_a_secret_that_is_there_at_the_start_is_labelled(world: TokenWorld, client: Client) -> None:
    await account(world, automount=False)
    await secret(world)
    async with running(client, world.namespace):
        await has(world, BOTH)


async def test_a_secret_in_use_waits(world: TokenWorld, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "IN_USE_SECONDS", 0.2)
    await account(world, automount=False)
    await secret(world)
    volume = {"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}
    await world.create(pod("p", volumes=[volume]))
    async with running(client, world.namespace):
        await has(world, PURPOSE)
        looks = looks_again()
        await soon(lambda: looks_again() >= looks + 3, "three more looks")
        await has(world, PURPOSE)
        await world.delete("Pod", "p")
        await has(world, BOTH)


async def test_other_secrets_and_purposes_are_left_alone(world: TokenWorld, loop: ControlLoop) -> None:
    await account(world, automount=False)
    await secret(world, "opaque", type_="Opaque")
    await world.patch("Secret", "opaque", {"metadata": {"labels": {"touched": ""}}})
    of, marks = {SERVICE_ACCOUNT_NAME: "sa"}, {keys.PURPOSE: "token-requestor"}
    await world.create(obj(SECRETS, "requested", labels=marks, annotations=of, type=SECRET_TYPE))
    await has(world, {keys.PURPOSE: "token-requestor", keys.TOKEN_INVALIDATOR_CONSIDER: "true"}, "requested")
    await has(world, {}, "opaque")


async def test_in_steady_state_no_call_is_made(
    world: TokenWorld, loop: ControlLoop, audit: Audit, user_agent: str
) -> None:
    await account(world, automount=False)
    await secret(world)
    await has(world, BOTH)

    async def is_quiet() -> bool:
        mark = audit.mark()
        for _ in range(3):
            loop._watches[0].store.resync()
            await asyncio.sleep(0.2)
        return audit.count(since=mark, user_agent=user_agent) == {}

    await soon(is_quiet, what="rest")
    await has(world, BOTH)
