"""Regular passes over ManagedResources: left out while nothing has changed, and what they find that no event reports."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from agent.resource_manager.controllers import compose_controllers
from agent.resource_manager.managed_resource.source import Source
from config.resource_manager.controllers import Controllers, Health, ManagedResource
from devcluster.cluster import Cluster
from kit import objects
from kit.controllers import at_work, cluster_of, context_of, counted
from kit.eventually import soon
from kit.managed_resources import ManagedWorld, config_map, role, service
from kit.objects import obj
from kit.world import connected
from kube.errors import NotFound
from kube.objects import condition
from kube.resources import HORIZONTAL_POD_AUTOSCALERS
from kube.runtime.client import Client

CONTROLLERS = ("managedresource", "health", "health-progressing")
PERIOD = 0.2


@asynccontextmanager
async def at_work_in(client: Client, namespace: str) -> AsyncIterator[ManagedWorld]:
    """The three controllers of ManagedResources, which look at all regularly at very short intervals."""
    world = ManagedWorld(client, namespace)
    world.managed_by = namespace
    cluster = cluster_of(client, namespace)
    settings = ManagedResource(sync_period=PERIOD, managed_by_label_value=namespace)
    context = context_of(cluster, Controllers(managed_resource=settings, health=Health(sync_period=PERIOD)))
    source = Source(client=client, caches=cluster.caches, memory=1 << 20)
    loops = compose_controllers(context, (), source_objects=source)
    async with at_work(context, *loops, release_shared=source.close):
        yield world


def passes(controllers: Sequence[str] = CONTROLLERS) -> list[float]:
    metric = "controller_runtime_reconcile_total"
    return [counted(metric, controller=each, result="requeue_after") for each in controllers]


async def rest(controllers: Sequence[str] = CONTROLLERS, *, looks: int) -> None:
    """Until each controller has found so many regular passes needless, one after the other."""

    def put_off() -> list[float]:
        return [counted("workqueue_retries_total", controller=each, name=each) for each in controllers]

    before, since = passes(controllers), put_off()

    def are_needless() -> bool:
        nonlocal before, since
        if passes(controllers) != before:
            before, since = passes(controllers), put_off()
        return all(now >= then + looks for now, then in zip(put_off(), since, strict=True))

    await soon(are_needless)


async def test_a_regular_pass_without_new_input_is_left_out(
    cluster: Cluster, namespace: str, managed_resources: None
) -> None:
    async with connected(cluster, f"rest-{namespace}") as client, at_work_in(client, namespace) as world:
        await world.want({f"mr-{n}": [config_map(f"c{n}"), role(f"r{n}"), service(f"s{n}")] for n in range(3)})
        await world.settle()
        await rest(looks=30)
        before = passes()
        await world.patch("ConfigMap", "c1", {"data": {"version": "by hand"}})
        await world.settle()
        await rest(looks=30)
        after = passes()
        assert after[0] > before[0]
        # Each was reconciled at most once for its change and once in the following regular pass, not all three of them.
        assert all(later - earlier <= 4 for earlier, later in zip(before, after, strict=True))


async def test_a_regular_pass_puts_a_status_right(cluster: Cluster, namespace: str, managed_resources: None) -> None:
    """No event of a status leads to a pass at once."""
    async with connected(cluster, f"rest-{namespace}") as client, at_work_in(client, namespace) as world:
        await world.want({"a": [config_map("a")]})
        await world.settle()
        await rest(looks=5)
        for kind in ("ResourcesApplied", "ResourcesHealthy", "ResourcesProgressing"):
            present = await world.get("ManagedResource", "a")
            others = [each for each in present["status"]["conditions"] if each["type"] != kind]
            await world.patch("ManagedResource", "a", {"status": {"conditions": others}}, subresource="status")

            async def is_back(kind: str = kind) -> bool:
                return condition(await world.get("ManagedResource", "a"), kind) is not None

            await soon(is_back)


async def test_a_regular_pass_finds_that_an_autoscaler_is_gone(
    cluster: Cluster, namespace: str, managed_resources: None
) -> None:
    """No event of an autoscaler leads to a pass at once."""
    async with connected(cluster, f"rest-{namespace}") as client, at_work_in(client, namespace) as world:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
        scaler = obj(
            HORIZONTAL_POD_AUTOSCALERS, "h", spec={"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 5}
        )
        await world.create(scaler)
        await world.want({"a": [objects.deployment("d", replicas=0)]})

        async def replicas() -> int:
            try:
                return int((await world.get("Deployment", "d"))["spec"]["replicas"])
            except NotFound:
                return -1

        async def is_restored() -> bool:
            return await replicas() == 0

        await soon(is_restored)
        await world.patch("Deployment", "d", {"spec": {"replicas": 1}})
        await rest(["managedresource"], looks=5)
        assert await replicas() == 1
        await world.delete("HorizontalPodAutoscaler", "h")
        await soon(is_restored)
