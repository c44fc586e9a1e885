"""Whatever goes wrong between agent and API server while ManagedResources are created and changed: in the end all is
as it should be, nothing foreign was touched, no object was recreated, and after their deletion nothing is left.

The control loop talks to the API server through a proxy that injects one kind of fault, from the start of the loop on.
`UNDER_FAULTS=50x10` in the environment sets how many ManagedResources there are, of how many objects each.
"""

import os
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import pytest

from devcluster.cluster import Cluster
from devcluster.testing.faults import (
    STRANGERS,
    Answer,
    Delay,
    EndWatch,
    Fault,
    Foreign,
    LateEvents,
    RepeatEvents,
    Reset,
    Rule,
    Silence,
    Trickle,
    WatchEnd,
    expired,
    internal_error,
    throttled,
    unauthorized,
    unavailable,
)
from gardener import keys
from kit.eventually import soon
from kit.managed_resources import (
    USER_AGENT,
    ManagedWorld,
    config_map,
    control_loop,
    deployment,
    install_crd,
    role,
    service,
)
from kit.proxied import QUICK, ImpatientClient, proxied
from kube.objects import Object, uid
from kube.runtime.client import Client
from kube.runtime.connection import load_kubeconfig
from kube.runtime.transport import Transport

SHARED = "shared"


@dataclass(frozen=True, slots=True)
class Trouble:
    """A fault, and which requests meet it."""

    fault: Fault
    probability: float = 0.15
    times: int | None = 40
    methods: tuple[str, ...] = ()
    watch: bool | None = False

    def rule(self, size: int) -> Rule:
        """For so many objects."""
        return Rule(
            fault=self.fault,
            probability=self.probability,
            times=None if self.times is None else max(self.times, size // 4),
            methods=self.methods,
            watch=self.watch,
        )


WRITES = ("POST", "PUT", "PATCH", "DELETE")
TROUBLES = {
    "internal errors": Trouble(internal_error()),
    "internal errors after the write was carried out": Trouble(internal_error(carried_out=True), methods=WRITES),
    "unavailability": Trouble(unavailable()),
    "unavailability that reports when to come back": Trouble(unavailable(retry_after=1), probability=0.05),
    "unavailability after the write was carried out": Trouble(unavailable(carried_out=True), methods=WRITES),
    "throttling": Trouble(throttled(retry_after=1), probability=0.05),
    "refused credentials": Trouble(unauthorized()),
    "resets": Trouble(Reset()),
    "resets after the write was carried out": Trouble(Reset(carried_out=True), methods=WRITES),
    "silence": Trouble(Silence(), probability=0.03, times=6),
    "silence after the write was carried out": Trouble(
        Silence(carried_out=True), methods=WRITES, probability=0.03, times=6
    ),
    "slow requests": Trouble(Delay(seconds=0.2), times=None),
    "slow answers": Trouble(Delay(seconds=0.2, carried_out=True), times=None),
    "trickling answers": Trouble(Trickle(size=512, pause=0.01), times=None),
    "expired lists": Trouble(expired(), methods=("GET",), probability=0.5),
    "expired watches": Trouble(expired(), methods=("GET",), probability=0.3, watch=True),
    **{
        f"watches that end: {how}": Trouble(EndWatch(how=how, after_events=5), probability=0.7, watch=True, times=None)
        for how in WatchEnd
    },
    "repeated events": Trouble(RepeatEvents(), probability=1.0, watch=True, times=None),
    "late events": Trouble(LateEvents(seconds=0.3), probability=1.0, watch=True, times=None),
}


def objects_of(number: int, size: int, *, version: str) -> list[Object]:
    """The objects of a ManagedResource; which ones changes with the version, too."""
    fixed = [service(f"s-{number}", version), role(f"r-{number}", version), deployment(f"d-{number}", version)]
    config_maps = [config_map(f"c-{number}-{i}", version) for i in range(size - len(fixed) - 1)]
    return [*fixed, *config_maps, config_map(f"only-{version}-{number}")]


@pytest.fixture
async def world(cluster: Cluster, namespace: str) -> AsyncIterator[ManagedWorld]:
    install_crd(cluster)
    async with Transport(load_kubeconfig(cluster.kubeconfig)) as transport:
        yield ManagedWorld(Client(transport, user_agent="test"), namespace)


def sizes() -> tuple[int, int]:
    """How many ManagedResources, of how many objects."""
    found = re.fullmatch(r"(\d+)x(\d+)", os.environ.get("UNDER_FAULTS", "3x5"))
    assert found, "UNDER_FAULTS: must be like 50x10"
    count, size = int(found[1]), int(found[2])
    assert count >= 2, "UNDER_FAULTS: objects move between ManagedResources, so there must be two at least"
    assert size >= 5, "UNDER_FAULTS: five objects at least, one of each kind"
    return count, size


@pytest.mark.parametrize("name", TROUBLES)
async def test_managed_resources_come_true_under(
    name: str, cluster: Cluster, world: ManagedWorld, tmp_path: Path
) -> None:
    trouble = TROUBLES[name]
    count, size = sizes()
    rule = trouble.rule(count * size)
    patience = 300.0 + count * size / 5
    async with proxied(cluster, tmp_path, seed=1) as (proxy, transport):
        client = ImpatientClient(transport, user_agent=USER_AGENT)
        await world.add_decoys()
        proxy.rules.add(rule)
        async with control_loop(client, world.namespace, timings=QUICK):
            await world.want({f"m-{i}": objects_of(i, size, version="1") for i in range(count)})
            await world.want({"m-0": [*objects_of(0, size, version="1"), config_map(SHARED)]})
            await world.settle(within=patience)
            assert proxy.injected[trouble.fault.name], "the fault did not strike: this test shows nothing"

            await world.keep(("ConfigMap", SHARED))
            await world.keep(*(("Service", f"s-{i}") for i in range(count)))
            proxy.rules.clear()
            proxy.rules.add(rule)
            await world.want({"m-1": [*objects_of(1, size, version="2"), config_map(SHARED)]})
            await world.want({f"m-{i}": objects_of(i, size, version="2") for i in range(count) if i != 1})
            await world.settle(within=patience)

            world.kept.clear()
            proxy.rules.clear()
            await world.want_nothing()
            await world.settle(within=patience)


# --- single requests that are refused


def refusal(code: int, reason: str, *, carried_out: bool = False) -> Answer:
    return Answer(name=reason, code=code, reason=reason, message="not now", carried_out=carried_out)


CONFLICT, FORBIDDEN = refusal(409, "Conflict"), refusal(403, "Forbidden")
LOST = refusal(404, "NotFound", carried_out=True)
"""Carried out, as by another client who was quicker."""
EXISTS = refusal(409, "AlreadyExists", carried_out=True)
TOO_LARGE = refusal(413, "RequestEntityTooLarge")
NOT_SERVED = STRANGERS[0]

Manifests: TypeAlias = Callable[[str], list[Object]]
"""Of a ManagedResource of this name."""


def old(name: str) -> list[Object]:
    return [config_map(name)]


def new(name: str) -> list[Object]:
    return [config_map(name, "2")]


def more(name: str) -> list[Object]:
    return [config_map(name), config_map(f"{name}-too")]


def other(name: str) -> list[Object]:
    return [config_map(f"{name}-too")]


def released(name: str) -> list[Object]:
    return [config_map(name, **{keys.MODE: keys.MODE_IGNORE})]


def immutable(name: str, version: str = "1", **annotated: str) -> list[Object]:
    """It can't be updated, and may be deleted for it."""
    found = config_map(name, version, **{keys.DELETE_ON_INVALID_UPDATE: "true"}, **annotated)
    return [{**found, "immutable": True}]


def replaced(name: str) -> list[Object]:
    return immutable(name, "2")


OBJECT, METADATA, STATUS = "/configmaps/{}$", "/managedresources/{}$", "/managedresources/{}/status$"
CREATION = "/configmaps$"

REFUSED: dict[str, tuple[Manifests, Manifests | None, str, str, Answer | Foreign, int]] = {
    "a creation, since it was created": (other, old, "POST", CREATION, EXISTS, 1),
    "a creation, since it may not be": (other, old, "POST", CREATION, FORBIDDEN, 1),
    "an update, once too often for a pass": (old, new, "PUT", OBJECT, CONFLICT, 4),
    "an update, of what seems gone": (old, new, "PUT", OBJECT, refusal(404, "NotFound"), 1),
    "an update, of a kind that seems gone": (old, new, "PUT", OBJECT, NOT_SERVED, 1),
    "a replacement, since it is gone": (immutable, replaced, "DELETE", OBJECT, LOST, 1),
    "a replacement, since it has changed": (immutable, replaced, "DELETE", OBJECT, CONFLICT, 1),
    "a replacement, since it may not be": (immutable, replaced, "DELETE", OBJECT, FORBIDDEN, 1),
    "a removal, since it is gone": (old, other, "DELETE", OBJECT, LOST, 1),
    "a removal, since it has changed": (old, other, "DELETE", OBJECT, CONFLICT, 1),
    "a removal, once too often for a step": (old, other, "DELETE", OBJECT, CONFLICT, 4),
    "a removal, since it may not be": (old, other, "DELETE", OBJECT, FORBIDDEN, 1),
    "a removal, of a kind that seems gone": (old, other, "DELETE", OBJECT, NOT_SERVED, 1),
    "a release, since it is gone": (old, released, "PATCH", OBJECT, LOST, 1),
    "a release, since it may not be": (old, released, "PATCH", OBJECT, FORBIDDEN, 1),
    "the inventory, as too large": (old, more, "PATCH", STATUS, TOO_LARGE, 1),
    "the inventory, since it may not be": (old, more, "PATCH", STATUS, FORBIDDEN, 1),
    "the inventory, since it is gone": (old, more, "PATCH", STATUS, LOST, 1),
    "the result, as too large": (old, new, "PATCH", STATUS, TOO_LARGE, 1),
    "the result, since it may not be": (old, new, "PATCH", STATUS, FORBIDDEN, 1),
    "the end, since it is gone": (old, None, "PATCH", METADATA, LOST, 1),
    "the end, since it may not be": (old, None, "PATCH", METADATA, FORBIDDEN, 1),
}
"""What a ManagedResource holds, and then (None: it is deleted); which request of its agent is refused how, how often."""


async def test_what_is_refused_comes_true_after_all(cluster: Cluster, world: ManagedWorld, tmp_path: Path) -> None:
    """All at once, each ManagedResource with another refusal."""
    cases = {f"m-{number}": case for number, case in enumerate(REFUSED.values())}
    async with proxied(cluster, tmp_path) as (proxy, transport):
        client = ImpatientClient(transport, user_agent=USER_AGENT)
        await world.add_decoys()
        async with control_loop(client, world.namespace, sync_period=15, timings=QUICK):
            await world.want({name: before(name) for name, (before, *_) in cases.items()})
            await world.settle()
            await world.keep(*(("ConfigMap", name) for name, (_, then, *_) in cases.items() if then in {new, more}))
            for name, (_, _, method, path, answer, times) in cases.items():
                fault = replace(answer, name=name)
                proxy.rules.add(Rule(fault=fault, methods=(method,), path=path.format(name), times=times))
            await world.want({name: then and then(name) for name, (_, then, *_) in cases.items()})
            await soon(
                lambda: all(proxy.injected[name] == case[-1] for name, case in cases.items()),
                "the refusals",
                state=lambda: proxy.injected,
            )
            await world.settle()


async def test_an_object_whose_annotation_makes_no_sense_is_not_replaced(
    cluster: Cluster, world: ManagedWorld, tmp_path: Path
) -> None:
    async with control_loop(world.client, world.namespace, timings=QUICK):
        await world.want({"m": immutable("c")})
        await world.settle()
        await world.keep(("ConfigMap", "c"))
        wrong = {keys.DELETION_PROPAGATION_ON_INVALID_UPDATE: "at once"}
        await world.want({"m": immutable("c", "2", **wrong)})

        async def message() -> bool:
            return "at once" in (await world.condition("m", "ResourcesApplied")).get("message", "")

        await soon(message, "the condition to report so")
        assert uid(await world.get("ConfigMap", "c")) == world.kept["ConfigMap", "c"]
