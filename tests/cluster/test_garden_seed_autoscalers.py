"""SeedAutoscalers: a set grows when its Seeds are full or Shoots wait, and shrinks when they are empty for long."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.controller_manager.managed_seed_set.controller import declare as declare_set
from agent.controller_manager.seed_autoscaler.controller import declare
from config.controller_manager.controllers import Controllers, ManagedSeedSet, Prometheus, SeedAutoscaler, SeedResource
from gardener.api.garden import MANAGED_SEED_SETS, SEED_AUTOSCALERS, SHOOTS
from gardener.garden.scheduling import failed_to_schedule
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controllers, until_idle
from kit.garden_seed_sets import SeedSetPlace
from kit.prometheus import prometheus
from kit.world import connected
from kube.clock import format_time
from kube.objects import Object, mapping, resource_version, spec
from kube.paths import at
from kube.runtime.client import Client
from kube.runtime.loop import ControlLoop

pytestmark = pytest.mark.timeout(900)

ENABLED = SeedAutoscaler(enabled=True)
PAUSED = "seedmanagement.gardener.cloud/autoscaling-paused"


class Scaled(SeedSetPlace):
    """A set, its SeedAutoscaler of the same name, and Shoots of users."""

    def __init__(self, garden: Garden, client: Client) -> None:
        super().__init__(garden, client)
        self.now = datetime.now(UTC)

    # --- the SeedAutoscaler

    def scale(self, **fields: Any) -> None:
        target = {**MANAGED_SEED_SETS.type_meta, "name": self.name}
        wanted = {"scaleTargetRef": target, "maxReplicas": 3, **fields}
        self.base.create(SEED_AUTOSCALERS, self.name, spec=wanted)

    def change_scaling(self, **fields: Any) -> None:
        self.base.patch(SEED_AUTOSCALERS, self.name, {"spec": fields})

    def scaling(self) -> Object:
        status: Object = self.base.get(SEED_AUTOSCALERS, self.name).get("status") or {}
        return status

    def says(self, kind: str, reason: str) -> bool:
        return any((each["type"], each["reason"]) == (kind, reason) for each in self.scaling().get("conditions") or [])

    def lack(self) -> str:
        """Why no metric is known."""
        found = (each for each in self.scaling().get("conditions") or [] if each["type"] == "ScalingActive")
        return next((each["message"] for each in found if each["status"] == "False"), "")

    def current(self) -> Object:
        """Of the only metric."""
        metrics = self.scaling().get("currentMetrics") or [{}]
        return mapping(at(metrics[0], "resource", "current"))

    def seconds(self) -> float:
        """Since the epoch."""
        return self.now.timestamp()

    def replicas(self) -> int:
        return int(spec(self.base.get(MANAGED_SEED_SETS, self.name))["replicas"])

    async def scalings(self) -> set[str]:
        """The Events about changes of the number of replicas."""
        return {event for event in await self.events() if "Rescale" in event or "Scale" in event}

    # --- Shoots of users

    def shoot(self, name: str, *, on: int | None = None, fits: bool = True) -> None:
        """Args: on: the number of the replica; fits: its networks are no obstacle."""
        networks = {"type": self.name, "pods": "10.128.0.0/11", "services": "10.160.0.0/13"}
        self.base.shoot(self._called(name), **({"networking": networks} if fits else {}))
        if on is None:
            self.base.patch(SHOOTS, self._called(name), _unscheduled(), status=True)
        else:
            self.move(name, on)

    def move(self, name: str, on: int) -> None:
        seed = self.replica(on)
        self.base.patch(SHOOTS, self._called(name), {"status": {"seedName": seed}}, status=True)

    def remove(self, *names: str) -> None:
        for name in names:
            self.base.delete(SHOOTS, self._called(name))

    def _called(self, name: str) -> str:
        return f"{self.name}{name}"


def _unscheduled() -> Object:
    moment = format_time(datetime.now(UTC))
    failure = {"description": failed_to_schedule("none"), "lastUpdateTime": moment}
    return {"status": {"lastOperation": {"type": "Create", "state": "Pending", "progress": 0, **failure}}}


def _average(value: str) -> list[Object]:
    target = {"type": "AverageValue", "averageValue": value}
    return [{"type": "Resource", "resource": {"name": "shoots", "target": target}}]


@asynccontextmanager
async def scaled(
    garden: Garden, *, capacity: int, volumes: int = 0, autoscaler: SeedAutoscaler = ENABLED
) -> AsyncIterator[tuple[Scaled, ControlLoop]]:
    """A set of one replica that is ready, and the loop that looks after its SeedAutoscaler."""
    settings = Controllers(managed_seed_set=ManagedSeedSet(), seed_autoscaler=autoscaler)
    async with connected(garden.cluster) as client:
        it = Scaled(garden, client)
        it.make(1, capacity=capacity, volumes=volumes)
        declared = (declare_set, declare)
        async with run_garden_controllers(declared, client, controllers=settings, clock=lambda: it.now) as (_, loop):
            await it.ready(1)
            yield it, loop


async def test_a_seed_comes_for_a_shoot_that_waits_and_goes_when_it_is_empty_for_long(garden: Garden) -> None:
    async with scaled(garden, capacity=1) as (it, _):
        it.shoot("a", on=0)
        it.shoot("b")
        it.shoot("c", fits=False)
        it.scale(metrics=_average("5"))
        await soon(lambda: it.says("ScalingLimited", "DesiredWithinRange"), "the first look")
        assert "pendingShoots" not in it.scaling()
        assert it.current() == {"averageUtilization": 100, "averageValue": "1", "total": "1", "allocatable": "1"}

        it.now += timedelta(hours=1)  # also if much time has passed until now
        it.change_scaling(maxReplicas=2)
        await soon(lambda: it.replicas() == 2, "a Seed to be added")
        await it.ready(2)
        it.move("b", 1)
        it.remove("a", "b", "c")
        await soon(lambda: it.says("ScalingLimited", "ScaleDownStabilized"), "the window to begin")
        assert it.replicas() == 2
        it.now += timedelta(hours=1)
        it.change_scaling(minFreeShoots=1)
        await soon(lambda: it.replicas() == 1, "a Seed to be given up")
        await it.ready(1)
        await soon(lambda: it.scaling()["currentReplicas"] == 1, "that in the status")

        async def is_reported() -> bool:
            return await it.scalings() == {
                "SuccessfulRescale: New size: 2; reason: pending shoots (1)",
                "SuccessfulRescale: New size: 1; reason: all metrics are below their targets",
            }

        await soon(is_reported, "the Events")


async def test_a_full_set_grows_up_to_its_bound_and_nothing_is_written_in_steady_state(garden: Garden) -> None:
    async with scaled(garden, capacity=2) as (it, loop):
        for name in ("a", "b"):
            it.shoot(name, on=0)
        it.scale(maxReplicas=1)
        await soon(lambda: it.says("ScalingLimited", "TooManyReplicas"), "the bound in the status")
        it.base.patch(SEED_AUTOSCALERS, it.name, {"metadata": {"annotations": {PAUSED: "true"}}})
        it.change_scaling(maxReplicas=3)
        await soon(lambda: it.says("AbleToScale", "Paused"), "the pause in the status")
        it.base.patch(SEED_AUTOSCALERS, it.name, {"metadata": {"annotations": {PAUSED: None}}})
        await soon(lambda: it.replicas() == 2, "a Seed to be added")
        await it.ready(2)

        def is_reported() -> bool:
            found = it.scaling()
            shown = found["currentMetrics"][0]["resource"]["current"]["averageUtilization"]
            is_still = it.says("AbleToScale", "ReadyForNewScale") and it.says("ScalingLimited", "DesiredWithinRange")
            return is_still and (shown, found.get("currentReplicas"), found["desiredReplicas"]) == (50, 2, 2)

        await soon(is_reported, "all in the status")
        await until_idle(loop)
        stored = it.base.get(SEED_AUTOSCALERS, it.name)
        loop.queue.add(it.base.key(it.name))
        await until_idle(loop)
        assert resource_version(it.base.get(SEED_AUTOSCALERS, it.name)) == resource_version(stored)


async def test_a_resource_that_prometheus_measures_leads_to_more_seeds_and_what_is_not_known_to_none(
    garden: Garden,
) -> None:
    volumes = {"type": "Utilization", "averageUtilization": 50}
    async with prometheus() as server:
        source = SeedResource(
            name="volumes", prometheus=Prometheus(address=server.url, query="sum by (seed) (volumes)")
        )
        measured = SeedAutoscaler(enabled=True, resources=(source,))
        async with scaled(garden, capacity=5, volumes=10, autoscaler=measured) as (it, loop):
            it.scale(metrics=[{"type": "Resource", "resource": {"name": "volumes", "target": volumes}}])
            await soon(lambda: it.says("ScalingActive", "FailedGetResourceMetric"), "the lack in the status")
            assert it.lack() == f"No metric can be computed: usage of volumes of Seed {it.replica(0)} is unknown."
            assert (it.replicas(), server.queries) == (1, ["sum by (seed) (volumes)"])

            def look() -> None:
                it.now += timedelta(minutes=2)
                loop.queue.add(it.base.key(it.name))

            server.clock = it.seconds
            server.samples = {it.replica(0): "8"}
            loop.queue.add(it.base.key(it.name))
            await until_idle(loop)
            assert (it.replicas(), len(server.queries)) == (1, 1)  # It is not queried all the time.
            look()
            await soon(lambda: it.replicas() == 2, "a Seed to be added")
            await it.ready(2)
            unknown = f"No metric can be computed: usage of volumes of Seed {it.replica(1)} is unknown."
            await soon(lambda: it.lack() == unknown, "the usage of the new Seed to be missed")
            server.samples = {it.replica(0): "8", it.replica(1): "0"}
            look()
            both = {"averageUtilization": 40, "averageValue": "4", "total": "8", "allocatable": "20"}
            await soon(lambda: it.current() == both, "both to be known")
            message = "New size: 2; reason: resource volumes above target (80% instead of 50%)"
            assert await it.scalings() == {f"SuccessfulRescale: {message}"}

            server.status = 500
            before, requested = it.base.get(SEED_AUTOSCALERS, it.name), len(server.queries)
            look()
            await until_idle(loop)
            assert len(server.queries) == requested + 1
            assert resource_version(it.base.get(SEED_AUTOSCALERS, it.name)) == resource_version(before)
