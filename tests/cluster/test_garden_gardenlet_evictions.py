"""Pods of a seed are evicted to get less only in the maintenance window, or never."""

import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.gardenlet.seed.vpa_eviction_requirements.controller import declare
from agent.gardenlet.seed.vpa_eviction_requirements.rules.requirements import IN_WINDOW_ONLY, NEVER, ONLY_MORE
from gardener import keys
from gardener.api.kinds import VERTICAL_POD_AUTOSCALERS
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import looked_at, until_idle
from kit.gardenlet_controllers import gardenlet_config, run_gardenlet_controller
from kit.objects import obj
from kit.seed_kinds import install_seed_kinds
from kit.world import World, connected
from kube.objects import Object, resource_version
from kube.paths import at
from kube.resources import NAMESPACES
from kube.runtime.loop import ControlLoop

pytestmark = pytest.mark.timeout(600)

OWN: list[Object] = [{"resources": ["cpu"], "changeRequirement": "TargetLowerThanRequests"}]
WINDOW = "220000+0000,230000+0000"
NAME = "v"


class Clock:
    """Times of a day."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def set(self, hours: int, minutes: int, seconds: float = 0) -> None:
        midnight = self.now.replace(hour=0, minute=0, second=0, microsecond=0)
        self.now = midnight + timedelta(hours=hours, minutes=minutes, seconds=seconds)


class AutoscalerWorld(World):
    async def autoscaler(
        self, restriction: str = NEVER, *, window: str = "", label: str | None = None, **update_policy: Any
    ) -> Object:
        marks = {keys.DOWNSCALE_RESTRICTION: restriction} | ({keys.MAINTENANCE_WINDOW: window} if window else {})
        marked = {} if label == "" else {keys.EVICTION_REQUIREMENTS: label or keys.EVICTION_REQUIREMENTS_MANAGED}
        spec: Object = {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}
        if update_policy:
            spec["updatePolicy"] = update_policy
        made = obj(
            VERTICAL_POD_AUTOSCALERS, NAME, namespace=self.namespace, annotations=marks, labels=marked, spec=spec
        )
        return await self.create(made, VERTICAL_POD_AUTOSCALERS)

    async def change(self, *, spec: Object | None = None, **metadata: Object) -> Object:
        return await self.patch(VERTICAL_POD_AUTOSCALERS, NAME, {"metadata": metadata, "spec": spec or {}})

    async def requirements(self) -> list[Object]:
        found = await self.get(VERTICAL_POD_AUTOSCALERS, NAME)
        return at(found, "spec", "updatePolicy", "evictionRequirements") or []

    async def until(self, requirements: list[Object]) -> None:
        async def found() -> bool:
            assert await self.requirements() == requirements
            return True

        await soon(found, "the requirements")

    async def unchanged(self, loop: ControlLoop, autoscaler: Object) -> None:
        """After the loop has looked at it as it is."""
        await looked_at(loop, VERTICAL_POD_AUTOSCALERS, autoscaler)
        found = await self.get(VERTICAL_POD_AUTOSCALERS, NAME)
        assert resource_version(found) == resource_version(autoscaler)


@pytest.fixture
async def world(garden: Garden) -> AsyncIterator[AutoscalerWorld]:
    install_seed_kinds(garden.cluster)
    name = f"vpa-{uuid.uuid4().hex[:8]}"
    async with connected(garden.cluster) as client:
        world = AutoscalerWorld(client, name)
        await world.create(obj(NAMESPACES, name))
        yield world


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def agent(world: AutoscalerWorld) -> str:
    return f"agent-of-{world.namespace}"


@pytest.fixture
async def loop(world: AutoscalerWorld, garden: Garden, clock: Clock, agent: str) -> AsyncIterator[ControlLoop]:
    """The controller at work in the test's namespace."""
    async with (
        connected(garden.cluster, agent) as client,
        run_gardenlet_controller(
            declare,
            garden=client,
            seed=client,
            config=gardenlet_config("seed"),
            clock=clock,
            namespaces=[world.namespace],
        ) as loop,
    ):
        yield loop


async def test_never(world: AutoscalerWorld, loop: ControlLoop) -> None:
    await world.autoscaler(updateMode="Auto", evictionRequirements=OWN)
    await world.until(ONLY_MORE)
    found = await world.get(VERTICAL_POD_AUTOSCALERS, NAME)
    assert found["spec"]["updatePolicy"]["updateMode"] == "Auto"


async def test_without_an_update_policy_it_gets_one(world: AutoscalerWorld, loop: ControlLoop) -> None:
    await world.autoscaler()
    await world.until(ONLY_MORE)


async def test_what_a_user_changes_is_restored(world: AutoscalerWorld, loop: ControlLoop) -> None:
    await world.autoscaler(updateMode="Auto")
    await world.until(ONLY_MORE)
    for requirements in (None, OWN):
        await world.change(spec={"updatePolicy": {"evictionRequirements": requirements}})
        await world.until(ONLY_MORE)


async def test_only_autoscalers_with_the_label_are_managed(world: AutoscalerWorld, loop: ControlLoop) -> None:
    await world.unchanged(loop, await world.autoscaler(label="mine", evictionRequirements=OWN))
    await world.unchanged(loop, await world.change(annotations={"other": "x"}))
    # The label alone leads to no pass, other changes do from then on.
    label = {keys.EVICTION_REQUIREMENTS: keys.EVICTION_REQUIREMENTS_MANAGED}
    await world.unchanged(loop, await world.change(labels=label))
    await world.change(annotations={"other": "y"})
    await world.until(ONLY_MORE)


async def test_annotations_that_state_nothing_change_nothing(world: AutoscalerWorld, loop: ControlLoop) -> None:
    await world.unchanged(loop, await world.autoscaler(IN_WINDOW_ONLY, evictionRequirements=OWN))
    await world.unchanged(loop, await world.change(annotations={keys.MAINTENANCE_WINDOW: "0100,0200"}))
    await world.unchanged(loop, await world.change(annotations={keys.DOWNSCALE_RESTRICTION: "sometimes"}))
    await world.change(annotations={keys.DOWNSCALE_RESTRICTION: NEVER})
    await world.until(ONLY_MORE)


async def test_a_window_opens_and_closes(world: AutoscalerWorld, loop: ControlLoop, clock: Clock) -> None:
    clock.set(21, 54, 59.5)
    await world.autoscaler(IN_WINDOW_ONLY, window=WINDOW)
    await world.until(ONLY_MORE)
    clock.set(22, 0)
    await world.until([])
    # A look just before it closes is followed by one when it has closed.
    clock.set(22, 54, 59.999)
    await world.unchanged(loop, await world.change(annotations={"look": "now"}))
    clock.set(22, 55)
    await world.until(ONLY_MORE)


@pytest.mark.parametrize("seconds", [-0.001, 0, 0.001])
async def test_at_the_end_of_the_window_pods_get_no_less_any_more(
    world: AutoscalerWorld, loop: ControlLoop, clock: Clock, seconds: float
) -> None:
    clock.set(23, 0, seconds)
    await world.autoscaler(IN_WINDOW_ONLY, window=WINDOW, evictionRequirements=OWN)
    await world.until(ONLY_MORE)


async def test_another_window_counts_at_once(world: AutoscalerWorld, loop: ControlLoop, clock: Clock) -> None:
    clock.set(22, 30)
    await world.autoscaler(IN_WINDOW_ONLY, window="010000+0000,020000+0000")
    await world.until(ONLY_MORE)
    await world.change(annotations={keys.MAINTENANCE_WINDOW: WINDOW})
    await world.until([])
    await world.change(annotations={keys.MAINTENANCE_WINDOW: "233000+0000,003000+0000"})
    await world.until(ONLY_MORE)


async def test_one_that_is_deleted_is_no_error(
    world: AutoscalerWorld, loop: ControlLoop, clock: Clock, garden: Garden, agent: str
) -> None:
    clock.set(21, 54, 59.5)
    await world.autoscaler(IN_WINDOW_ONLY, window=WINDOW)
    await world.until(ONLY_MORE)
    audit = garden.cluster.audit()
    since = audit.mark()
    await world.delete(VERTICAL_POD_AUTOSCALERS, NAME)
    await world.until_gone(VERTICAL_POD_AUTOSCALERS, NAME)
    clock.set(22, 0)
    # Its planned look finds the next one of that name.
    await world.autoscaler(IN_WINDOW_ONLY, window=WINDOW, evictionRequirements=OWN)
    await world.until([])
    await until_idle(loop)
    calls = audit.count(since=since, user_agent=agent)
    audit.close()
    assert calls == {("patch", "verticalpodautoscalers"): 1}


async def test_a_start_writes_nothing_again(world: AutoscalerWorld, garden: Garden, clock: Clock) -> None:
    agent = f"agent-of-{world.namespace}"
    await world.autoscaler()
    audit = garden.cluster.audit()
    for patches in (1, 0):
        since = audit.mark()
        async with (
            connected(garden.cluster, agent) as client,
            run_gardenlet_controller(
                declare,
                garden=client,
                seed=client,
                config=gardenlet_config("seed"),
                clock=clock,
                namespaces=[world.namespace],
            ) as loop,
        ):
            await world.until(ONLY_MORE)
            await soon(lambda loop=loop: loop.controller.queue.is_idle, "the passes")  # type: ignore[misc]
            found = await world.change(annotations={"look": str(patches)})
            await looked_at(loop, VERTICAL_POD_AUTOSCALERS, found)
        calls = audit.count(since=since, user_agent=agent)
        assert calls.get(("patch", "verticalpodautoscalers"), 0) == patches
    audit.close()
