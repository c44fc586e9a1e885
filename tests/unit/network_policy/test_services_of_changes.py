"""Which Services changes of namespaces, pods and Ingresses lead to, also if they come faster than they are passed on."""

import json
import uuid
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from agent.shared.network_policy.rules.policies import Rules
from agent.shared.network_policy.stores import INGRESSES_VIEW, NAMESPACES_VIEW, PODS_VIEW, SERVICES_VIEW, PolicyStores
from gardener import keys
from kit.eventually import soon
from kit.objects import obj
from kit.views import NO_CLIENT, OnlyViews
from kube.objects import Object
from kube.runtime.cache import Source, View
from kube.runtime.fan_out import FEW, MOST_STATES
from kube.runtime.loop import ControlLoop
from kube.runtime.watch import Deleted, Event, ListBegins, ListEnds, Present

MANY = FEW + 1
"""Number of Services of each sort: changes of so many are not passed on at once."""


def named(sort: str) -> set[str]:
    return {f"{sort}-{number}" for number in range(MANY)}


def services() -> Iterable[Object]:
    """Services in `shop` that let in namespaces by their label, and those that clients ask for; others elsewhere."""
    for value in "xyz":
        selectors = json.dumps([{"matchLabels": {"team": value}}])
        for name in named(value):
            yield service(f"shop/{name}", namespace_selectors=selectors)
    for name in named("asked"):
        yield service(f"pods/{name}", from_all_allowed_ports=json.dumps([{"port": 80}]))
    for name in named("routed") | named("idle"):
        yield service(f"routes/{name}")


def service(name: str, **annotations: str) -> Object:
    marks = {f"{keys.NETWORKING_PREFIX}{each.replace('_', '-')}": value for each, value in annotations.items()}
    return versioned(obj("v1 Service", name, annotations=marks, spec={"selector": {"a": "b"}, "ports": [{"port": 80}]}))


def namespace(team: str) -> Object:
    return versioned(obj("v1 Namespace", "clients", labels={"team": team}))


def pod(name: str, asks_for: Iterable[str]) -> Object:
    labels = {f"{keys.TO_PREFIX}{each}": keys.ALLOWED for each in asks_for}
    return versioned(obj("v1 Pod", f"pods/{name}", labels=labels))


def ingress(to: Iterable[str]) -> Object:
    paths = [{"backend": {"service": {"name": each, "port": {"number": 80}}}} for each in to]
    return versioned(obj("networking.k8s.io/v1 Ingress", "routes/i", spec={"rules": [{"http": {"paths": paths}}]}))


def versioned(made: Object) -> Object:
    versioned.last += 1  # type: ignore[attr-defined]
    made["metadata"]["resourceVersion"] = str(versioned.last)  # type: ignore[attr-defined]
    return made


versioned.last = 1  # type: ignore[attr-defined]


class World:
    """The known objects of a cluster, and the Services that changes lead to."""

    def __init__(self) -> None:
        caches = OnlyViews(NO_CLIENT)
        self.loop = ControlLoop(f"loop-{uuid.uuid4()}")
        self.stores = PolicyStores(
            self.loop, caches, Rules(requires_pods=True, ingress_controller=("ingress", {"app": "nginx"}))
        )
        self.sources: dict[View[Any], Source[Any]] = {}
        known = {SERVICES_VIEW: services(), NAMESPACES_VIEW: [namespace("none")]}
        for view in caches.views():
            source = self.sources[view] = caches.acquire(view).source("")
            source.apply(ListBegins(1))
            for each in known.get(view, ()):
                source.apply(Present(each))
            source.apply(ListEnds(1))

    async def begin(self) -> None:
        await self.loop.start()
        await self.led_to(6 * MANY)

    async def led_to(self, count: int) -> set[str]:
        """The sorts of Services that are to be looked at, once there are so many of them."""
        await soon(lambda: len(self.loop.queue) >= count, f"{count} Services")
        found = set[str]()
        while self.loop.queue.waiting:
            name = await self.loop.queue.get()
            self.loop.queue.done(name)
            found.add(name.name.rpartition("-")[0])
        return found

    async def leads_to(self, expected: set[str], view: View[Any], changes: Callable[[], Iterable[Event]]) -> None:
        """Changes lead to these sorts and no others; they are repeated, since a busy machine may tear them apart."""
        found = set[str]()
        while not found >= expected:
            for each in changes():
                self.sources[view].apply(each)
            found |= await self.led_to(MANY)
        assert found == expected


@pytest.mark.parametrize(
    ("teams", "expected"),
    [
        ("x", "x"),
        ("xy", "xy"),
        ("xyx", "xy"),
        ("xyxzx", "xyz"),
        (["x", *map(str, range(MOST_STATES)), "x"], "xyz"),
        (["x", "y", None], "xy"),
    ],
)
async def test_a_namespace_leads_to_services_that_let_it_in_meanwhile(
    teams: Iterable[str | None], expected: str
) -> None:
    def changes() -> Iterable[Event]:
        for team in teams:
            found = namespace(team or "")
            yield Present(found) if team is not None else Deleted(found)

    world = World()
    await world.begin()
    await world.leads_to(set(expected), NAMESPACES_VIEW, changes)


async def test_the_first_pod_that_queries_and_the_last_one_lead_to_services() -> None:
    def changes() -> Iterable[Event]:
        for name in ("a", "b"):
            yield Present(pod(name, ["all"]))
        for name in ("a", "b"):
            yield Deleted(pod(name, ["all"]))

    world = World()
    await world.begin()
    await world.leads_to({"asked"}, PODS_VIEW, changes)


@pytest.mark.parametrize(("count", "expected"), [(3, {"routed"}), (MOST_STATES + 2, {"routed", "idle"})])
async def test_an_ingress_leads_to_services_that_it_named_or_to_all_of_its_namespace(
    count: int, expected: set[str]
) -> None:
    def changes() -> Iterable[Event]:
        yield Present(ingress(named("routed")))
        for change in range(count):
            yield Present(ingress({f"unknown-{change}"}))

    world = World()
    await world.begin()
    await world.leads_to(expected, INGRESSES_VIEW, changes)
