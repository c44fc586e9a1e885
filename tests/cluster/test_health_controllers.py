"""The conditions ResourcesHealthy and ResourcesProgressing follow what happens to objects, without asking for it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from agent_clusters import cluster_of, context_of
from managed_world import install_crd
from prometheus_client import REGISTRY

from agent.api import MANAGED_RESOURCES, MANAGED_RESOURCES_VIEW
from agent.health.controller import HealthLoop, ProgressLoop
from agent.health.findings import Finding, Reference
from agent.health.passes import Passes
from agent.health.verdicts import Verdict, health_verdict
from agent.managed_kinds import ManagedKinds
from agent.status import StatusWriter
from config.schema_controllers import Controllers, Health
from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kube.cache import Store
from kube.client import Client, Transport
from kube.connection import load_kubeconfig
from kube.controller import RequeueAfter
from kube.errors import NotFound, TooManyRequests
from kube.objects import Key, Object, condition, metadata
from kube.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, Resource
from kube.watch import Present
from process.clusters import Cluster as AgentCluster

GROUP = "resources.gardener.cloud"
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments", namespaced=True)
PODS = Resource("", "v1", "Pod", "pods", namespaced=True)
SERVICES = Resource("", "v1", "Service", "services", namespaced=True)
EVENTS = Resource("", "v1", "Event", "events", namespaced=True)
PATIENCE = 60.0
"""Seconds in which everything comes true on the busiest machine."""
NEVER = 3600.0
"""Seconds that no test takes."""


class World:
    """The controllers, in a namespace of their own, and someone who changes things there."""

    def __init__(self, admin: Client, agent: AgentCluster, *, namespace: str, sync_period: float) -> None:
        self.admin = admin
        self.agent = agent
        self.namespace = namespace
        context = context_of(agent, Controllers(health=Health(sync_period=sync_period)))
        # All tests share a cluster: each has a label of its own.
        self.kinds = ManagedKinds(agent.caches, label_selector=f"{GROUP}/managed-by={namespace}")
        status = StatusWriter(agent.client, agent.caches.acquire(MANAGED_RESOURCES_VIEW), MANAGED_RESOURCES)
        self.loops = HealthLoop(context, self.kinds, status), ProgressLoop(context, self.kinds, status)

    def stamped(self, obj: Object) -> Object:
        meta = {
            "namespace": self.namespace,
            "labels": {f"{GROUP}/managed-by": self.namespace},
            "annotations": {f"{GROUP}/origin": f"{self.namespace}/mr"},
        }
        return {**obj, "metadata": {**meta, **obj["metadata"]}}

    async def managed_resource(self, *objects: Object) -> None:
        """A ManagedResource `mr` that claims to have applied these objects."""
        spec: Object = {"secretRefs": [{"name": "s"}]}
        created: Object = {
            "apiVersion": MANAGED_RESOURCES.api_version,
            "kind": "ManagedResource",
            "metadata": {"name": "mr", "namespace": self.namespace},
            "spec": spec,
        }
        await self.admin.create(MANAGED_RESOURCES, created)
        listed = [
            {
                "apiVersion": obj["apiVersion"],
                "kind": obj["kind"],
                "name": obj["metadata"]["name"],
                "namespace": self.namespace,
            }
            for obj in objects
        ]
        await self.set_status({"resources": listed, "conditions": [applied("True")]})

    async def set_status(self, status: Object) -> None:
        await self.admin.patch(
            MANAGED_RESOURCES, "mr", {"status": status}, namespace=self.namespace, subresource="status"
        )

    async def create(self, resource: Resource, obj: Object) -> None:
        await self.admin.create(resource, self.stamped(obj))

    async def patch(self, resource: Resource, name: str, patch: Object, *, subresource: str = "") -> None:
        await self.admin.patch(resource, name, patch, namespace=self.namespace, subresource=subresource)

    async def delete(self, resource: Resource, name: str) -> None:
        await self.admin.delete(resource, name, namespace=self.namespace, propagation="Background")

    async def told(self, condition_type: str) -> tuple[str, str]:
        """Status and reason of a condition."""
        obj = await self.admin.get(MANAGED_RESOURCES, "mr", namespace=self.namespace)
        found = condition(obj, condition_type) or {}
        return found.get("status", ""), found.get("reason", "")

    async def message(self, condition_type: str) -> str:
        obj = await self.admin.get(MANAGED_RESOURCES, "mr", namespace=self.namespace)
        return str((condition(obj, condition_type) or {}).get("message"))

    async def until(self, condition_type: str, *expected: str) -> float:
        """Waits until a condition has this status and reason; how many seconds that took."""
        began = time.monotonic()
        while (now := await self.told(condition_type)) != expected:
            assert time.monotonic() - began < PATIENCE, f"still {now}: {await self.message(condition_type)}"
            await asyncio.sleep(0.02)
        return time.monotonic() - began

    async def until_told(self, condition_type: str, message: str) -> None:
        """Waits until the message of a condition begins so: other words for a known problem are told later."""
        deadline = time.monotonic() + PATIENCE
        while not (told := await self.message(condition_type)).startswith(message):
            assert time.monotonic() < deadline, told
            await asyncio.sleep(0.05)

    async def healthy(self) -> float:
        return await self.until("ResourcesHealthy", "True", "ResourcesHealthy")

    async def rolled_out(self) -> float:
        return await self.until("ResourcesProgressing", "False", "ResourcesRolledOut")


def applied(status: str) -> Object:
    now = "2024-01-01T00:00:00Z"
    words = {"reason": "ApplySucceeded", "message": "m", "lastTransitionTime": now, "lastUpdateTime": now}
    return {"type": "ResourcesApplied", "status": status, **words}


def config_map(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def pod(name: str, **spec: Any) -> Object:
    """Nobody schedules it, so its status is whatever a test says."""
    containers = [{"name": "c", "image": "i"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"schedulerName": "nobody", "containers": containers, **spec},
    }


def deployment(name: str, *, replicas: int = 2, **pod_metadata: Any) -> Object:
    template = {
        "metadata": {"labels": {"app": name}, **pod_metadata},
        "spec": {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 0},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        },
    }


def image(name: str, **spec: Any) -> Object:
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": name}], **spec}}}}


async def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


@pytest.fixture(scope="session")
def managed_resources(cluster: Cluster) -> None:
    install_crd(cluster)


@asynccontextmanager
async def connected(
    cluster: Cluster, namespace: str, *, sync_period: float = 60.0, kubeconfig: Path | None = None
) -> AsyncIterator[World]:
    async with (
        Transport(load_kubeconfig(cluster.kubeconfig)) as direct,
        Transport(load_kubeconfig(kubeconfig or cluster.kubeconfig)) as transport,
    ):
        client = Client(transport, user_agent=f"health-of-{namespace}")
        agent = cluster_of(client, namespace)
        world = World(Client(direct, user_agent="test"), agent, namespace=namespace, sync_period=sync_period)
        try:
            yield world
        finally:
            for loop in world.loops:
                await loop.close()
            await world.kinds.close()
            await agent.caches.release(MANAGED_RESOURCES_VIEW)
            assert list(agent.caches.stores()) == []


@asynccontextmanager
async def running(
    cluster: Cluster, namespace: str, *, sync_period: float = 60.0, kubeconfig: Path | None = None
) -> AsyncIterator[World]:
    async with connected(cluster, namespace, sync_period=sync_period, kubeconfig=kubeconfig) as world:
        for loop in world.loops:
            await loop.start()
        tasks = [asyncio.create_task(loop.controller.run()) for loop in world.loops]
        try:
            yield world
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


@pytest.fixture
async def world(cluster: Cluster, namespace: str, managed_resources: None) -> AsyncIterator[World]:
    async with running(cluster, namespace) as world:
        yield world


@pytest.fixture
async def prompt_world(
    cluster: Cluster, namespace: str, managed_resources: None, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[World]:
    """Nothing shows in it because it is time, at the next regular look or later: only what is looked at at once."""
    monkeypatch.setattr("agent.health.triggers.LATER", NEVER)
    async with running(cluster, namespace, sync_period=NEVER) as world:
        yield world


# --- health


async def test_a_deployment_that_comes_up_is_healthy_and_rolled_out(world: World) -> None:
    web = deployment("web")
    await world.create(DEPLOYMENTS, web)
    await world.managed_resource(web)
    await world.healthy()
    await world.rolled_out()
    obj = await world.admin.get(MANAGED_RESOURCES, "mr", namespace=world.namespace)
    first, *others = [found["type"] for found in obj["status"]["conditions"]]
    assert first == "ResourcesApplied"
    assert sorted(others) == ["ResourcesHealthy", "ResourcesProgressing"]


async def test_a_deployment_that_degrades_is_told(world: World) -> None:
    web = deployment("web")
    await world.create(DEPLOYMENTS, web)
    await world.managed_resource(web)
    await world.healthy()
    await world.patch(DEPLOYMENTS, "web", image("new", nodeSelector={"no": "node"}))
    await world.until("ResourcesHealthy", "False", "DeploymentUnhealthy")
    # Until its controller has seen the change, it is told with other words.
    await world.until_told(
        "ResourcesHealthy",
        f'Deployment "{world.namespace}/web" is unhealthy: condition "Available" has invalid status False',
    )
    await world.patch(DEPLOYMENTS, "web", image("new", nodeSelector=None))
    await world.healthy()
    await world.rolled_out()


async def test_a_change_shows_at_once(prompt_world: World) -> None:
    world = prompt_world
    single = pod("p")
    await world.create(PODS, single)
    await world.managed_resource(single)
    await world.until("ResourcesHealthy", "False", "PodUnhealthy")
    for phase, expected in (("Running", ("True", "ResourcesHealthy")), ("Failed", ("False", "PodUnhealthy"))):
        await world.patch(PODS, "p", {"status": {"phase": phase}}, subresource="status")
        await world.until("ResourcesHealthy", *expected)


async def test_the_first_object_in_stored_order_is_told(world: World) -> None:
    objects = [pod("a"), config_map("missing"), pod("b")]
    for obj in (objects[0], objects[2]):
        await world.create(PODS, obj)
    await world.managed_resource(*objects)
    await world.until("ResourcesHealthy", "False", "PodUnhealthy")
    assert (await world.message("ResourcesHealthy")).startswith(f'Pod "{world.namespace}/a"')
    await world.patch(PODS, "a", {"status": {"phase": "Running"}}, subresource="status")
    await world.until("ResourcesHealthy", "False", "ConfigMapMissing")


async def test_an_object_is_missed_and_found_at_once(prompt_world: World) -> None:
    world = prompt_world
    await world.managed_resource(config_map("c"))
    await world.until("ResourcesHealthy", "False", "ConfigMapMissing")
    assert await world.message("ResourcesHealthy") == (
        f'Required ConfigMap "c" in namespace "{world.namespace}" is missing'
    )
    await world.create(CONFIG_MAPS, config_map("c"))
    await world.healthy()
    await world.delete(CONFIG_MAPS, "c")
    await world.until("ResourcesHealthy", "False", "ConfigMapMissing")


async def test_an_object_without_our_label_is_not_missed(world: World) -> None:
    foreign = config_map("foreign")
    foreign["metadata"]["namespace"] = world.namespace
    await world.admin.create(CONFIG_MAPS, foreign)
    await world.managed_resource(config_map("foreign"))
    await world.healthy()


async def test_a_service_is_told_with_its_warnings(world: World) -> None:
    service: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "lb"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    }
    about = {"apiVersion": "v1", "kind": "Service", "name": "lb", "namespace": world.namespace}
    warning: Object = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": world.namespace},
        "involvedObject": about,
        "type": "Warning",
        "reason": "SyncLoadBalancerFailed",
        "message": "quota exceeded",
        "source": {"component": "service-controller"},
    }
    await world.admin.create(EVENTS, warning)
    await world.create(SERVICES, service)
    await world.managed_resource(service)
    await world.until("ResourcesHealthy", "False", "ServiceUnhealthy")
    assert await world.message("ResourcesHealthy") == (
        f'Service "{world.namespace}/lb" is unhealthy: service is missing ingress status\n\n'
        "-> Events:\n* service-controller reported <unknown> ago: quota exceeded"
    )


async def test_warnings_about_a_service_are_not_looked_up_again_while_nothing_changes(
    cluster: Cluster, namespace: str, managed_resources: None, audit: Audit
) -> None:
    service: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "lb"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    }
    async with running(cluster, namespace) as world:
        await world.create(SERVICES, service)
        await world.managed_resource(service)
        await world.until("ResourcesHealthy", "False", "ServiceUnhealthy")
        await look_again(world)
    calls = await asyncio.to_thread(audit.calls, user_agent=f"health-of-{namespace}", verbs=["list"])
    assert len([call for call in calls if call.resource == "events"]) == 1


async def test_a_kind_that_comes_late_is_noticed(prompt_world: World) -> None:
    world = prompt_world
    group = f"{world.namespace}.example.com"
    names = {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    crd: Object = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    widgets = Resource(group, "v1", "Widget", "widgets", namespaced=True)
    widget: Object = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "w"}}
    await world.managed_resource(widget)
    await world.until("ResourcesHealthy", "False", "WidgetMissing")
    assert (await world.message("ResourcesHealthy")).endswith(
        f'is missing: no matches for kind "Widget" in version "{group}/v1"'
    )
    await world.rolled_out()
    await world.admin.create(CUSTOM_RESOURCE_DEFINITIONS, crd)
    try:
        async with asyncio.timeout(60):
            while True:
                try:
                    await world.create(widgets, widget)
                    break
                except (NotFound, TooManyRequests):
                    await asyncio.sleep(0.05)
            # Its objects may be served before the API server tells of the kind.
            while not await is_discovered(world, widgets):
                await asyncio.sleep(0.05)
        world.agent.discovery.invalidate(group)
        for loop in world.loops:
            loop.kinds_changed(group)
        await world.healthy()
        await world.delete(widgets, "w")
        await world.until("ResourcesHealthy", "False", "WidgetMissing")
    finally:
        await world.admin.delete(CUSTOM_RESOURCE_DEFINITIONS, f"widgets.{group}")


async def is_discovered(world: World, resource: Resource) -> bool:
    try:
        served = await world.admin.read(f"/apis/{resource.api_version}")
    except NotFound:
        return False
    return resource.kind in {entry["kind"] for entry in served["resources"]}


async def test_what_may_not_be_listed_is_read(
    cluster: Cluster, namespace: str, managed_resources: None, audit: Audit
) -> None:
    role = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rules = [
        {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
    ]
    cluster.api.create(f"{role}/roles", {"metadata": {"name": "reader"}, "rules": rules})
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    binding = {"metadata": {"name": "reader"}, "subjects": [subject], "roleRef": reference}
    cluster.api.create(f"{role}/rolebindings", binding)
    # A regular look would read it once more.
    kubeconfig = cluster.kubeconfig_for(namespace)
    async with running(cluster, namespace, sync_period=NEVER, kubeconfig=kubeconfig) as world:
        await world.create(CONFIG_MAPS, config_map("there"))
        await world.managed_resource(config_map("there"))
        await world.healthy()
        reads = await asyncio.to_thread(audit.calls, user_agent=f"health-of-{namespace}", verbs=("get",))
        assert [call.name for call in reads if call.resource == "configmaps"] == ["there"]


# --- progress


async def test_a_rollout_is_progress(world: World) -> None:
    web = deployment("web")
    await world.create(DEPLOYMENTS, web)
    await world.managed_resource(web)
    await world.rolled_out()
    await world.patch(DEPLOYMENTS, "web", image("new", nodeSelector={"no": "node"}))
    await world.until("ResourcesProgressing", "True", "DeploymentProgressing")
    await world.patch(DEPLOYMENTS, "web", image("new", nodeSelector=None))
    await world.rolled_out()


async def test_pods_that_linger_are_progress_until_they_are_gone(world: World) -> None:
    web = deployment("web", replicas=1, finalizers=["example.com/stay"])
    # With this one the Deployment does not wait for its old pods; we do.
    web["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await world.create(DEPLOYMENTS, web)
    await world.managed_resource(web)
    await world.rolled_out()
    [old] = await pods_of(world, "web")
    await world.patch(DEPLOYMENTS, "web", image("new"))
    lingering = f'Deployment "{world.namespace}/web" is progressing: there are still non-terminated old pods'
    deadline = time.monotonic() + 60
    while (told := await world.message("ResourcesProgressing")) != lingering:
        assert time.monotonic() < deadline, told
        await asyncio.sleep(0.05)
    await world.patch(PODS, old, {"metadata": {"finalizers": None}})
    await world.rolled_out()
    for name in await pods_of(world, "web"):
        await world.patch(PODS, name, {"metadata": {"finalizers": None}})


async def pods_of(world: World, app: str) -> list[str]:
    found = await world.admin.list(PODS)
    return [
        obj["metadata"]["name"]
        for obj in found
        if metadata(obj).get("namespace") == world.namespace and metadata(obj)["labels"].get("app") == app
    ]


# --- what it costs


def passes(name: str) -> float:
    labels = {"controller": name, "result": "requeue_after"}
    return REGISTRY.get_sample_value("controller_runtime_reconcile_total", labels) or 0.0


async def look_again(world: World, *, times: int = 4) -> None:
    """Has passes of both controllers; when the second one is over, all are that began before."""
    for loop in world.loops:
        for _ in range(times):
            before = passes(loop.controller.name)
            loop.controller.queue.add(Key(world.namespace, "mr"))
            await eventually(lambda name=loop.controller.name, before=before: passes(name) > before)


async def test_nothing_is_asked_and_nothing_written_at_rest(
    cluster: Cluster, namespace: str, managed_resources: None, audit: Audit
) -> None:
    async with running(cluster, namespace) as world:
        objects = [config_map("c"), deployment("web"), pod("p")]
        await world.create(CONFIG_MAPS, objects[0])
        await world.create(DEPLOYMENTS, objects[1])
        await world.create(PODS, objects[2])
        await world.managed_resource(*objects)
        await world.until("ResourcesHealthy", "False", "PodUnhealthy")
        await world.rolled_out()
        await look_again(world)  # the calls that led here are over, and in the audit log, then
        mark = await asyncio.to_thread(audit.mark)
        await look_again(world)
        agent = f"health-of-{namespace}"
        assert await asyncio.to_thread(audit.calls, since=mark, user_agent=agent, watches=True) == []

        # A pod that is as bad as before is worth no write either.
        await world.patch(PODS, "p", {"metadata": {"labels": {"some": "thing"}}})
        await asyncio.sleep(1)
        assert await asyncio.to_thread(audit.calls, since=mark, user_agent=agent, watches=True) == []


async def test_a_kind_is_watched_as_long_as_somebody_needs_it(world: World) -> None:
    web = deployment("web", replicas=0)
    await world.create(DEPLOYMENTS, web)
    await world.create(CONFIG_MAPS, config_map("c"))
    await world.managed_resource(config_map("c"), web)
    await world.healthy()
    await world.rolled_out()
    # One watch a kind serves both controllers.
    watched = sorted(store.view.resource.kind for store in world.agent.caches.stores())
    assert watched == ["ConfigMap", "Deployment", "ManagedResource", "Pod"]
    await world.delete(MANAGED_RESOURCES, "mr")
    await eventually(lambda: {store.view.resource.kind for store in world.agent.caches.stores()} == {"ManagedResource"})


# --- others write the same status


class AllIsFine:
    async def findings(self, managed_resource: Key, references: Sequence[Reference]) -> list[Finding]:
        return []

    async def forget(self, managed_resource: Key) -> None:
        pass

    def verdict(self, findings: Sequence[Finding]) -> Verdict:
        return health_verdict(findings)


OTHER = {**applied("True"), "type": "Other"}
RESOURCE = {"apiVersion": "v1", "kind": "ConfigMap", "name": "new", "namespace": "a"}


@pytest.mark.parametrize(
    ("meanwhile", "expected"),
    [
        ({"conditions": [applied("True"), OTHER]}, ["ResourcesApplied", "Other", "ResourcesHealthy"]),
        # What was found is not about this any more.
        ({"conditions": [applied("Progressing")]}, ["ResourcesApplied"]),
        ({"resources": [RESOURCE]}, ["ResourcesApplied"]),
    ],
)
async def test_what_others_wrote_meanwhile_is_respected(
    meanwhile: Object, expected: list[str], cluster: Cluster, namespace: str, managed_resources: None
) -> None:
    async with connected(cluster, namespace) as world:
        await world.managed_resource()
        stale = Store(MANAGED_RESOURCES_VIEW)
        stale.source("").apply(Present(await world.admin.get(MANAGED_RESOURCES, "mr", namespace=namespace)))
        await world.set_status(meanwhile)
        passes = Passes(
            walk=AllIsFine(),
            status=StatusWriter(world.agent.client, stale, MANAGED_RESOURCES),
            store=stale,
            resource_class="resources",
            sync_period=60,
            now=lambda: datetime.now(UTC),
        )
        assert isinstance(await passes.reconcile(Key(namespace, "mr")), RequeueAfter)
        obj = await world.admin.get(MANAGED_RESOURCES, "mr", namespace=namespace)
        assert [found["type"] for found in obj["status"]["conditions"]] == expected
