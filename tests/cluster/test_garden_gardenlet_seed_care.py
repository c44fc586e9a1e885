"""The condition of a Seed reports how the components in its cluster are, and nothing from before the last write."""

import contextlib
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from agent.gardenlet.context import Context
from agent.gardenlet.seed.care.controller import declare
from agent.gardenlet.seed.care.stores import PoliciesElsewhere
from config.gardenlet.controllers import Controllers, NetworkPolicy, SeedCare
from config.shared import ConditionThreshold, LabelSelector
from gardener import keys
from gardener.api.garden import SEEDS
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.network_policies import NAMES
from kit.controllers import cluster_of
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_shoots import ShootPlace
from kit.gardenlet_controllers import gardenlet_at_work, gardenlet_config, gardenlet_context
from kit.objects import obj
from kit.seed_kinds import install_seed_kinds
from kit.world import World, connected
from kube.clock import format_time, utc_now
from kube.errors import AlreadyExists
from kube.objects import Key, Object, condition, metadata, resource_version
from kube.resources import NAMESPACES, NETWORK_POLICIES
from kube.runtime.loop import ControlLoop

pytestmark = pytest.mark.timeout(600)

HEALTHY = "SeedSystemComponentsHealthy"
GOOD = {"ResourcesApplied": "True", "ResourcesHealthy": "True", "ResourcesProgressing": "False"}
FINE = ("True", "SystemComponentsRunning")


class CareWorld(World):
    """ManagedResources in the namespaces of a seed, which go at the end of the test."""

    def __init__(self, place: ShootPlace, client: Any) -> None:
        super().__init__(client, "garden")
        self.place = place
        self.made: list[tuple[str, str]] = []

    async def managed(
        self,
        name: str,
        *,
        class_: str | None = "seed",
        namespace: str = "garden",
        labels: Mapping[str, str] | None = None,
        **reported: Any,
    ) -> Object:
        spec: Object = {"secretRefs": [{"name": "none"}]} | ({"class": class_} if class_ else {})
        name = f"{self.place.name}-{name}"
        body = obj(MANAGED_RESOURCES, name, namespace=namespace, labels=labels, spec=spec)
        made = await self.create(body, MANAGED_RESOURCES)
        self.made.append((namespace, name))
        return await self.says(metadata(made)["name"], namespace=namespace, **reported)

    async def says(self, name: str, *, namespace: str = "garden", observed: int = 1, **reported: Any) -> Object:
        """Write as the resource manager would. Args: reported: statuses and reasons by type."""
        time = format_time(utc_now())
        conditions = [
            {
                "type": type_,
                "status": found if isinstance(found, str) else found[0],
                "reason": "R" if isinstance(found, str) else found[1],
                "message": f"of {name}",
                "lastTransitionTime": time,
                "lastUpdateTime": time,
            }
            for type_, found in (GOOD | reported).items()
        ]
        status = {"status": {"observedGeneration": observed, "conditions": conditions}}
        return await self.patch(MANAGED_RESOURCES, name, status, namespace=namespace, subresource="status")

    async def clean_up(self) -> None:
        for namespace, name in self.made:
            await self.remove(MANAGED_RESOURCES, name, namespace=namespace)

    def found(self) -> Object:
        return condition(self.place.get(SEEDS, self.place.name), HEALTHY) or {}

    async def until(self, status: str, reason: str, message: str = "") -> Object:
        def is_so() -> bool:
            found = self.found()
            assert (found.get("status"), found.get("reason")) == (status, reason)
            assert message in found["message"]
            return True

        await soon(is_so, f"the condition {HEALTHY}")
        return self.found()


@pytest.fixture
async def world(garden: Garden) -> AsyncIterator[CareWorld]:
    install_seed_kinds(garden.cluster)
    for name in ("garden", "istio-system"):
        with contextlib.suppress(AlreadyExists):
            garden.create(NAMESPACES, name)
    place = ShootPlace(garden)
    place.seed()
    async with connected(garden.cluster) as client:
        world = CareWorld(place, client)
        yield world
        await world.clean_up()


@contextlib.asynccontextmanager
async def care_of(
    world: CareWorld, *, threshold: float = 0, period: float = 3600, elsewhere: tuple[LabelSelector, ...] = ()
) -> AsyncIterator[Context]:
    """The controller at work for the place's Seed."""
    thresholds = (ConditionThreshold(type=HEALTHY, duration=threshold),) if threshold else ()
    controllers = Controllers(
        seed_care=SeedCare(sync_period=period, condition_thresholds=thresholds),
        network_policy=NetworkPolicy(namespaces_served_elsewhere=elsewhere),
    )
    config = gardenlet_config(world.place.name, controllers=controllers)
    async with connected(world.place.garden.cluster, f"care-of-{world.place.name}") as client:
        context = await gardenlet_context(garden=client, seed=client, config=config, as_gardenlet=True)
        async with gardenlet_at_work(context, declare):
            yield context


async def test_what_is_wrong_with_a_component_is_reported_of_the_seed(world: CareWorld) -> None:
    async with care_of(world):
        await world.until(*FINE)
        made = await world.managed("b", ResourcesHealthy=("False", "PodsUnhealthy"))
        name = metadata(made)["name"]
        await world.until("False", "PodsUnhealthy", f"of {name}")
        # The first by name counts.
        await world.managed("a", ResourcesApplied=("False", "ApplyFailed"))
        await world.until("False", "ApplyFailed", f"of {world.place.name}-a")
        await world.says(f"{world.place.name}-a")
        await world.until("False", "PodsUnhealthy", f"of {name}")
        await world.says(name, ResourcesProgressing=("True", "DeploymentProgressing"))
        await world.until("False", "DeploymentProgressing")
        await world.says(name)
        await world.until(*FINE)
        await world.patch(MANAGED_RESOURCES, name, {"spec": {"secretRefs": [{"name": "other"}]}})
        await world.until("False", "OutdatedStatus", f"'garden/{name}' outdated (1/2)")
        await world.delete(MANAGED_RESOURCES, name)
        await world.until(*FINE)


async def test_only_components_in_namespaces_of_the_seed_count(world: CareWorld) -> None:
    async with care_of(world):
        bad: dict[str, Any] = {"ResourcesApplied": ("False", "ApplyFailed")}
        await world.managed("plain", class_=None, **bad)
        await world.managed("elsewhere", namespace=world.place.namespace, **bad)
        await world.managed("extension", labels={keys.CONTROLLER_INSTALLATION_NAME: "e"}, **bad)
        await world.managed("istio", namespace="istio-system", ResourcesApplied=("False", "InIstio"))
        await world.until("False", "InIstio")
        await world.delete(MANAGED_RESOURCES, f"{world.place.name}-istio", namespace="istio-system")
        await world.until(*FINE)
        await world.managed("other", class_="other", ResourcesApplied=("False", "OtherClass"))
        await world.until("False", "OtherClass")


async def test_a_problem_is_progressing_for_its_threshold(world: CareWorld) -> None:
    name = f"{world.place.name}-a"
    await world.managed("a")
    async with care_of(world, threshold=3600):
        await world.until(*FINE)
        await world.says(name, ResourcesHealthy=("False", "PodsUnhealthy"))
        before = await world.until("Progressing", "PodsUnhealthy")
    # The time counts from when it was true, whatever is reported meanwhile, and across restarts.
    async with care_of(world, threshold=0.5, period=1):
        await world.until("False", "PodsUnhealthy")
    async with care_of(world, threshold=3600):
        await world.says(name, ResourcesHealthy=("False", "OtherReason"))
        after = await world.until("Progressing", "OtherReason")
        assert after["lastTransitionTime"] >= before["lastTransitionTime"]
    # One that was never true is false at once.
    world.place.patch(SEEDS, world.place.name, {"status": {"conditions": []}}, status=True)
    async with care_of(world, threshold=3600):
        await world.until("False", "OtherReason")


async def test_a_status_from_before_the_last_write_does_not_count(world: CareWorld) -> None:
    made = await world.managed("a")
    name = metadata(made)["name"]
    async with care_of(world) as context:
        await world.until(*FINE)
        # The flow has changed it, and reports success; what care knows of it is from before.
        context.writes.note({**made, "metadata": {**metadata(made), "generation": 2}})
        succeeded = {"status": {"lastOperation": operation("Succeeded")}}
        world.place.patch(SEEDS, world.place.name, succeeded, status=True)
        await world.until("Progressing", "ManagedResourceNotReported", f"garden/{name}")
        await world.patch(MANAGED_RESOURCES, name, {"spec": {"secretRefs": [{"name": "other"}]}})
        await world.says(name, observed=2)
        await world.until(*FINE)


def operation(state: str) -> Object:
    return {
        "type": "Reconcile",
        "state": state,
        "progress": 100,
        "description": "d",
        "lastUpdateTime": format_time(utc_now()),
    }


async def test_a_reconciliation_that_succeeds_leads_to_a_check(world: CareWorld) -> None:
    async with care_of(world):
        found = await world.until(*FINE)
        # What the flow writes as a hint is replaced by what the check reports.
        hint = {**found, "status": "Progressing"}
        status = {"status": {"lastOperation": operation("Succeeded"), "conditions": [hint]}}
        world.place.patch(SEEDS, world.place.name, status, status=True)
        await world.until(*FINE)


async def test_missing_policies_that_another_program_makes_are_named(world: CareWorld) -> None:
    namespace = f"np-{uuid.uuid4().hex[:8]}"
    marks = {keys.ROLE: "shoot", "served": world.place.name}
    await world.create(obj(NAMESPACES, namespace, labels=marks))
    elsewhere = (LabelSelector(match_labels={"served": world.place.name}),)
    async with care_of(world, period=1, elsewhere=elsewhere):
        found = await world.until("False", "NetworkPoliciesMissing")
        assert f"{namespace} ({', '.join(NAMES)})" in found["message"]
        for name in NAMES:
            policy = obj(NETWORK_POLICIES, name, namespace=namespace, spec={"podSelector": {}})
            await world.create(policy)
        await world.until(*FINE)
    await world.remove(NAMESPACES, namespace)


async def test_policies_that_the_watch_has_not_brought_are_not_missing(world: CareWorld) -> None:
    namespace = f"{world.place.name}-behind"
    await world.create(obj(NAMESPACES, namespace, labels={keys.ROLE: "shoot", "served": namespace}))
    for name in NAMES[1:]:
        await world.create(obj(NETWORK_POLICIES, name, namespace=namespace, spec={"podSelector": {}}))
    behind = cluster_of(world.client, behind=[NETWORK_POLICIES])
    loop = ControlLoop("behind")
    served = NetworkPolicy(namespaces_served_elsewhere=(LabelSelector(match_labels={"served": namespace}),))
    policies = PoliciesElsewhere.declared(loop, behind, served)
    assert policies is not None
    await soon(lambda: policies.namespaces.get(Key("", namespace)), "the namespace")
    assert await policies.missing() == {namespace: [NAMES[0]]}
    await loop.close()
    await behind.caches.close()
    await world.remove(NAMESPACES, namespace)


async def test_steady_state_costs_no_call(world: CareWorld) -> None:
    await world.managed("a", ResourcesHealthy=("False", "PodsUnhealthy"))
    agent = f"care-of-{world.place.name}"
    audit = world.place.garden.cluster.audit()
    async with care_of(world, period=1):
        await world.until("False", "PodsUnhealthy")
        since = audit.mark()
        seed = world.place.get(SEEDS, world.place.name)
        for number in range(3):
            # Each of these leads to a check.
            mark = {"metadata": {"annotations": {"look": str(number)}}}
            await world.patch(MANAGED_RESOURCES, f"{world.place.name}-a", mark)
            world.place.patch(
                SEEDS, world.place.name, {"status": {"lastOperation": operation("Succeeded")}}, status=True
            )
        await world.says(f"{world.place.name}-a", ResourcesHealthy=("False", "OtherReason"))
        await world.until("False", "OtherReason")
        calls = audit.count(since=since, user_agent=agent)
    audit.close()
    assert calls == {("patch", "seeds/status"): 1}
    assert resource_version(world.place.get(SEEDS, world.place.name)) > resource_version(seed)
