"""What a leader does with its control loops: start, feed with news of kinds, stop."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from config.resource_manager import decode
from config.resource_manager.schema import ResourceManagerConfiguration
from devcluster.cluster import Cluster
from kit.eventually import soon
from kit.kinds import custom_resource, definition
from kit.objects import config_map, obj, rule
from kit.rbac import grant
from kit.world import Place
from kube.errors import KubeError
from kube.objects import Key, key, resource_version
from kube.resources import CONFIG_MAPS, Resource
from kube.runtime.cache import View, without_managed_fields
from kube.runtime.connection import load_kubeconfig
from kube.runtime.controller import Done, Result
from kube.runtime.loop import ControlLoop, enqueue
from kube.runtime.predicates import changed_or_listed
from kube.runtime.watch import Timings
from process.caches import CachesNotSynced
from process.clusters import Cluster as AgentCluster
from process.clusters import Clusters, Endpoint
from process.configuration.blocks import ClientConnection
from process.controllers import CRDS_VIEW, Controllers

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Seen:
    """Reconciles the objects of one kind by noting their keys."""

    def __init__(self, cluster: AgentCluster, resource: Resource, *, lasts: float = 0.0) -> None:
        self.begun: list[str] = []
        self.finished: list[str] = []
        self.groups: list[str] = []
        self.closed = False
        self._lasts = lasts
        self.loop = ControlLoop(f"test-{id(self)}").reconciled_by(self)
        view = View(resource, without_managed_fields)
        self.loop.watch(cluster.caches, view, enqueue(when=changed_or_listed))
        self.loop.on_kinds_changed(self.groups.append)
        self.loop.on_close(self._close)

    async def reconcile(self, key: Key) -> Result:
        self.begun.append(key.name)
        await asyncio.sleep(self._lasts)
        self.finished.append(key.name)
        return Done()

    async def _close(self) -> None:
        self.closed = True


@contextlib.asynccontextmanager
async def connected(kubeconfig: Path, namespace: str, *, timings: Timings | None = None) -> AsyncIterator[Clusters]:
    settings = ClientConnection(namespaces=(namespace,))
    clusters = Clusters(user_agent="test", component="test", timings=timings)
    clusters.open(Endpoint(("source", "target"), load_kubeconfig(kubeconfig), settings))
    try:
        yield clusters
    finally:
        await clusters.close_all()


@pytest.fixture
async def clusters(cluster: Cluster, namespace: str) -> AsyncIterator[Clusters]:
    async with connected(cluster.kubeconfig, namespace) as clusters:
        yield clusters


def controllers(
    clusters: Clusters,
    compose: Callable[[AgentCluster], list[Any]],
    *,
    kinds_of: str = "target",
    **settings: Any,
) -> tuple[Controllers, list[Any]]:
    made: list[Any] = []

    async def compose_and_remember() -> list[ControlLoop]:
        made.extend(compose(clusters["target"]))
        return [each.loop for each in made]

    config: ResourceManagerConfiguration = decode(
        f"{{leaderElection: {{resourceNamespace: x}}, controllers: {settings}}}".replace("'", '"')
    ).config
    part = Controllers(clusters, config=config, kinds_of=(kinds_of,), compose=compose_and_remember)
    return part, made


def of(resource: Resource, **options: Any) -> Callable[[AgentCluster], list[Seen]]:
    return lambda cluster: [Seen(cluster, resource, **options)]


def add_config_map(cluster: Cluster, namespace: str, name: str) -> None:
    Place(cluster, namespace).create(config_map(name))


async def test_workers_get_what_is_there_and_what_comes(cluster: Cluster, namespace: str, clusters: Clusters) -> None:
    add_config_map(cluster, namespace, "first")
    part, loops = controllers(clusters, of(CONFIG_MAPS))
    await part.start()
    (loop,) = loops
    await soon(lambda: "first" in loop.finished)
    add_config_map(cluster, namespace, "second")
    await soon(lambda: "second" in loop.finished)
    await part.stop()
    assert loop.closed
    assert list(clusters["target"].caches.stores()) == []


async def test_a_running_pass_is_finished_at_the_end_and_no_other_begun(
    cluster: Cluster, namespace: str, clusters: Clusters
) -> None:
    for number in range(3):
        add_config_map(cluster, namespace, f"map-{number}")
    part, loops = controllers(clusters, of(CONFIG_MAPS, lasts=0.5))
    await part.start()
    (loop,) = loops
    await soon(lambda: loop.begun)
    await part.stop()
    assert len(loop.begun) == 1
    assert loop.finished == loop.begun


async def test_a_pass_that_does_not_finish_does_not_hold_up_the_end(
    cluster: Cluster, namespace: str, clusters: Clusters
) -> None:
    add_config_map(cluster, namespace, "first")
    part, loops = controllers(clusters, of(CONFIG_MAPS, lasts=60))
    await part.start()
    (loop,) = loops
    await soon(lambda: loop.begun)
    async with asyncio.timeout(30):
        await part.stop()
    assert loop.finished == []


async def test_a_controller_that_fails_is_reported(clusters: Clusters) -> None:
    async def fail() -> None:
        raise RuntimeError("broken")

    def compose(cluster: AgentCluster) -> list[Seen]:
        seen = Seen(cluster, CONFIG_MAPS)
        seen.loop.controller.run = fail  # type: ignore[method-assign]
        return [seen]

    part, _ = controllers(clusters, compose)
    await part.start()
    with pytest.raises(RuntimeError, match="broken"):
        await part.wait()
    await part.stop()


# --- kinds


@pytest.fixture
async def patient(cluster: Cluster, namespace: str) -> AsyncIterator[Clusters]:
    """By themselves its watches would try again too late."""
    timings = Timings(first_back_off=600, longest_back_off=600)
    async with connected(cluster.kubeconfig, namespace, timings=timings) as clusters:
        yield clusters


@pytest.fixture
def group(cluster: Cluster, namespace: str) -> Iterator[str]:
    group = f"{namespace}.example.com"
    yield group
    with contextlib.suppress(Exception):
        cluster.api.delete(f"{CRDS}/widgets.{group}")


async def test_a_kind_that_comes_later_is_watched_soon_and_one_that_goes_is_forgotten(
    cluster: Cluster, namespace: str, patient: Clusters, group: str
) -> None:
    agent_cluster = patient["target"]
    widgets = custom_resource(group, "Widget")
    part, loops = controllers(patient, of(widgets))
    await part.start()
    (loop,) = loops
    assert group not in loop.groups
    with pytest.raises(Exception, match="no matches for kind"):
        await agent_cluster.discovery.find(f"{group}/v1", "Widget")
    await asyncio.to_thread(cluster.api.create, CRDS, definition(widgets))
    widget = obj(widgets, "w", namespace=namespace)
    await soon(lambda: agent_cluster.client.create(widgets, widget), "it to be served", passing=(KubeError,))
    # Who was woken a moment before it was served would wait for long now, with these timings: once more, there is news.
    news = {"metadata": {"annotations": {"example.com/served": "true"}}}
    written = await asyncio.to_thread(cluster.api.patch, f"{CRDS}/widgets.{group}", news)
    await soon(lambda: group in loop.groups)
    await soon(lambda: loop.finished == ["w"])
    # The API server lists a kind a moment after it serves it.
    await soon(lambda: _found(agent_cluster, widgets), "it to be discovered")

    crds = next(store for store in agent_cluster.caches.stores() if store.view == CRDS_VIEW)
    await soon(lambda: crds.version(key(written)) >= resource_version(written))
    loop.groups.clear()
    await asyncio.to_thread(cluster.api.delete, f"{CRDS}/widgets.{group}")
    await soon(lambda: group in loop.groups)
    await part.stop()


async def _found(agent_cluster: AgentCluster, resource: Resource) -> bool:
    with contextlib.suppress(KubeError):
        return await agent_cluster.discovery.find(resource.api_version, resource.kind) == resource
    return False


async def test_kinds_of_a_cluster_that_comes_later_are_followed_until_it_goes(
    cluster: Cluster, namespace: str, clusters: Clusters, group: str
) -> None:
    part, loops = controllers(clusters, of(CONFIG_MAPS), kinds_of="later")
    await part.start()
    waiting = asyncio.create_task(part.wait())
    later = clusters.open(Endpoint(("later",), load_kubeconfig(cluster.kubeconfig), ClientConnection()))
    assert [store.view for store in later.caches.stores()] == [CRDS_VIEW]
    await asyncio.to_thread(cluster.api.create, CRDS, definition(custom_resource(group, "Widget")))
    await soon(lambda: group in loops[0].groups)

    clusters.history_rewound.set()
    add_config_map(cluster, namespace, "first")
    await soon(lambda: len(loops) == 2 and "first" in loops[1].finished, "the control loops to be recreated")
    await clusters.close("later")
    assert list(later.caches.stores()) == []
    assert not waiting.done()
    await part.stop()
    await waiting


async def test_without_the_right_to_see_kinds_everything_else_works(cluster: Cluster, namespace: str) -> None:
    user = f"reader-{namespace}"
    grant(cluster, user, rule("", "configmaps", "get list watch"), namespace=namespace)
    add_config_map(cluster, namespace, "first")
    async with connected(cluster.kubeconfig_for(user), namespace) as clusters:
        part, loops = controllers(clusters, of(CONFIG_MAPS))
        async with asyncio.timeout(60):
            await part.start()
        await soon(lambda: "first" in loops[0].finished)
        await part.stop()


async def test_a_cache_that_does_not_fill_in_time_is_named(cluster: Cluster, namespace: str) -> None:
    async with connected(cluster.kubeconfig_for(f"stranger-{namespace}"), namespace) as clusters:
        part, loops = controllers(clusters, of(CONFIG_MAPS), cacheSyncTimeout="1s")
        with pytest.raises(CachesNotSynced) as raised:
            await part.start()
        assert str(raised.value) == (
            "failed to wait for caches to sync within 1s (controllers.cacheSyncTimeout): "
            f"configmaps.v1 of the source cluster at {cluster.url}"
        )
        await part.stop()
        assert loops[0].closed
