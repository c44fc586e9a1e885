"""Etcd is restored from a snapshot while programs go on: what they know is of before."""

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Iterator
from pathlib import Path

import pytest

from devcluster.cluster import Cluster
from devcluster.testing.faults import Answer, Rule
from devcluster.testing.proxy import FaultProxy
from kit.eventually import soon
from kit.managed_resources import install_crd
from kit.objects import config_map
from kit.processes.webhooks import WebhookProcess, ask, client, pod_review
from kit.proxied import proxied
from kit.rig import Agent, Rig
from kube.errors import HistoryRewound, KubeError, NotFound
from kube.objects import Key, Object, key, resource_version
from kube.resources import CONFIG_MAPS
from kube.runtime.cache import Caches, Change, View, without_managed_fields
from kube.runtime.client import Client
from kube.runtime.watch import Timings

QUICK = Timings(first_back_off=0.05, longest_back_off=0.5)
MAPS = "/api/v1/namespaces/{}/configmaps"
VIEW = View(CONFIG_MAPS, without_managed_fields)


@pytest.fixture(scope="module")
def own_cluster(devcluster_run: object) -> Iterator[Cluster]:
    with Cluster() as own:
        install_crd(own)
        yield own


@pytest.fixture
def place(own_cluster: Cluster) -> str:
    """A namespace that is in the snapshots."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    own_cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    return name


@contextlib.asynccontextmanager
async def caches_of(
    cluster: Cluster, namespace: str, directory: Path
) -> AsyncIterator[tuple[FaultProxy, Client, Caches]]:
    async with proxied(cluster, directory) as (proxy, transport):
        client = Client(transport, user_agent="restored")
        caches = Caches(client, namespaces=[namespace], timings=QUICK)
        client.consistency = caches
        try:
            yield proxy, client, caches
        finally:
            await caches.close()


def put(cluster: Cluster, namespace: str, name: str, **data: str) -> Object:
    body = {"metadata": {"name": name}, "data": data}
    try:
        return cluster.api.patch(f"{MAPS.format(namespace)}/{name}", {"data": data})
    except NotFound:
        return cluster.api.create(MAPS.format(namespace), body)


def make_many_versions(cluster: Cluster) -> int:
    """More than a control plane makes when it starts; the last one."""
    for number in range(400):
        last = put(cluster, "default", "counter", number=str(number))
    return resource_version(last)


@pytest.mark.parametrize(
    ("overtaken", "forgotten"),
    [(False, False), (True, False), (True, True)],
    ids=["versions are lower", "versions have overtaken the old ones", "and etcd has forgotten what was"],
)
async def test_caches_start_over_and_nothing_is_written_from_another_past(
    own_cluster: Cluster, place: str, tmp_path: Path, overtaken: bool, forgotten: bool
) -> None:
    cluster = own_cluster
    for name in "kept", "changed", "deleted", "missed":
        put(cluster, place, name, at="first")
    snapshot = await asyncio.to_thread(cluster.snapshot)
    path = MAPS.format(place)
    async with caches_of(cluster, place, tmp_path) as (proxy, client, caches):
        store = caches.acquire(VIEW)
        await store.synced.wait()

        # What will never have been.
        put(cluster, place, "changed", at="second")
        cluster.api.delete(f"{path}/deleted")
        if not overtaken:
            await asyncio.to_thread(make_many_versions, cluster)
        future = put(cluster, place, "future", at="second")
        await soon(lambda: store.version(Key(place, "future")) == resource_version(future), "the future")

        await proxy.pause()
        await asyncio.to_thread(cluster.restore, snapshot)
        put(cluster, place, "missed", at="restored")
        if overtaken:
            assert await asyncio.to_thread(make_many_versions, cluster) > resource_version(future)
            if forgotten:
                cluster.compact()
            # It can't report any more what happened since from its memory.
            await asyncio.to_thread(cluster.stop_apiserver)
            await asyncio.to_thread(cluster.start_apiserver)
        else:
            assert resource_version(cluster.api.get(path)) < resource_version(future)
        await proxy.resume()

        # The first thing that comes through may be a write.
        with pytest.raises(KubeError):
            await client.create(CONFIG_MAPS, {"metadata": {"name": "future", "namespace": place}})
        await soon(caches.history_rewound.is_set, "the rewound history to be found out")
        with pytest.raises(HistoryRewound):
            await client.patch(CONFIG_MAPS, Key(place, "kept"), {"data": {"at": "second"}})

        def equals_server() -> bool:
            server = {key(item): resource_version(item) for item in cluster.api.get(path)["items"]}
            return server == {k: store.version(k) for k, _ in store.items()}

        await soon(lambda: store.synced.is_set() and equals_server(), "the store to equal the server")
        known = store.get(Key(place, "missed"))
        assert known is not None
        assert known["data"] == {"at": "restored"}
        assert store.get(Key(place, "future")) is None
        # And goes on from there.
        put(cluster, place, "kept", at="third")
        await soon(equals_server, "a change after the restore")
        caches.history_rewound.clear()
        await client.patch(CONFIG_MAPS, Key(place, "kept"), {"data": {"at": "fourth"}})


async def test_nothing_is_written_until_all_is_listed_again_if_no_object_reports_what_was(
    own_cluster: Cluster, place: str, tmp_path: Path
) -> None:
    """Only what was made since the snapshot is gone: no object that exists is another one than is known."""
    cluster = own_cluster
    put(cluster, place, "kept", at="first")
    snapshot = await asyncio.to_thread(cluster.snapshot)
    async with caches_of(cluster, place, tmp_path) as (proxy, client, caches):
        store = caches.acquire(VIEW)
        await store.synced.wait()
        await asyncio.to_thread(make_many_versions, cluster)
        future = put(cluster, place, "future", at="second")
        await soon(lambda: store.version(Key(place, "future")) == resource_version(future), "the future")
        await proxy.pause()
        await asyncio.to_thread(cluster.restore, snapshot)
        await proxy.resume()

        with pytest.raises(KubeError):
            await client.create(CONFIG_MAPS, {"metadata": {"name": "of-the-future", "namespace": place}})
        await soon(lambda: store.synced.is_set() and store.get(Key(place, "future")) is None, "the list again")

        def write() -> Awaitable[Object]:
            caches.history_rewound.clear()  # as a process does that starts again
            return client.patch(CONFIG_MAPS, Key(place, "kept"), {"data": {"at": "second"}})

        await soon(write, "what is written to be accepted", passing=(HistoryRewound,))
        assert not caches.history_rewound.is_set()


@pytest.mark.parametrize("code", [429, 502, 503, 504])
async def test_while_the_api_server_cannot_answer_yet_nothing_is_written(
    own_cluster: Cluster, place: str, tmp_path: Path, code: int
) -> None:
    """As one that has just started, and fills its memory."""
    async with caches_of(own_cluster, place, tmp_path) as (proxy, client, caches):
        store = caches.acquire(VIEW)
        await store.synced.wait()
        put(own_cluster, place, "a", at="first")
        await soon(lambda: store.get(Key(place, "a")), "the object")
        await proxy.pause()
        refused = Answer(name="not yet", code=code, reason="", message="storage is (re)initializing")
        rule = Rule(fault=refused, methods=("GET",))
        proxy.rules.add(rule)
        await proxy.resume()
        await soon(lambda: caches.unverified, "the doubt")
        for _ in range(2):
            with pytest.raises(KubeError, match="initializing"):
                await client.patch(CONFIG_MAPS, Key(place, "a"), {"data": {"at": "second"}})
        proxy.rules.remove(rule)
        await client.patch(CONFIG_MAPS, Key(place, "a"), {"data": {"at": "second"}})


async def test_an_outage_costs_one_small_list_for_each_watch(own_cluster: Cluster, place: str, tmp_path: Path) -> None:
    for name in "a", "b", "c":
        put(own_cluster, place, name, at="first")
    async with caches_of(own_cluster, place, tmp_path) as (proxy, client, caches):
        store = caches.acquire(VIEW)
        await store.synced.wait()
        seen: list[Change[Object]] = []
        put(own_cluster, place, "b", at="second")
        await soon(lambda: (store.get(Key(place, "b")) or {}).get("data") == {"at": "second"}, "the change")
        # kube-controller-manager adds a ConfigMap of its own to each namespace, whenever it comes to it.
        store.subscribe(lambda change: seen.append(change) if change.key.name in {"a", "b", "c"} else None)
        del seen[:]

        await proxy.pause()
        proxy.log.clear()
        await proxy.resume()
        put(own_cluster, place, "a", at="second")
        await soon(lambda: seen, "the change after the outage")
        await client.patch(CONFIG_MAPS, Key(place, "a"), {"data": {"at": "third"}})
        await soon(lambda: len(seen) == 2, "the own write")
        lists = [entry.request for entry in proxy.log if entry.request.method == "GET" and not entry.request.watch]
        assert [request.path for request in lists] == [MAPS.format(place)]

        # The object that changed last goes meanwhile: that it did is requested, and is no rewound history.
        await proxy.pause()
        own_cluster.api.delete(f"{MAPS.format(place)}/a")
        await asyncio.to_thread(own_cluster.stop_apiserver)
        await asyncio.to_thread(own_cluster.start_apiserver)
        await proxy.resume()
        await soon(lambda: store.get(Key(place, "a")) is None, "the deletion")
        assert not caches.history_rewound.is_set()


async def test_an_object_that_ceased_to_be_selected_is_no_rewound_history(
    own_cluster: Cluster, place: str, tmp_path: Path
) -> None:
    path = f"{MAPS.format(place)}/a"
    put(own_cluster, place, "a", at="first")
    own_cluster.api.patch(path, {"metadata": {"labels": {"selected": "yes"}}})
    async with caches_of(own_cluster, place, tmp_path) as (proxy, _, caches):
        store = caches.acquire(View(CONFIG_MAPS, without_managed_fields, label_selector="selected=yes"))
        await store.synced.wait()
        own_cluster.api.patch(path, {"metadata": {"labels": {"selected": "no"}}})
        await soon(lambda: store.get(Key(place, "a")) is None, "it to leave the store")
        await proxy.pause()
        await proxy.resume()
        own_cluster.api.patch(path, {"metadata": {"labels": {"selected": "yes"}}})
        await soon(lambda: store.get(Key(place, "a")), "it to come back")
        assert not caches.history_rewound.is_set()


def test_an_agent_forgets_what_never_was_and_goes_on(own_cluster: Cluster, place: str) -> None:
    agent = Agent(own_cluster, resource_class="restored")
    audit = own_cluster.audit()
    with agent.start() as process:
        rig = Rig(own_cluster, place, agent, process)
        rig.write("kept", config_map("kept", {"at": "first"}))
        rig.write("removed", config_map("removed"))
        for name in "kept", "removed":
            rig.until_applied(name)
        snapshot = own_cluster.snapshot()
        rig.write("kept", config_map("kept", {"at": "second"}))
        rig.until_data("kept", {"at": "second"})
        rig.delete_managed_resource("removed")
        rig.apply("future", config_map("future"))
        make_many_versions(own_cluster)

        own_cluster.restore(snapshot)
        mark = audit.mark()
        assert rig.find("Secret", "future") is None
        process.wait_for_log("Restarting the controllers, since a cluster may have been restored from a backup")
        # What came back is managed again, and what is new is seen, though its versions are below the former ones.
        rig.delete("ConfigMap", "removed")
        rig.until(lambda: rig.origin("ConfigMap", "removed") == "removed", "the deleted object to come back")
        rig.write("kept", config_map("kept", {"at": "third"}))
        rig.until_data("kept", {"at": "third"})
        rig.apply("new", config_map("new"))
        assert rig.find("ConfigMap", "future") is None
        written = audit.calls(since=mark, user_agent="gardener-resource-manager/", namespace=place)
        assert [call for call in written if call.name == "future" and call.verb not in {"get", "list"}] == []
        assert process.probe("/readyz")[0] == 200
    audit.close()


async def test_webhooks_answer_by_what_was_restored_and_go_on(own_cluster: Cluster, place: str) -> None:
    account = f"/api/v1/namespaces/{place}/serviceaccounts/robot"
    # What the API server does itself, the webhook leaves alone.
    own_cluster.api.create(
        account.rpartition("/")[0], {"metadata": {"name": "robot"}, "automountServiceAccountToken": False}
    )
    review = pod_review(containers=[{"name": "c", "image": "i"}], serviceAccountName="robot")
    review["request"]["namespace"] = place
    with WebhookProcess({"projectedTokenMount": {"enabled": True}}, kubeconfig=own_cluster.kubeconfig) as server:
        await server.until_ready()
        async with client() as session:

            async def until_mounted(expected: bool) -> None:
                async def is_so() -> bool:
                    answer = await ask(
                        session, f"{server.url}/webhooks/mount-projected-service-account-token", json.dumps(review)
                    )
                    return ("patch" in answer) is expected

                await soon(is_so, f"the token to be mounted: {expected}")

            await until_mounted(True)
            snapshot = await asyncio.to_thread(own_cluster.snapshot)
            own_cluster.api.patch(account, {"automountServiceAccountToken": True})
            await until_mounted(False)
            await asyncio.to_thread(make_many_versions, own_cluster)
            await asyncio.to_thread(own_cluster.restore, snapshot)
            await until_mounted(True)
            own_cluster.api.patch(account, {"automountServiceAccountToken": True})
            await until_mounted(False)
