"""Whatever goes wrong between a cache and the API server: once it stops, the cache equals the server, and nothing
was reported twice.
"""

import asyncio
import random
from pathlib import Path

import pytest

from devcluster.cluster import Cluster
from devcluster.testing.faults import (
    Delay,
    EndWatch,
    Fault,
    LateEvents,
    RepeatEvents,
    Reset,
    Rule,
    Silence,
    Trickle,
    WatchEnd,
    expired,
    internal_error,
    throttled,
    unauthorized,
    unavailable,
)
from kit.proxied import proxied
from kube.errors import KubeError
from kube.objects import Key, Object, key, resource_version
from kube.resources import CONFIG_MAPS
from kube.runtime.cache import Caches, Change, Store, View, without_managed_fields
from kube.runtime.client import Client, Form, Selection
from kube.runtime.connection import load_kubeconfig
from kube.runtime.transport import Transport
from kube.runtime.watch import Timings

QUICK = Timings(server_timeout=3, idle_timeout=1, list_timeout=1, first_back_off=0.02, longest_back_off=0.3)
PATH = "/configmaps$"
NOT_OF_THE_PAST = "^(?!.*resourceVersionMatch)"
"""An API server that does not report what was makes a cache start over; see `test_restored_from_backup`."""

REQUEST_FAULTS: dict[str, Fault] = {
    "gone": expired(),
    "throttled": throttled(retry_after=1),
    "internal error": internal_error(),
    "unavailable": unavailable(),
    "reset": Reset(),
    "reset after the request was carried out": Reset(carried_out=True),
    "silence": Silence(),
    "slow answers": Delay(seconds=0.3),
    "trickling bodies": Trickle(),
    "expired credentials": unauthorized(),
}
WATCH_FAULTS: dict[str, Fault] = {
    **{f"watch ends: {how}": EndWatch(how=how, after_events=3) for how in WatchEnd},
    "repeated events": RepeatEvents(),
    "late events": LateEvents(seconds=0.2),
}


class Mirror:
    """A copy made of nothing but the changes that a store reports."""

    def __init__(self) -> None:
        self.versions: dict[Key, int] = {}
        self.repeated: list[Key] = []

    def __call__(self, change: Change[Object]) -> None:
        before = self.versions.get(change.key, 0)
        if change.new is None:
            if not before:
                self.repeated.append(change.key)
            self.versions.pop(change.key, None)
            return
        version = resource_version(change.new)
        if version <= before:
            self.repeated.append(change.key)
        self.versions[change.key] = version


async def change_at_random(client: Client, namespace: str, chance: random.Random, *, steps: int) -> None:
    for step in range(steps):
        name = f"c-{chance.randrange(12)}"
        obj = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace},
            "data": {"step": str(step)},
        }
        try:
            match chance.randrange(3):
                case 0:
                    await client.create(CONFIG_MAPS, obj)
                case 1:
                    await client.replace(CONFIG_MAPS, obj)
                case _:
                    await client.delete(CONFIG_MAPS, Key(namespace, name))
        except KubeError:
            pass  # it exists already, or does not
        await asyncio.sleep(chance.random() * 0.02)


async def equals_server(store: Store[Object], mirror: Mirror, client: Client, namespace: str) -> bool:
    """Compares until equal, for a minute at most."""
    for _ in range(600):
        listed = await client.list(CONFIG_MAPS, Selection(namespace=namespace))
        server = {key(obj): resource_version(obj) for obj in listed}
        cached = {k: resource_version(obj) for k, obj in store.items()}
        if server == cached == mirror.versions:
            return True
        await asyncio.sleep(0.1)
    return False


@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize("name", [*REQUEST_FAULTS, *WATCH_FAULTS])
async def test_a_cache_equals_the_server_after(
    name: str, form: Form, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    chance = random.Random(f"{name} {form}")
    fault = REQUEST_FAULTS.get(name) or WATCH_FAULTS[name]
    query = NOT_OF_THE_PAST if name == "gone" else ""
    rule = Rule(fault=fault, path=PATH, query=query, methods=("GET",), probability=0.7)
    async with (
        Transport(load_kubeconfig(cluster.kubeconfig)) as direct,
        proxied(cluster, tmp_path, seed=chance.randrange(1000)) as (proxy, transport),
    ):
        server, client = Client(direct, user_agent="cache-test-direct"), Client(transport, user_agent="cache-test")
        await change_at_random(server, namespace, chance, steps=10)
        proxy.rules.add(rule)
        caches = Caches(client, namespaces=[namespace], timings=QUICK)
        store = caches.acquire(View(CONFIG_MAPS, without_managed_fields, form=form))
        mirror = Mirror()
        store.subscribe(mirror)
        for _ in range(3):
            await change_at_random(server, namespace, chance, steps=25)
            proxy.end_watches(chance.choice(list(WatchEnd)))
        assert proxy.injected.total() > 0
        proxy.rules.clear()
        assert await equals_server(store, mirror, server, namespace)
        assert mirror.repeated == []
        await caches.close()


async def test_own_writes_are_read_at_once_and_late_answers_bring_nothing_back(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with proxied(cluster, tmp_path, seed=1) as (proxy, transport):
        client = Client(transport, user_agent="cache-test")
        caches = Caches(client, namespaces=[namespace], timings=QUICK)
        async with caches.use(View(CONFIG_MAPS, without_managed_fields)) as store:
            proxy.rules.add(Rule(fault=LateEvents(seconds=0.5), path=PATH))
            proxy.end_watches(WatchEnd.CLOSED)
            obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": namespace}}
            created = await client.create(CONFIG_MAPS, obj)
            store.observe(created)
            assert store.get(Key(namespace, "mine")) is not None

            proxy.rules.clear()
            await client.delete(CONFIG_MAPS, Key(namespace, "mine"))
            async with asyncio.timeout(60):
                while store.get(Key(namespace, "mine")) is not None:
                    await asyncio.sleep(0.02)
            store.observe(created)
            assert store.get(Key(namespace, "mine")) is None
        await caches.close()


async def test_the_last_user_of_a_view_ends_its_watch(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    async with proxied(cluster, tmp_path, seed=1) as (proxy, transport):
        client = Client(transport, user_agent="cache-test")
        caches = Caches(client, namespaces=[namespace], timings=QUICK)
        view = View(CONFIG_MAPS, without_managed_fields)
        first, second = caches.acquire(view), caches.acquire(view)
        assert first is second
        await first.synced.wait()
        async with asyncio.timeout(60):
            while not proxy.open_watches:
                await asyncio.sleep(0.05)
        await caches.release(view)
        assert list(caches.stores()) == [first]
        await caches.release(view)
        assert list(caches.stores()) == []
        async with asyncio.timeout(60):
            while proxy.open_watches:
                await asyncio.sleep(0.05)
