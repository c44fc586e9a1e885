"""What a leader does with its control loops: start, feed with news of kinds, stop."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.context import Context, ControlLoop
from agent.kinds import CRDS_VIEW
from agent.parts import Controllers
from config.load import decode
from config.schema import ClientConnection, ResourceManagerConfiguration
from devcluster.cluster import Cluster
from kube.cache import Caches, Change, View, without_managed_fields
from kube.controller import Controller, Done, Result
from kube.errors import KubeError
from kube.events import EventRecorder
from kube.objects import Key, Object, key, resource_version
from kube.resources import CONFIG_MAPS, Resource
from kube.watch import Timings
from process.caches import CachesNotSynced
from process.clusters import Cluster as AgentCluster
from process.clusters import Line, endpoints

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Loop:
    """Reconciles the objects of one kind by noting their keys."""

    def __init__(self, context: Context, resource: Resource, *, lasts: float = 0.0) -> None:
        self.view = View(resource, without_managed_fields)
        self.controller = Controller(f"test-{id(self)}", self._reconcile)
        self.begun: list[str] = []
        self.finished: list[str] = []
        self.groups: list[str] = []
        self.closed = False
        self._caches = context.target.caches
        self._acquired = False
        self._lasts = lasts

    async def start(self) -> None:
        store = self._caches.acquire(self.view, needed_at_start=True)
        self._acquired = True
        store.subscribe(self._changed)

    def kinds_changed(self, group: str) -> None:
        self.groups.append(group)

    async def close(self) -> None:
        self.closed = True
        if self._acquired:
            await self._caches.release(self.view)

    def _changed(self, change: Change[Object]) -> None:
        self.controller.queue.add(change.key)

    async def _reconcile(self, key: Key) -> Result:
        self.begun.append(key.name)
        await asyncio.sleep(self._lasts)
        self.finished.append(key.name)
        return Done()


@contextlib.asynccontextmanager
async def connected(kubeconfig: Path, namespace: str) -> AsyncIterator[AgentCluster]:
    source = ClientConnection(kubeconfig=str(kubeconfig), namespaces=(namespace,))
    line = Line.to(endpoints(source, source, environment={}).source)
    agent_cluster = line.cluster(user_agent="test", write_guard=None)
    try:
        yield agent_cluster
    finally:
        await agent_cluster.caches.close()
        await line.transport.close()


@pytest.fixture
async def agent_cluster(cluster: Cluster, namespace: str) -> AsyncIterator[AgentCluster]:
    async with connected(cluster.kubeconfig, namespace) as connection:
        yield connection


def controllers(
    agent_cluster: AgentCluster, compose: Callable[[Context], list[Any]], **settings: Any
) -> tuple[Controllers, list[Any]]:
    made: list[Any] = []

    def compose_and_remember(context: Context) -> list[ControlLoop]:
        made.extend(compose(context))
        return made

    config: ResourceManagerConfiguration = decode(
        f"{{leaderElection: {{resourceNamespace: x}}, controllers: {settings}}}".replace("'", '"')
    ).config
    part = Controllers(
        config=config,
        source=agent_cluster,
        target=agent_cluster,
        recorder=EventRecorder(agent_cluster.client, component="test"),
        target_recorder=EventRecorder(agent_cluster.client, component="test"),
        compose=compose_and_remember,
    )
    return part, made


async def eventually(condition: Callable[[], object], *, seconds: float = 60) -> None:
    for _ in range(int(seconds * 100)):
        if condition():
            return
        await asyncio.sleep(0.01)
    pytest.fail("what the test waits for did not happen")


def of(resource: Resource, **options: Any) -> Callable[[Context], list[Loop]]:
    return lambda context: [Loop(context, resource, **options)]


def add_config_map(cluster: Cluster, namespace: str, name: str) -> None:
    cluster.api.create(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": name}})


async def test_workers_get_what_is_there_and_what_comes(cluster: Cluster, namespace: str, agent_cluster: AgentCluster):
    add_config_map(cluster, namespace, "first")
    part, loops = controllers(agent_cluster, of(CONFIG_MAPS))
    await part.start()
    (loop,) = loops
    await eventually(lambda: "first" in loop.finished)
    add_config_map(cluster, namespace, "second")
    await eventually(lambda: "second" in loop.finished)
    await part.stop()
    assert loop.closed
    assert list(agent_cluster.caches.stores()) == []


async def test_a_running_pass_is_finished_at_the_end_and_no_other_begun(
    cluster: Cluster, namespace: str, agent_cluster: AgentCluster
):
    for number in range(3):
        add_config_map(cluster, namespace, f"map-{number}")
    part, loops = controllers(agent_cluster, of(CONFIG_MAPS, lasts=0.5))
    await part.start()
    (loop,) = loops
    await eventually(lambda: loop.begun)
    await part.stop()
    assert len(loop.begun) == 1
    assert loop.finished == loop.begun


async def test_a_pass_that_does_not_finish_does_not_hold_up_the_end(
    cluster: Cluster, namespace: str, agent_cluster: AgentCluster
):
    add_config_map(cluster, namespace, "first")
    part, loops = controllers(agent_cluster, of(CONFIG_MAPS, lasts=60))
    await part.start()
    (loop,) = loops
    await eventually(lambda: loop.begun)
    async with asyncio.timeout(30):
        await part.stop()
    assert loop.finished == []


async def test_a_controller_that_fails_is_told(agent_cluster: AgentCluster):
    async def fail() -> None:
        raise RuntimeError("broken")

    def compose(context: Context) -> list[Loop]:
        loop = Loop(context, CONFIG_MAPS)
        loop.controller.run = fail  # type: ignore[method-assign]
        return [loop]

    part, _ = controllers(agent_cluster, compose)
    await part.start()
    with pytest.raises(RuntimeError, match="broken"):
        await part.wait()
    await part.stop()


# --- kinds


def crd(group: str) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": "Widget", "plural": "widgets"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


@pytest.fixture
def group(cluster: Cluster, namespace: str) -> Iterator[str]:
    group = f"{namespace}.example.com"
    yield group
    with contextlib.suppress(Exception):
        cluster.api.delete(f"{CRDS}/widgets.{group}")


async def test_a_kind_that_comes_later_is_watched_soon_and_one_that_goes_is_forgotten(
    cluster: Cluster, namespace: str, agent_cluster: AgentCluster, group: str
):
    # By itself it would try again too late.
    patient = Timings(first_back_off=600, longest_back_off=600)
    caches = Caches(agent_cluster.client, namespaces=agent_cluster.namespaces, timings=patient)
    agent_cluster = replace(agent_cluster, caches=caches)
    widgets = Resource(group, "v1", "Widget", "widgets", namespaced=True)
    part, loops = controllers(agent_cluster, of(widgets))
    await part.start()
    (loop,) = loops
    assert group not in loop.groups
    with pytest.raises(Exception, match="no matches for kind"):
        await agent_cluster.discovery.find(f"{group}/v1", "Widget")
    await asyncio.to_thread(cluster.api.create, CRDS, crd(group))
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(Exception):
                await asyncio.to_thread(
                    cluster.api.create,
                    f"/apis/{group}/v1/namespaces/{namespace}/widgets",
                    {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "w"}},
                )
                break
            await asyncio.sleep(0.05)
    # Who was woken a moment before it was served would wait for long now, with these timings: once more, there is news.
    news = {"metadata": {"annotations": {"example.com/served": "true"}}}
    told = await asyncio.to_thread(cluster.api.patch, f"{CRDS}/widgets.{group}", news)
    await eventually(lambda: group in loop.groups)
    await eventually(lambda: loop.finished == ["w"])
    # The API server tells of a kind a moment after it serves it.
    async with asyncio.timeout(60):
        while await _found(agent_cluster, f"{group}/v1", "Widget") != widgets:
            await asyncio.sleep(0.05)

    crds = next(store for store in caches.stores() if store.view == CRDS_VIEW)
    await eventually(lambda: crds.version(key(told)) >= resource_version(told))
    loop.groups.clear()
    await asyncio.to_thread(cluster.api.delete, f"{CRDS}/widgets.{group}")
    await eventually(lambda: group in loop.groups)
    await part.stop()
    await caches.close()


async def _found(agent_cluster: AgentCluster, api_version: str, kind: str) -> Resource | None:
    with contextlib.suppress(KubeError):
        return await agent_cluster.discovery.find(api_version, kind)
    return None


async def test_without_the_right_to_see_kinds_everything_else_works(cluster: Cluster, namespace: str):
    user = f"reader-{namespace}"
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}
    cluster.api.create(f"{rbac}/roles", {"metadata": {"name": "reader"}, "rules": [rule]})
    cluster.api.create(
        f"{rbac}/rolebindings",
        {
            "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        },
    )
    add_config_map(cluster, namespace, "first")
    async with connected(cluster.kubeconfig_for(user), namespace) as agent_cluster:
        part, loops = controllers(agent_cluster, of(CONFIG_MAPS))
        async with asyncio.timeout(60):
            await part.start()
        await eventually(partial(_has_finished, loops, "first"))
        await part.stop()


def _has_finished(loops: list[Loop], name: str) -> bool:
    return name in loops[0].finished


async def test_a_cache_that_does_not_fill_in_time_is_named(cluster: Cluster, namespace: str):
    async with connected(cluster.kubeconfig_for(f"nobody-{namespace}"), namespace) as agent_cluster:
        part, loops = controllers(agent_cluster, of(CONFIG_MAPS), cacheSyncTimeout="1s")
        with pytest.raises(CachesNotSynced) as raised:
            await part.start()
        assert str(raised.value) == (
            "failed to wait for caches to sync within 1s (controllers.cacheSyncTimeout): "
            f"configmaps.v1 of the source cluster at {cluster.url}"
        )
        await part.stop()
        assert loops[0].closed
