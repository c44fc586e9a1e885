"""What happens between a list and a deletion saves an object, and a list that fails saves all of them.

The moment is forced by a proxy that puts requests off (503, come back in a moment) until the test has done its part.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from managed_world import install_crd

from agent.garbage_collector.candidates import RESOURCES
from agent.garbage_collector.rounds import Rounds, Settings
from agent.garbage_collector.users import USERS
from agent.references.keys import GARBAGE_COLLECTABLE, annotation_key
from devcluster.cluster import Cluster
from devcluster.faults import Answer, Fault, Reset, Rule, expired, internal_error, unavailable
from devcluster.proxy import FaultProxy
from kube.client import Client, Selection, Transport
from kube.connection import load_kubeconfig
from kube.controller import ReconcileError, RequeueAfter
from kube.objects import Key, Object, metadata
from kube.resources import SECRETS, Resource

PODS = Resource("", "v1", "Pod", "pods", namespaced=True)
LATER = timedelta(hours=1)
FORBIDDEN = Answer(name="forbidden", code=403, reason="Forbidden", message="not allowed")
PAUSE = unavailable(retry_after=3)
"""Four times until the client gives up: so long there is for what has to be done meanwhile."""
LISTS = [resource.plural for resource in (*RESOURCES.values(), *USERS)]


class World:
    """A namespace with Secrets that nothing refers to, and a round that talks through the proxy."""

    def __init__(self, admin: Client, proxied: Client, proxy: FaultProxy, namespace: str) -> None:
        self.admin = admin
        self.proxy = proxy
        self.namespace = namespace
        settings = Settings(namespaces=(namespace,), minimum_age=600, dry_run=False, sync_period=3600)
        self._rounds = Rounds(client=proxied, settings=settings, utcnow=lambda: datetime.now(UTC) + LATER)

    async def round(self) -> None:
        assert await self._rounds.reconcile(Key("", "round")) == RequeueAfter(3600)

    async def round_fails(self) -> str:
        with pytest.raises(ReconcileError) as caught:
            await self.round()
        return str(caught.value)

    async def create(self, *names: str) -> None:
        await asyncio.gather(*(self.admin.create(SECRETS, self.secret(name)) for name in names))

    def secret(self, name: str) -> Object:
        meta = {"name": name, "namespace": self.namespace, "labels": {GARBAGE_COLLECTABLE: "true"}}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": meta}

    async def names(self) -> set[str]:
        return {metadata(obj)["name"] for obj in await self.admin.list(SECRETS, Selection(self.namespace))}

    async def while_put_off(self, rule: Rule, act: Callable[["World"], Awaitable[None]]) -> None:
        """A round whose requests of this rule only come through after the action."""
        self.proxy.rules.add(rule)
        running = asyncio.create_task(self.round())
        async with asyncio.timeout(60):
            while not self.proxy.injected[rule.fault.name]:
                assert not running.done(), "the round ended before the fault struck"
                await asyncio.sleep(0.01)
        await act(self)
        self.proxy.rules.clear()
        await running


@pytest.fixture
async def world(cluster: Cluster, namespace: str, tmp_path: Path) -> AsyncIterator[World]:
    install_crd(cluster)
    async with proxied(cluster, namespace, tmp_path) as found:
        yield found


@asynccontextmanager
async def proxied(cluster: Cluster, namespace: str, directory: Path) -> AsyncIterator[World]:
    async with FaultProxy(upstream=cluster.url, upstream_ca=cluster.ca, authority=cluster.authority, seed=1) as proxy:
        proxy.write_kubeconfig(directory / "kubeconfig", token=cluster.token)
        async with (
            Transport(load_kubeconfig(cluster.kubeconfig)) as direct,
            Transport(load_kubeconfig(directory / "kubeconfig")) as transport,
        ):
            admin, client = (Client(each, user_agent="test") for each in (direct, transport))
            yield World(admin, client, proxy, namespace)


# --- between list and deletion


async def make_anew(world: World) -> None:
    await world.admin.delete(SECRETS, "a", namespace=world.namespace)
    await world.admin.create(SECRETS, world.secret("a"))


async def patch(world: World, meta: Object) -> None:
    await world.admin.patch(SECRETS, "a", {"metadata": meta}, namespace=world.namespace)


async def take_label(world: World) -> None:
    await patch(world, {"labels": {GARBAGE_COLLECTABLE: None}})


async def annotate(world: World) -> None:
    await patch(world, {"annotations": {"seen": "yes"}})


async def refer(world: World) -> None:
    reference = {annotation_key("secret", "a"): "a"}
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": world.namespace, "annotations": reference},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "i"}]},
    }
    await world.admin.create(PODS, pod)


@pytest.mark.parametrize("act", [make_anew, take_label, annotate])
async def test_an_object_survives_that_changes_before_it_is_deleted(
    act: Callable[[World], Awaitable[None]], world: World
) -> None:
    await world.create("a", "b")
    await world.while_put_off(Rule(fault=PAUSE, methods=("DELETE",), path="/secrets/a$"), act)
    assert "a" in await world.names()
    assert "b" not in await world.names()


async def test_an_object_survives_that_is_referred_to_after_its_users_were_listed(world: World) -> None:
    await world.create("a", "b")
    last = Rule(fault=PAUSE, path=f"/{USERS[-1].plural}$", times=4)
    await world.while_put_off(last, refer)
    assert "a" in await world.names()
    assert "b" not in await world.names()


async def test_an_object_that_somebody_else_deletes_meanwhile_is_no_failure(world: World) -> None:
    async def delete(world: World) -> None:
        await world.admin.delete(SECRETS, "a", namespace=world.namespace)

    await world.create("a")
    await world.while_put_off(Rule(fault=PAUSE, methods=("DELETE",)), delete)
    assert "a" not in await world.names()


# --- failures


@pytest.mark.parametrize("fault", [internal_error(), FORBIDDEN, Reset()], ids=lambda fault: fault.name)
@pytest.mark.parametrize("plural", LISTS)
async def test_nothing_is_deleted_if_a_list_fails(plural: str, fault: Fault, world: World) -> None:
    await world.create("a")
    world.proxy.rules.add(Rule(fault=fault, methods=("GET",), path=f"/{plural}$"))
    message = await world.round_fails()
    kind = next((resource for resource in USERS if resource.plural == plural), None)
    expected = f"listing {plural}" if kind is None else f"listing objects of gvk {kind.group}/{kind.version}, Kind="
    assert message.startswith(f"failed {expected}")
    assert "a" in await world.names()
    world.proxy.rules.clear()
    await world.round()
    assert "a" not in await world.names()


@pytest.mark.parametrize("plural", [resource.plural for resource in USERS])
async def test_nothing_is_deleted_if_the_look_right_before_fails(plural: str, world: World) -> None:
    await world.create("a")
    world.proxy.rules.add(Rule(fault=internal_error(), methods=("GET",), path=f"/{plural}$", after=1))
    assert "failed listing objects of gvk" in await world.round_fails()
    assert "a" in await world.names()


async def test_nothing_is_deleted_if_a_later_page_fails(world: World) -> None:
    names = [f"s-{number}" for number in range(501)]
    await world.create(*names)
    world.proxy.rules.add(Rule(fault=expired(), query="continue="))
    assert (await world.round_fails()).startswith("failed listing secrets: ")
    assert await world.names() >= set(names)
    world.proxy.rules.clear()
    await world.round()
    assert not await world.names() & set(names)


async def test_the_others_go_on_if_some_can_not_be_deleted(world: World) -> None:
    await world.create("a", "b", "c")
    world.proxy.rules.add(Rule(fault=FORBIDDEN, methods=("DELETE",), path="/secrets/a$"))
    one = "Could not delete all unused resources: 1 error occurred: not allowed"
    assert await world.round_fails() == one
    assert not {"b", "c"} & await world.names()
    await world.create("b")
    world.proxy.rules.add(Rule(fault=FORBIDDEN, methods=("DELETE",)))
    several = "Could not delete all unused resources: 2 errors occurred: [not allowed, not allowed]"
    assert await world.round_fails() == several
