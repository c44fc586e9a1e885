"""Controllers of the gardenlet while things go wrong between it and its seed, which is the garden as well.

In the end all is as without, and what belongs to another client is as it was.
"""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.gardenlet.seed.care.controller import declare as seed_care
from agent.gardenlet.seed.network_policy.controller import declare as network_policies
from agent.gardenlet.seed.network_policy.reconcile import NOT_MANAGED
from agent.gardenlet.seed.vpa_eviction_requirements.controller import declare as eviction_requirements
from agent.gardenlet.seed.vpa_eviction_requirements.rules.requirements import IN_WINDOW_ONLY, ONLY_MORE
from config.gardenlet.controllers import Controllers, SeedCare
from devcluster.testing.faults import (
    STRANGERS,
    Answer,
    Delay,
    EndWatch,
    LateEvents,
    Reset,
    Rule,
    Truncated,
    WatchEnd,
    expired,
    internal_error,
    throttled,
    unavailable,
)
from devcluster.testing.proxy import FaultProxy
from gardener import keys
from gardener.api.garden import SEEDS
from gardener.api.kinds import MANAGED_RESOURCES, VERTICAL_POD_AUTOSCALERS
from gardener.network_policies import DENY_ALL, NAMES, TO_BLOCKED_CIDRS, TO_DNS
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import until_idle
from kit.garden_shoots import ShootPlace
from kit.gardenlet_controllers import Declare, gardenlet_at_work, gardenlet_config, gardenlet_context
from kit.objects import obj
from kit.proxied import QUICK, ImpatientClient, proxied
from kit.seed_kinds import install_seed_kinds
from kit.world import World, connected
from kube.objects import Object, condition, metadata, spec, uid
from kube.paths import at
from kube.resources import ENDPOINTS, NAMESPACES, NETWORK_POLICIES
from kube.runtime.loop import ControlLoop

pytestmark = pytest.mark.timeout(600)

SHOOT = {keys.ROLE: "shoot"}
FOREIGN: Object = {"podSelector": {}, "policyTypes": ["Ingress"]}
MARKED = {keys.GARDENER_DESCRIPTION: "d"}
LONGEST_BACK_OFF = 1.0
WRITES = ("POST", "PUT", "PATCH", "DELETE")
CONFLICT = Answer(name="conflict", code=409, reason="Conflict", message="the object has been modified")
MIX = (
    *(Rule(fault=each, probability=0.05) for each in (*STRANGERS, Truncated(), internal_error(), unavailable())),
    *(Rule(fault=each, probability=0.1, methods=WRITES) for each in (Reset(), Reset(carried_out=True), CONFLICT)),
    Rule(fault=internal_error(carried_out=True), probability=0.1, methods=WRITES),
    Rule(fault=throttled(retry_after=1), times=3, methods=WRITES),
    Rule(fault=Delay(seconds=0.1, carried_out=True), probability=0.1),
    Rule(fault=expired(), probability=0.2, watch=True),
    Rule(fault=EndWatch(how=WatchEnd.RESET, after_events=3), probability=0.3, watch=True),
    Rule(fault=LateEvents(seconds=0.2), probability=0.3, watch=True),
)


class SeedWorld(World):
    """A namespace of a Shoot with its policies and an autoscaler, one of another client, and a component."""

    def __init__(self, place: ShootPlace, client: Any) -> None:
        super().__init__(client, f"gl-{uuid.uuid4().hex[:8]}")
        self.place = place
        self.now = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
        self.other = f"{self.namespace}-other"

    async def prepare(self) -> None:
        self.place.seed()
        await self.remove(ENDPOINTS, "kubernetes", namespace="default")
        subset = {"addresses": [{"ip": "10.11.12.13"}], "ports": [{"port": 443}]}
        await self.create(obj(ENDPOINTS, "kubernetes", namespace="default", subsets=[subset]), ENDPOINTS)
        for name in ("garden", "istio-system"):
            if await self.find(NAMESPACES, name) is None:
                await self.create(obj(NAMESPACES, name))
        await self.create(obj(NAMESPACES, self.other))
        await self.policy(self.other, TO_DNS)
        managed = obj(MANAGED_RESOURCES, self.place.name, namespace="garden", spec={"class": "seed", "secretRefs": []})
        await self.create(managed, MANAGED_RESOURCES)

    async def policy(self, namespace: str, name: str, **marks: str) -> Object:
        return await self.create(obj(NETWORK_POLICIES, name, namespace=namespace, annotations=marks, spec=FOREIGN))

    async def make(self) -> None:
        await self.create(obj(NAMESPACES, self.namespace, labels=SHOOT))
        marks = {keys.DOWNSCALE_RESTRICTION: IN_WINDOW_ONLY, keys.MAINTENANCE_WINDOW: "220000+0000,230000+0000"}
        autoscaler = obj(
            VERTICAL_POD_AUTOSCALERS,
            "v",
            namespace=self.namespace,
            labels={keys.EVICTION_REQUIREMENTS: keys.EVICTION_REQUIREMENTS_MANAGED},
            annotations=marks,
            spec={"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}},
        )
        await self.create(autoscaler, VERTICAL_POD_AUTOSCALERS)
        await self.component_is("ApplyFailed")

    async def component_is(self, reason: str) -> None:
        time = "2026-01-01T00:00:00Z"
        found = {"type": "ResourcesApplied", "status": "False", "reason": reason, "message": "m"}
        status = {
            "observedGeneration": 1,
            "conditions": [{**found, "lastTransitionTime": time, "lastUpdateTime": time}],
        }
        await self.patch(
            MANAGED_RESOURCES, self.place.name, {"status": status}, namespace="garden", subresource="status"
        )

    async def names_of_policies(self, namespace: str) -> set[str]:
        return {metadata(each)["name"] for each in await self.list(NETWORK_POLICIES, namespace=namespace)}

    async def is_right(self, *, requirements: list[Object], reason: str) -> bool:
        policies = {metadata(each)["name"]: spec(each) for each in await self.list(NETWORK_POLICIES)}
        assert set(policies) == set(NAMES)
        assert FOREIGN not in policies.values()
        autoscaler = await self.get(VERTICAL_POD_AUTOSCALERS, "v")
        assert (at(autoscaler, "spec", "updatePolicy", "evictionRequirements") or []) == requirements
        reported = condition(self.place.get(SEEDS, self.place.name), "SeedSystemComponentsHealthy") or {}
        assert (reported.get("status"), reported.get("reason")) == ("False", reason)
        foreign = await self.get(NETWORK_POLICIES, TO_DNS, namespace=self.other)
        assert (spec(foreign), await self.names_of_policies(self.other)) == (FOREIGN, {TO_DNS})
        return True


@pytest.fixture
async def world(garden: Garden) -> AsyncIterator[SeedWorld]:
    install_seed_kinds(garden.cluster)
    async with connected(garden.cluster) as client:
        world = SeedWorld(ShootPlace(garden), client)
        await world.prepare()
        yield world
        await world.remove(MANAGED_RESOURCES, world.place.name, namespace="garden")


@asynccontextmanager
async def at_work(
    world: SeedWorld, directory: Path, *rules: Rule, declared: tuple[Declare, ...] = ()
) -> AsyncIterator[tuple[FaultProxy, list[ControlLoop]]]:
    """The controllers behind a proxy. Args: declared: which ones; none: all of these."""
    controllers = Controllers(seed_care=SeedCare(sync_period=1.0))
    config = gardenlet_config(world.place.name, controllers=controllers)
    async with proxied(world.place.garden.cluster, directory) as (proxy, transport):
        client = ImpatientClient(transport, user_agent="gardenlet-under-faults")
        context = await gardenlet_context(
            garden=client, seed=client, config=config, clock=lambda: world.now, timings=QUICK
        )
        proxy.rules.add(*rules)
        declared = declared or (network_policies, eviction_requirements, seed_care)
        async with gardenlet_at_work(context, *declared) as loops:
            for loop in loops:
                loop.queue._max_backoff = min(loop.queue._max_backoff, LONGEST_BACK_OFF)
            yield proxy, loops


async def test_all_is_as_without_faults(world: SeedWorld, tmp_path: Path) -> None:
    async with at_work(world, tmp_path, *MIX) as (proxy, _):
        await world.make()
        await soon(partial(world.is_right, requirements=ONLY_MORE, reason="ApplyFailed"), "all to be right")
        await world.delete(NETWORK_POLICIES, DENY_ALL)
        await world.patch(NETWORK_POLICIES, TO_DNS, {"spec": FOREIGN | {"egress": None}})
        await world.component_is("OtherReason")
        await soon(partial(world.is_right, requirements=ONLY_MORE, reason="OtherReason"), "all to be right again")
        assert len(proxy.injected) >= len(MIX) / 3, "few faults struck: this shows little"


async def test_what_happens_while_the_api_server_is_away_is_made_up_for(world: SeedWorld, tmp_path: Path) -> None:
    async with at_work(world, tmp_path) as (proxy, _):
        await world.make()
        await soon(partial(world.is_right, requirements=ONLY_MORE, reason="ApplyFailed"), "all to be right")
        await proxy.pause()
        await world.delete(NETWORK_POLICIES, DENY_ALL)
        await world.patch(NETWORK_POLICIES, TO_DNS, {"spec": FOREIGN | {"egress": None}})
        await world.create(obj(NAMESPACES, f"{world.namespace}-new", labels=SHOOT))
        await world.component_is("OtherReason")
        # The window opens meanwhile, and the answer is needed again.
        world.now = world.now.replace(hour=22, minute=30)
        await world.patch(VERTICAL_POD_AUTOSCALERS, "v", {"metadata": {"annotations": {"look": "again"}}})
        await proxy.resume()
        await soon(partial(world.is_right, requirements=[], reason="OtherReason"), "all to be right again")

        async def has_policies() -> bool:
            return await world.names_of_policies(f"{world.namespace}-new") == set(NAMES)

        await soon(has_policies, "the policies of the new namespace")


@asynccontextmanager
async def without_news_of_policies(world: SeedWorld, directory: Path) -> AsyncIterator[tuple[FaultProxy, ControlLoop]]:
    """The controller of policies has listed all, and the watch of these reports nothing any more."""
    silent = Rule(fault=EndWatch(how=WatchEnd.SILENT), path="/networkpolicies$", watch=True)
    config = gardenlet_config(world.place.name)
    async with proxied(world.place.garden.cluster, directory) as (proxy, transport):
        proxy.rules.add(silent)
        client = ImpatientClient(transport, user_agent="gardenlet-without-news")
        context = await gardenlet_context(garden=client, seed=client, config=config)
        async with gardenlet_at_work(context, network_policies) as (loop,):
            await soon(lambda: proxy.injected[WatchEnd.SILENT.value], "the watch to fall silent")
            yield proxy, loop


async def test_a_policy_that_is_not_known_yet_is_not_overwritten(world: SeedWorld, tmp_path: Path) -> None:
    async with without_news_of_policies(world, tmp_path) as (_, loop):
        await world.create(obj(NAMESPACES, world.namespace))
        foreign = await world.policy(world.namespace, DENY_ALL)
        own = await world.policy(world.namespace, TO_BLOCKED_CIDRS, **MARKED)
        await world.patch(NAMESPACES, world.namespace, {"metadata": {"labels": SHOOT}})

        async def has_all() -> bool:
            assert await world.names_of_policies(world.namespace) == set(NAMES)
            # A gardenlet has made this one, so it is taken over.
            found = await world.get(NETWORK_POLICIES, TO_BLOCKED_CIDRS)
            return spec(found) != FOREIGN and uid(found) == uid(own)

        await soon(has_all, "the policies")
        await until_idle(loop)
        found = await world.get(NETWORK_POLICIES, DENY_ALL)
        assert (uid(found), spec(found)) == (uid(foreign), FOREIGN)
    events = await world.events(NOT_MANAGED)
    assert [each["involvedObject"]["name"] for each in events] == [DENY_ALL]


async def test_a_policy_that_has_lost_its_mark_is_not_deleted(world: SeedWorld, tmp_path: Path) -> None:
    await world.create(obj(NAMESPACES, world.namespace, labels=SHOOT))
    await world.policy(world.namespace, DENY_ALL, **MARKED)
    async with without_news_of_policies(world, tmp_path) as (proxy, _):
        unmarked = {"metadata": {"annotations": {keys.GARDENER_DESCRIPTION: None}}, "spec": FOREIGN}
        await world.patch(NETWORK_POLICIES, DENY_ALL, unmarked)
        await world.patch(NAMESPACES, world.namespace, {"metadata": {"labels": {keys.ROLE: None}}})

        def refused() -> list[object]:
            path = f"/{world.namespace}/networkpolicies/{DENY_ALL}"
            return [each for each in proxy.log if path in each.request.path and each.answer == 409]

        await soon(refused, "a write that is refused")
        assert spec(await world.get(NETWORK_POLICIES, DENY_ALL)) == FOREIGN
