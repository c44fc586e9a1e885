"""One object that can't be read completely, among others: they are seen, and it is as far as it can be."""

import json
import uuid

import pytest

from devcluster.cluster import Cluster
from kit.deep import deep_secret, nested
from kit.eventually import soon
from kit.kinds import custom_resource, definition, kinds_are_served, serve
from kit.objects import config_map, obj
from kit.proxied import QUICK
from kit.rig import Rig
from kube.errors import NotFound
from kube.objects import Key, Object, key
from kube.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, SECRETS, Resource
from kube.runtime.cache import Caches, View, without_managed_fields
from kube.runtime.client import Client, Form, Selection
from kube.runtime.watch import Timings
from kubectl.transport import PlainTransport

WIDGETS = custom_resource("deep.example.com", "Widget")
LABEL = "deep.example.com/test"
QUICK_SILENCE = Timings(idle_timeout=0.3)


@pytest.fixture(scope="module", autouse=True)
def widgets(cluster: Cluster) -> None:
    serve(cluster, WIDGETS)


async def put(client: Client, resource: Resource, namespace: str, body: bytes) -> None:
    await client.request("POST", resource.path(namespace=namespace), body=body)


def deep_widget(name: str, levels: int) -> bytes:
    return (
        b'{"apiVersion":"deep.example.com/v1","kind":"Widget","metadata":{"name":"%b"},"spec":{"size":1,"deep":%b}}'
        % (
            name.encode(),
            nested(levels),
        )
    )


@pytest.mark.parametrize("form", list(Form))
async def test_a_secret_with_deep_managed_fields_is_seen_as_all_others(
    client: Client, namespace: str, form: Form
) -> None:
    caches = Caches(client, namespaces=[namespace], timings=QUICK)
    watching = caches.acquire(View(SECRETS, without_managed_fields, form=form))
    await watching.synced.wait()
    for name in "a", "b":
        await client.create(SECRETS, {"metadata": {"name": name, "namespace": namespace}})
        await put(client, SECRETS, namespace, deep_secret(f"deep-{name}"))
    listing = caches.acquire(View(SECRETS, without_managed_fields, form=form, label_selector="!none"))
    for store in watching, listing:
        await soon(lambda store=store: len(store) == 4, "all Secrets")  # type: ignore[misc]
        assert store.unread == {}
    assert dict(caches.behind()) == {SECRETS: False}
    for found in (
        await client.list(SECRETS, Selection(namespace=namespace), form=form),
        [await client.get(SECRETS, Key(namespace, "deep-a"), form=form)],
    ):
        assert "deep-a" in {key(each).name for each in found}
    await client.patch(SECRETS, Key(namespace, "deep-a"), {"metadata": {"labels": {"a": "b"}}})
    await client.delete(SECRETS, Key(namespace, "deep-a"))
    await soon(lambda: len(watching) == len(listing) == 3, "it to go")
    await caches.close()


async def test_commands_read_what_others_have_made_deep(cluster: Cluster, client: Client, namespace: str) -> None:
    await put(client, SECRETS, namespace, deep_secret("deep"))
    async with PlainTransport(client.transport.connection) as transport:
        found = await Client(transport, user_agent="command").list(SECRETS, Selection(namespace=namespace))
    assert [key(each).name for each in found] == ["deep"]


async def test_of_a_deep_custom_resource_only_what_is_deep_is_not_read(client: Client, namespace: str) -> None:
    caches = Caches(client, namespaces=[namespace], timings=QUICK)
    store = caches.acquire(View(WIDGETS, without_managed_fields))
    await store.synced.wait()
    for name, levels in (("plain", 1), ("deep", 300), ("deeper", 1_500)):
        await put(client, WIDGETS, namespace, deep_widget(name, levels))
    await soon(lambda: len(store) == 3, "the Widgets")
    assert {k.name for k in store.unread} == {"deeper"}
    assert all(widget["spec"]["size"] == 1 for widget in store.values())
    deeper = await client.get(WIDGETS, Key(namespace, "deeper"))
    assert deeper["spec"]["size"] == 1
    await caches.close()


@pytest.mark.parametrize("levels", [300, 1_500])
async def test_drift_is_restored_where_a_user_nests_deeply(
    rig: Rig, client: Client, namespace: str, levels: int
) -> None:
    rig.apply("w", obj(WIDGETS, "w", namespace=namespace, spec={"size": 1}), config_map("c", namespace=namespace))
    patch = b'{"spec":{"size":2,"deep":' + nested(levels) + b"}}"
    path = WIDGETS.path(namespace=namespace, name="w")
    await client.request("PATCH", path, body=patch, content_type="application/merge-patch+json")

    def is_right() -> bool:
        return b'"spec":{"size":1}' in rig.cluster.api.raw("GET", path)[1]

    rig.until(is_right, "the Widget to be as it is wanted")
    rig.until_applied("w")


async def test_lists_may_be_called_otherwise(cluster: Cluster, client: Client, namespace: str) -> None:
    kind = custom_resource(f"t{uuid.uuid4().hex[:10]}.example.com", "Widget")
    own: Object = definition(kind)
    own["spec"]["names"]["listKind"] = "WidgetBundle"
    cluster.api.create(CUSTOM_RESOURCE_DEFINITIONS.path(), own)
    await kinds_are_served(client, kind)
    assert json.loads(await client.request("GET", kind.path()))["kind"] == "WidgetBundle"
    assert await client.list(kind) == []
    cluster.api.delete(CUSTOM_RESOURCE_DEFINITIONS.path(name=own["metadata"]["name"]))


async def test_a_watch_of_which_nothing_comes_is_not_behind(client: Client, namespace: str) -> None:
    """Silence is far shorter here than the time between two bookmarks."""
    doubts: list[bool] = []
    lists = 0

    class Counting(Client):
        async def list_page(self, *args: object, **options: object) -> Object:
            nonlocal lists
            lists += 1
            doubts.append(caches.unverified or (any(behind for _, behind in caches.behind()) and lists > 1))
            return await super().list_page(*args, **options)  # type: ignore[arg-type]

    counting = Counting(client.transport, user_agent="counting")
    caches = Caches(counting, namespaces=[namespace], timings=QUICK_SILENCE)
    store = caches.acquire(View(CONFIG_MAPS, without_managed_fields, label_selector=LABEL))
    await store.synced.wait()
    await soon(lambda: lists > 3, "it to ask")
    await client.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": namespace, "labels": {LABEL: "x"}}})
    await soon(lambda: len(store) == 1, "what happens after a silence")
    # It expires, as Events do, and its past is forgotten.
    await client.delete(CONFIG_MAPS, Key(namespace, "a"))
    await soon(lambda: len(store) == 0, "it to go")
    requested = lists
    await soon(lambda: lists > requested + 2, "it to ask again")
    assert not any(doubts)
    assert not caches.history_rewound.is_set()
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAPS, Key(namespace, "a"))
    await caches.close()
