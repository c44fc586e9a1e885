"""What happens between a list and a deletion saves an object, and a list that fails saves all of them.

The moment is forced by a proxy that puts requests off (503, come back in a moment) until the test has done its part.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from agent.resource_manager.garbage_collector import RESOURCES, USERS, Reconciler
from config.resource_manager.controllers import GarbageCollector
from devcluster.testing.faults import STRANGERS, Answer, Fault, Reset, Rule, expired, internal_error, unavailable
from devcluster.testing.proxy import FaultProxy
from gardener.keys import GARBAGE_COLLECTABLE
from gardener.references import annotation_key
from kit.eventually import soon
from kit.objects import obj, unscheduled_pod
from kit.world import World
from kube.objects import Key, Object
from kube.resources import SECRETS
from kube.runtime.client import Client
from kube.runtime.controller import ReconcileError, RequeueAfter

LATER = timedelta(hours=1)
FORBIDDEN = Answer(name="forbidden", code=403, reason="Forbidden", message="not allowed")
PAUSE = unavailable(retry_after=3)
"""Four times until the client gives up: so long there is for what has to be done meanwhile."""
LISTS = [resource.plural for resource in (*RESOURCES.values(), *USERS)]


class GarbageWorld(World):
    """A namespace with Secrets that nothing refers to, and a round that talks through the proxy."""

    def __init__(self, admin: Client, proxied: Client, proxy: FaultProxy, namespace: str) -> None:
        super().__init__(admin, namespace)
        self.proxy = proxy
        self._reconciler = Reconciler(
            client=proxied,
            settings=GarbageCollector(),
            namespaces=[namespace],
            utcnow=lambda: datetime.now(UTC) + LATER,
        )

    async def round(self) -> None:
        assert await self._reconciler.reconcile(Key("", "round")) == RequeueAfter(3600)

    async def round_fails(self) -> str:
        with pytest.raises(ReconcileError) as caught:
            await self.round()
        return str(caught.value)

    async def create_secrets(self, *names: str) -> None:
        await asyncio.gather(*map(self.create, map(collectable, names)))

    async def while_put_off(self, rule: Rule, act: Callable[["GarbageWorld"], Awaitable[None]]) -> None:
        """A round whose requests of this rule only come through after the action."""
        self.proxy.rules.add(rule)
        running = asyncio.create_task(self.round())
        await soon(lambda: self.proxy.injected[rule.fault.name] or running.done(), "the fault to strike")
        assert not running.done(), "the round ended before the fault struck"
        await act(self)
        self.proxy.rules.clear()
        await running


def collectable(name: str) -> Object:
    return obj(SECRETS, name, labels={GARBAGE_COLLECTABLE: "true"})


@pytest.fixture
def world(
    admin: Client, proxied_client: Client, proxy: FaultProxy, namespace: str, managed_resources: None
) -> GarbageWorld:
    return GarbageWorld(admin, proxied_client, proxy, namespace)


# --- between list and deletion


async def make_anew(world: GarbageWorld) -> None:
    await world.delete("Secret", "a")
    await world.create(collectable("a"))


async def take_label(world: GarbageWorld) -> None:
    await world.patch("Secret", "a", {"metadata": {"labels": {GARBAGE_COLLECTABLE: None}}})


async def annotate(world: GarbageWorld) -> None:
    await world.patch("Secret", "a", {"metadata": {"annotations": {"seen": "yes"}}})


async def refer(world: GarbageWorld) -> None:
    await world.create(unscheduled_pod("p", annotations={annotation_key("secret", "a"): "a"}))


@pytest.mark.parametrize("act", [make_anew, take_label, annotate])
async def test_an_object_survives_that_changes_before_it_is_deleted(
    act: Callable[[GarbageWorld], Awaitable[None]], world: GarbageWorld
) -> None:
    await world.create_secrets("a", "b")
    await world.while_put_off(Rule(fault=PAUSE, methods=("DELETE",), path="/secrets/a$"), act)
    assert "a" in await world.names("Secret")
    assert "b" not in await world.names("Secret")


async def test_an_object_survives_that_is_referred_to_after_its_users_were_listed(world: GarbageWorld) -> None:
    await world.create_secrets("a", "b")
    last = Rule(fault=PAUSE, path=f"/{USERS[-1].plural}$", times=4)
    await world.while_put_off(last, refer)
    assert "a" in await world.names("Secret")
    assert "b" not in await world.names("Secret")


async def test_an_object_that_another_client_deletes_meanwhile_is_no_failure(world: GarbageWorld) -> None:
    async def delete(world: GarbageWorld) -> None:
        await world.delete("Secret", "a")

    await world.create_secrets("a")
    await world.while_put_off(Rule(fault=PAUSE, methods=("DELETE",)), delete)
    assert "a" not in await world.names("Secret")


# --- failures


@pytest.mark.parametrize("fault", [internal_error(), FORBIDDEN, Reset(), STRANGERS[0]], ids=lambda fault: fault.name)
@pytest.mark.parametrize("plural", LISTS)
async def test_nothing_is_deleted_if_a_list_fails(plural: str, fault: Fault, world: GarbageWorld) -> None:
    await world.create_secrets("a")
    # Nor does discovery report whether the kind is served.
    world.proxy.rules.add(Rule(fault=fault, methods=("GET",), path=f"/{plural}$|^/apis$"))
    message = await world.round_fails()
    kind = next((resource for resource in USERS if resource.plural == plural), None)
    expected = f"listing {plural}" if kind is None else f"listing objects of gvk {kind.group}/{kind.version}, Kind="
    assert message.startswith(f"failed {expected}")
    assert "a" in await world.names("Secret")
    world.proxy.rules.clear()
    await world.round()
    assert "a" not in await world.names("Secret")


@pytest.mark.parametrize("plural", [resource.plural for resource in USERS])
async def test_nothing_is_deleted_if_the_look_right_before_fails(plural: str, world: GarbageWorld) -> None:
    await world.create_secrets("a")
    world.proxy.rules.add(Rule(fault=internal_error(), methods=("GET",), path=f"/{plural}$", after=1))
    assert "failed listing objects of gvk" in await world.round_fails()
    assert "a" in await world.names("Secret")


async def test_nothing_is_deleted_if_a_later_page_fails(world: GarbageWorld) -> None:
    names = [f"s-{number}" for number in range(501)]
    await world.create_secrets(*names)
    world.proxy.rules.add(Rule(fault=expired(), query="continue="))
    assert (await world.round_fails()).startswith("failed listing secrets: ")
    assert await world.names("Secret") >= set(names)
    world.proxy.rules.clear()
    await world.round()
    assert not await world.names("Secret") & set(names)


async def test_the_others_go_on_if_some_can_not_be_deleted(world: GarbageWorld) -> None:
    await world.create_secrets("a", "b", "c")
    world.proxy.rules.add(Rule(fault=FORBIDDEN, methods=("DELETE",), path="/secrets/a$"))
    one = "Could not delete all unused resources: 1 error occurred: not allowed"
    assert await world.round_fails() == one
    assert not {"b", "c"} & await world.names("Secret")
    await world.create_secrets("b")
    world.proxy.rules.add(Rule(fault=FORBIDDEN, methods=("DELETE",)))
    several = "Could not delete all unused resources: 2 errors occurred: [not allowed, not allowed]"
    assert await world.round_fails() == several
