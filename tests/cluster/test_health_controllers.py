"""The conditions ResourcesHealthy and ResourcesProgressing follow what happens to objects, without asking for it."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.resource_manager.common.views import MANAGED_RESOURCES_VIEW
from agent.resource_manager.health.checks import Found
from agent.resource_manager.health.conditions import health_condition
from agent.resource_manager.health.controller import declare_health, declare_progress
from agent.resource_manager.health.reconcile import Reconciler
from config.resource_manager.controllers import Controllers, Health
from devcluster.audit import Audit
from devcluster.cluster import Cluster
from gardener.health.findings import Finding, Reference
from kit.controllers import at_work, cluster_of, context_of, counted
from kit.eventually import no_problem, soon
from kit.kinds import custom_resource, definition
from kit.objects import (
    config_map,
    deployment,
    managed_resource,
    obj,
    reference,
    rule,
    service,
    service_warning,
    stateful_set,
    unscheduled_pod,
)
from kit.rbac import grant
from kit.world import World, connected
from kube.apply.kinds import ManagedKinds
from kube.conditions import Condition
from kube.errors import KindNotServed, NoStatus, TooManyRequests
from kube.objects import Key, Object, labels, metadata
from kube.resources import EVENTS, Resource
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import RequeueAfter
from kube.runtime.loop import ControlLoop
from kube.runtime.status import StatusWriter
from kube.runtime.watch import Present
from process.clusters import Cluster as AgentCluster

GROUP = "resources.gardener.cloud"
NEVER = 3600.0
"""Seconds that no test takes."""


class HealthWorld(World):
    """What the controllers look at and what they write; and themselves, where they are `running`."""

    agent: AgentCluster
    loops: Sequence[ControlLoop]

    def marked(self, obj: Object) -> Object:
        """As the agent would have created it."""
        marks = {
            "labels": {f"{GROUP}/managed-by": self.namespace},
            "annotations": {f"{GROUP}/origin": f"{self.namespace}/mr"},
        }
        return {**obj, "metadata": {**obj["metadata"], **marks}}

    async def create_managed(self, *objects: Object) -> None:
        for each in objects:
            await self.create(self.marked(each))

    async def managed_resource(self, *objects: Object) -> None:
        """A ManagedResource `mr` that claims to have applied these objects."""
        await self.create(managed_resource("mr"))
        listed = [
            reference(f"{each['apiVersion']} {each['kind']}", f"{self.namespace}/{metadata(each)['name']}")
            for each in objects
        ]
        await self.set_status({"resources": listed, "conditions": [applied("True")]})

    async def managed(self, *objects: Object) -> None:
        """What the agent would have created, with its ManagedResource."""
        await self.create_managed(*objects)
        await self.managed_resource(*objects)

    async def set_status(self, status: Object) -> None:
        await self.patch("ManagedResource", "mr", {"status": status}, subresource="status")

    async def message(self, condition_type: str) -> str:
        return str((await self.condition("mr", condition_type)).get("message"))

    async def until(self, condition_type: str, *expected: str) -> float:
        """Waits until a condition has this status and reason; how many seconds that took."""

        async def problem() -> str:
            found = await self.condition("mr", condition_type)
            return "" if (found.get("status"), found.get("reason")) == expected else f"still {found}"

        began = time.monotonic()
        await no_problem(problem)
        return time.monotonic() - began

    async def until_reported(self, condition_type: str, message: str) -> None:
        """Waits until the message of a condition begins so: other words for a known problem are reported later."""

        async def problem() -> str:
            reported = await self.message(condition_type)
            return "" if reported.startswith(message) else reported

        await no_problem(problem)

    async def healthy(self) -> float:
        return await self.until("ResourcesHealthy", "True", "ResourcesHealthy")

    async def rolled_out(self) -> float:
        return await self.until("ResourcesProgressing", "False", "ResourcesRolledOut")


def applied(status: str) -> Object:
    now = "2024-01-01T00:00:00Z"
    words = {"reason": "ApplySucceeded", "message": "m", "lastTransitionTime": now, "lastUpdateTime": now}
    return {"type": "ResourcesApplied", "status": status, **words}


def web(*, replicas: int = 2, finalizers: Sequence[str] = (), strategy: Object | None = None) -> Object:
    obj = deployment(
        "web", replicas=replicas, strategy=strategy or {"type": "Recreate"}, pod={"terminationGracePeriodSeconds": 0}
    )
    obj["spec"]["template"]["metadata"]["finalizers"] = list(finalizers)
    return obj


LOAD_BALANCER = service("lb", type="LoadBalancer")


def image(name: str, **spec: Any) -> Object:
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": name}], **spec}}}}


@asynccontextmanager
async def running(
    cluster: Cluster, namespace: str, *, sync_period: float = 60.0, kubeconfig: Path | None = None
) -> AsyncIterator[HealthWorld]:
    async with connected(cluster) as admin, connected(kubeconfig or cluster, f"health-of-{namespace}") as client:
        world = HealthWorld(admin, namespace)
        world.agent = agent = cluster_of(client, namespace)
        context = context_of(agent, Controllers(health=Health(sync_period=sync_period)))
        # All tests share a cluster: each has a label of its own.
        kinds = ManagedKinds(agent.caches, label_selector=f"{GROUP}/managed-by={namespace}")
        status = StatusWriter(client, agent.caches.acquire(MANAGED_RESOURCES_VIEW))
        world.loops = [declare(context, kinds, status).loop for declare in (declare_health, declare_progress)]

        async def release_shared() -> None:
            await kinds.close()
            await agent.caches.release(MANAGED_RESOURCES_VIEW)

        async with at_work(context, *world.loops, release_shared=release_shared):
            yield world


@pytest.fixture
async def world(cluster: Cluster, namespace: str, managed_resources: None) -> AsyncIterator[HealthWorld]:
    async with running(cluster, namespace) as world:
        yield world


@pytest.fixture
async def prompt_world(
    cluster: Cluster, namespace: str, managed_resources: None, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[HealthWorld]:
    """Nothing shows in it because it is time, at the next regular look or later: only what is looked at at once."""
    monkeypatch.setattr("agent.resource_manager.health.predicates.LATER", NEVER)
    async with running(cluster, namespace, sync_period=NEVER) as world:
        yield world


# --- health


async def test_a_deployment_that_comes_up_is_healthy_and_rolled_out(world: HealthWorld) -> None:
    await world.managed(web())
    await world.healthy()
    await world.rolled_out()
    obj = await world.get("ManagedResource", "mr")
    first, *others = [found["type"] for found in obj["status"]["conditions"]]
    assert first == "ResourcesApplied"
    assert sorted(others) == ["ResourcesHealthy", "ResourcesProgressing"]


async def test_a_deployment_that_degrades_is_reported(world: HealthWorld) -> None:
    await world.managed(web())
    await world.healthy()
    await world.patch("Deployment", "web", image("new", nodeSelector={"no": "node"}))
    await world.until("ResourcesHealthy", "False", "DeploymentUnhealthy")
    # Until its controller has seen the change, it is reported with other words.
    await world.until_reported(
        "ResourcesHealthy",
        f'Deployment "{world.namespace}/web" is unhealthy: condition "Available" has invalid status False',
    )
    await world.patch("Deployment", "web", image("new", nodeSelector=None))
    await world.healthy()
    await world.rolled_out()


async def test_a_change_shows_at_once(prompt_world: HealthWorld) -> None:
    world = prompt_world
    await world.managed(unscheduled_pod("p"))
    await world.until("ResourcesHealthy", "False", "PodUnhealthy")
    for phase, expected in (("Running", ("True", "ResourcesHealthy")), ("Failed", ("False", "PodUnhealthy"))):
        await world.patch("Pod", "p", {"status": {"phase": phase}}, subresource="status")
        await world.until("ResourcesHealthy", *expected)


async def test_the_first_object_in_stored_order_is_reported(world: HealthWorld) -> None:
    first, last = unscheduled_pod("a"), unscheduled_pod("b")
    await world.create_managed(first, last)
    await world.managed_resource(first, config_map("missing"), last)
    await world.until("ResourcesHealthy", "False", "PodUnhealthy")
    assert (await world.message("ResourcesHealthy")).startswith(f'Pod "{world.namespace}/a"')
    await world.patch("Pod", "a", {"status": {"phase": "Running"}}, subresource="status")
    await world.until("ResourcesHealthy", "False", "ConfigMapMissing")


async def test_an_object_is_missed_and_found_at_once(prompt_world: HealthWorld) -> None:
    world = prompt_world
    await world.managed_resource(config_map("c"))
    await world.until("ResourcesHealthy", "False", "ConfigMapMissing")
    assert await world.message("ResourcesHealthy") == (
        f'Required ConfigMap "c" in namespace "{world.namespace}" is missing'
    )
    await world.create_managed(config_map("c"))
    await world.healthy()
    await world.delete("ConfigMap", "c", propagation="Background")
    await world.until("ResourcesHealthy", "False", "ConfigMapMissing")


async def test_an_object_without_our_label_is_not_missed(world: HealthWorld) -> None:
    await world.create(config_map("foreign"))
    await world.managed_resource(config_map("foreign"))
    await world.healthy()


async def test_a_service_is_reported_with_its_warnings(world: HealthWorld) -> None:
    await world.create(service_warning(f"{world.namespace}/lb", "quota exceeded"))
    await world.managed(LOAD_BALANCER)
    await world.until("ResourcesHealthy", "False", "ServiceUnhealthy")
    message = await world.message("ResourcesHealthy")
    # Kubernetes itself warns of a Service that is new, now and then.
    assert message.startswith(
        f'Service "{world.namespace}/lb" is unhealthy: service is missing ingress status\n\n-> Events:\n* '
    )
    assert "* service-controller reported <unknown> ago: quota exceeded" in message.splitlines()


async def test_a_service_without_warnings_is_reported_with_what_it_lacks(world: HealthWorld) -> None:
    await world.managed(service("lb", type="LoadBalancer", loadBalancerClass="example.com/none"))
    await world.until("ResourcesHealthy", "False", "ServiceUnhealthy")
    assert "; cause: it has no load balancer; " in await world.message("ResourcesHealthy")


async def until_in_message(world: HealthWorld, condition_type: str, text: str) -> None:
    async def problem() -> str:
        message = await world.message(condition_type)
        return "" if text in message else message

    await no_problem(problem)


async def test_a_workload_is_reported_with_what_its_pods_state(world: HealthWorld) -> None:
    await world.managed(deployment("web", replicas=1, pod={"schedulerName": "none"}))
    await world.until("ResourcesHealthy", "False", "DeploymentUnhealthy")

    async def pod() -> str:
        names = [metadata(each)["name"] for each in await world.list("Pod")]
        return names[0] if names else ""

    await soon(pod)
    name = await pod()
    missing = {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
    waiting = {**missing, "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}
    await world.patch("Pod", name, {"status": {"containerStatuses": [waiting]}}, subresource="status")
    cause = f"; cause: Pod/{world.namespace}/{name}, container c: ErrImagePull: not found"
    for condition_type in ("ResourcesHealthy", "ResourcesProgressing"):
        await until_in_message(world, condition_type, cause)


async def test_a_workload_whose_pods_can_not_be_created_is_reported_with_its_warnings(world: HealthWorld) -> None:
    refused = 'create Pod db-0 in StatefulSet db failed error: pods "db-0" is forbidden: exceeded quota: none'
    about = reference("apps/v1 StatefulSet", f"{world.namespace}/db")
    await world.create(obj("v1 ResourceQuota", "none", spec={"hard": {"pods": "0"}}))
    await world.create(
        obj(EVENTS, "e", involvedObject=about, type="Warning", reason="FailedCreate", message=refused, source={})
    )
    await world.managed(stateful_set("db", replicas=1, volumeClaimTemplates=[]))
    await until_in_message(world, "ResourcesHealthy", f"{refused}")
    await until_in_message(world, "ResourcesProgressing", f"{refused}")


async def test_warnings_about_a_service_are_not_looked_up_again_while_nothing_changes(
    cluster: Cluster, namespace: str, managed_resources: None, audit: Audit
) -> None:
    async with running(cluster, namespace) as world:
        await world.managed(LOAD_BALANCER)
        await world.until("ResourcesHealthy", "False", "ServiceUnhealthy")
        await look_again(world)
    calls = await asyncio.to_thread(audit.calls, user_agent=f"health-of-{namespace}", verbs=["list"])
    assert len([call for call in calls if call.resource == "events"]) == 1


async def test_a_kind_that_comes_late_is_noticed(prompt_world: HealthWorld) -> None:
    world = prompt_world
    group = f"{world.namespace}.example.com"
    widgets = custom_resource(group, "Widget")
    widget = obj(widgets, "w")
    await world.managed_resource(widget)
    await world.until("ResourcesHealthy", "False", "WidgetMissing")
    assert (await world.message("ResourcesHealthy")).endswith(
        f'is missing: no matches for kind "Widget" in version "{group}/v1"'
    )
    await world.rolled_out()
    await world.create(definition(widgets))
    try:
        await soon(
            lambda: world.create(world.marked(widget), widgets), passing=(KindNotServed, NoStatus, TooManyRequests)
        )
        # Its objects may be served before the API server announces the kind.
        await soon(lambda: is_discovered(world, widgets))
        world.agent.discovery.invalidate(group)
        for loop in world.loops:
            loop.kinds_changed(group)
        await world.healthy()
        await world.delete(widgets, "w", propagation="Background")
        await world.until("ResourcesHealthy", "False", "WidgetMissing")
    finally:
        await world.delete("CustomResourceDefinition", f"widgets.{group}")


async def is_discovered(world: HealthWorld, resource: Resource) -> bool:
    try:
        served = await world.client.read(f"/apis/{resource.api_version}")
    except NoStatus:
        return False
    return resource.kind in {entry["kind"] for entry in served["resources"]}


async def test_what_may_not_be_listed_is_read(
    cluster: Cluster, namespace: str, managed_resources: None, audit: Audit
) -> None:
    grant(cluster, namespace, rule(GROUP, "*"), rule("", "configmaps", "get"), namespace=namespace)
    # A regular look would read it once more.
    kubeconfig = cluster.kubeconfig_for(namespace)
    async with running(cluster, namespace, sync_period=NEVER, kubeconfig=kubeconfig) as world:
        await world.managed(config_map("there"))
        await world.healthy()
        reads = await asyncio.to_thread(audit.calls, user_agent=f"health-of-{namespace}", verbs=("get",))
        assert [call.name for call in reads if call.resource == "configmaps"] == ["there"]


# --- progress


async def test_a_rollout_is_progress(world: HealthWorld) -> None:
    await world.managed(web())
    await world.rolled_out()
    await world.patch("Deployment", "web", image("new", nodeSelector={"no": "node"}))
    await world.until("ResourcesProgressing", "True", "DeploymentProgressing")
    await world.patch("Deployment", "web", image("new", nodeSelector=None))
    await world.rolled_out()


async def test_pods_that_linger_are_progress_until_they_are_gone(world: HealthWorld) -> None:
    # With this strategy the Deployment does not wait for its old pods; we do.
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await world.managed(web(replicas=1, finalizers=["example.com/stay"], strategy=strategy))
    await world.rolled_out()
    [old] = await pods_of(world, "web")
    await world.patch("Deployment", "web", image("new"))
    lingering = f'Deployment "{world.namespace}/web" is progressing: there are still non-terminated old pods'
    await world.until_reported("ResourcesProgressing", lingering)
    assert await world.message("ResourcesProgressing") == lingering
    await world.patch("Pod", old, {"metadata": {"finalizers": None}})
    await world.rolled_out()
    for name in await pods_of(world, "web"):
        await world.patch("Pod", name, {"metadata": {"finalizers": None}})


async def pods_of(world: World, app: str) -> list[str]:
    return [metadata(obj)["name"] for obj in await world.list("Pod") if labels(obj).get("app") == app]


# --- what it costs


def passes(name: str) -> float:
    return counted("controller_runtime_reconcile_total", controller=name, result="requeue_after")


async def look_again(world: HealthWorld, *, times: int = 4) -> None:
    """Has passes of both controllers; when the second one is over, all are that began before."""
    for loop in world.loops:
        for _ in range(times):
            before = passes(loop.controller.name)
            loop.controller.queue.add(Key(world.namespace, "mr"))
            await soon(lambda name=loop.controller.name, before=before: passes(name) > before)  # type: ignore[misc]


async def test_nothing_is_queried_and_nothing_written_in_steady_state(
    cluster: Cluster, namespace: str, managed_resources: None, audit: Audit
) -> None:
    async with running(cluster, namespace) as world:
        await world.managed(config_map("c"), web(), unscheduled_pod("p"))
        await world.until("ResourcesHealthy", "False", "PodUnhealthy")
        await world.rolled_out()
        await look_again(world)  # the calls that led here are over, and in the audit log, then
        mark = await asyncio.to_thread(audit.mark)
        await look_again(world)
        agent = f"health-of-{namespace}"
        assert await asyncio.to_thread(audit.calls, since=mark, user_agent=agent, watches=True) == []

        # A pod that is as bad as before is worth no write either.
        await world.patch("Pod", "p", {"metadata": {"labels": {"some": "thing"}}})
        await asyncio.sleep(1)
        assert await asyncio.to_thread(audit.calls, since=mark, user_agent=agent, watches=True) == []


async def test_nothing_is_looked_at_while_objects_are_applied(prompt_world: HealthWorld) -> None:
    world = prompt_world
    await world.managed(config_map("c"))
    await world.healthy()
    await world.rolled_out()
    await look_again(world)
    before = [passes(loop.controller.name) for loop in world.loops]
    await world.set_status({"conditions": [applied("Progressing")]})
    await world.delete("ConfigMap", "c")
    await asyncio.sleep(1)
    assert [passes(loop.controller.name) for loop in world.loops] == before
    await world.set_status({"conditions": [applied("True")]})
    await world.until("ResourcesHealthy", "False", "ConfigMapMissing")


async def test_a_kind_is_watched_as_long_as_a_user_needs_it(world: HealthWorld) -> None:
    await world.managed(config_map("c"), web(replicas=0))
    await world.healthy()
    await world.rolled_out()
    # One watch a kind serves both controllers.
    watched = sorted(store.view.resource.kind for store in world.agent.caches.stores())
    assert watched == ["ConfigMap", "Deployment", "ManagedResource", "Pod"]
    await world.delete("ManagedResource", "mr", propagation="Background")
    await soon(lambda: {store.view.resource.kind for store in world.agent.caches.stores()} == {"ManagedResource"})


# --- others write the same status


class AllIsFine:
    """Finds nothing."""

    async def look(
        self, managed_resource: Key, references: Sequence[Reference], *, only_applied: bool = False
    ) -> Found:
        return Found()

    def known(self, managed_resource: Key, references: Sequence[Reference], *, only_applied: bool = False) -> Found:
        return Found()

    def remembered(self, reference: Reference) -> Finding | None:
        return None

    async def forget(self, managed_resource: Key) -> None:
        pass

    def condition(self, found: Found, *, only_applied: bool = False) -> Condition:
        return health_condition(found.findings)


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
    meanwhile: Object, expected: list[str], admin: Client, namespace: str, managed_resources: None
) -> None:
    world = HealthWorld(admin, namespace)
    await world.managed_resource()
    stale = Store(MANAGED_RESOURCES_VIEW)
    stale.source("").apply(Present(await world.get("ManagedResource", "mr")))
    await world.set_status(meanwhile)
    reconciler = Reconciler(
        check=AllIsFine(),
        status=StatusWriter(admin, stale),
        store=stale,
        resource_class="resources",
        sync_period=60,
    )
    assert isinstance(await reconciler.reconcile(Key(namespace, "mr")), RequeueAfter)
    obj = await world.get("ManagedResource", "mr")
    assert [found["type"] for found in obj["status"]["conditions"]] == expected
