"""The controller manager while things go wrong between it and the API server: in the end all is as without, nothing is
deleted that is not deleted then, and what a watch has not reported is not taken for what is not there.

`GARDEN_UNDER_FAULTS=50` in the environment sets how many Projects there are.
"""

import contextlib
import itertools
import os
import threading
import uuid
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.controller_manager.controllers import CONTROLLERS
from agent.controller_manager.credentials import declare_secrets as credentials
from agent.controller_manager.project.activity import declare as activity
from agent.controller_manager.project.lifecycle.controller import declare as project
from agent.controller_manager.seed.lifecycle import declare as lifecycle
from agent.controller_manager.shoot.reference import declare as reference
from config.controller_manager.controllers import Controllers, Project, QuotaConfiguration, Seed
from config.controller_manager.schema import ControllerManagerConfiguration
from devcluster.audit import Audit, Call
from devcluster.testing.faults import (
    STRANGERS,
    Answer,
    Delay,
    EndWatch,
    LateEvents,
    RepeatEvents,
    Reset,
    Rule,
    Silence,
    Truncated,
    WatchEnd,
    expired,
    internal_error,
    throttled,
    unauthorized,
    unavailable,
)
from devcluster.testing.proxy import FaultProxy, LogEntry
from gardener.api.garden import CREDENTIALS_BINDINGS, PROJECTS, SEEDS, SHOOTS
from gardener.garden.seeds import LEASE_NAMESPACE
from gardener.keys import CREDENTIALS_BINDING_REFERENCE, CREDENTIALS_FINALIZER, REFERENCE_PROTECTION
from kit.eventually import eventually, soon
from kit.garden import CONFIRMED, Garden
from kit.garden_controllers import Declare, looked_at, replica, run_garden_controllers, until_idle
from kit.garden_projects import Projects
from kit.garden_shoots import ShootPlace
from kit.proxied import QUICK, ImpatientClient, proxied
from kit.world import connected
from kube.clock import format_micro_time, format_time
from kube.errors import NotFound
from kube.objects import Object, finalizers, metadata
from kube.objects import condition as condition_of
from kube.resources import LEASES, NAMESPACES, RBAC_GROUP, SECRETS, Resource
from kube.runtime.client import Client
from kube.runtime.loop import ControlLoop
from kube.runtime.watch import Timings

pytestmark = pytest.mark.timeout(600)

COUNT = int(os.environ.get("GARDEN_UNDER_FAULTS", "8"))
QUOTA = QuotaConfiguration(config={"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": "5"}}})
SETTINGS = Controllers(project=Project(quotas=(QUOTA,)))
USER_AGENT = "under-faults"
LONGEST_BACK_OFF = 1.0
TIMINGS = replace(QUICK, server_timeout=30, idle_timeout=4)
"""There are so many watches that to open them costs more than all else."""
WRITES = ("POST", "PUT", "PATCH", "DELETE")

# --- any fault


CONFLICT = Answer(name="conflict", code=409, reason="Conflict", message="the object has been modified")


def rarely(fault: Any, probability: float = 0.01, **which: Any) -> Rule:
    return Rule(fault=fault, probability=probability, **which)


MIX = (
    *(rarely(each) for each in (*STRANGERS, Truncated(), unauthorized(), internal_error(), unavailable(), Reset())),
    *(rarely(each, 0.02, methods=WRITES) for each in (internal_error(carried_out=True), Reset(carried_out=True))),
    rarely(CONFLICT, 0.05, methods=("PUT", "PATCH", "DELETE")),
    rarely(throttled(retry_after=1), times=10),
    rarely(Silence(), times=3),
    rarely(Silence(carried_out=True), times=3, methods=WRITES),
    rarely(Delay(seconds=0.2, carried_out=True), 0.05),
    rarely(expired(), 0.1, watch=True),
    *(rarely(EndWatch(how=how, after_events=5), 0.1, watch=True) for how in WatchEnd),
    rarely(RepeatEvents(), 0.2, watch=True),
    rarely(LateEvents(seconds=0.3), 0.3, watch=True),
)


@asynccontextmanager
async def controller_manager(
    garden: Garden, directory: Path, *, timings: Timings | None = None
) -> AsyncIterator[tuple[FaultProxy, list[ControlLoop]]]:
    """All its controllers at work, behind a proxy."""
    declared = CONTROLLERS.load(ControllerManagerConfiguration(controllers=SETTINGS))
    async with proxied(garden.cluster, directory) as (proxy, transport):
        client = ImpatientClient(transport, user_agent=USER_AGENT)
        async with run_garden_controllers(declared, client, controllers=SETTINGS, timings=timings) as loops:
            for loop in loops:
                loop.queue._max_backoff = min(loop.queue._max_backoff, LONGEST_BACK_OFF)
            yield proxy, loops


@dataclass(frozen=True)
class Life:
    """What was there and what was deleted, without what differs from run to run."""

    changed: dict[str, Any]
    deleted: set[str]


async def live(garden: Garden, directory: Path, *rules: Rule, like: Life | None = None) -> Life:
    """Args: like: how it is to be in the end; None: it is at its end when nothing is to be done any more."""
    timings = TIMINGS if rules else None
    async with (
        connected(garden.cluster) as client,
        controller_manager(garden, directory, timings=timings) as (proxy, loops),
    ):
        projects = Projects(garden, client, count=COUNT)
        proxy.rules.add(*rules)
        projects.make()
        await projects.until_made()
        await projects.fill()
        await projects.until_filled()
        before = await projects.kept()
        projects.change()
        await projects.until_changed()

        async def is_at_its_end() -> bool:
            if like is None:
                return all(loop.queue.is_idle for loop in loops)
            assert await projects.state() == like.changed
            return True

        await soon(is_at_its_end)
        after = await projects.kept()
        assert {name: after.get(name) for name in before} == before
        found = await projects.state()
        projects.delete_shoot()
        await projects.until_released()
        assert len(proxy.injected) >= len(rules) / 2, "few faults struck: this shows little"
        await projects.clean_up()
    deletions = (each for each in proxy.log if each.request.method == "DELETE" and each.answer in range(200, 300))
    return Life(found, {projects.anonymous(each.request.path) for each in deletions})


async def test_all_is_as_without_faults_and_nothing_else_is_deleted(garden: Garden, tmp_path: Path) -> None:
    undisturbed = await live(garden, tmp_path)
    disturbed = await live(garden, tmp_path, *MIX, like=undisturbed)
    assert disturbed.deleted <= undisturbed.deleted


# --- what a watch has not reported


@asynccontextmanager
async def without_news_of(
    garden: Garden, directory: Path, resource: Resource, declare: Declare, **options: Any
) -> AsyncIterator[tuple[FaultProxy, ControlLoop]]:
    """A controller that has listed all, and whose watch of one kind reports nothing any more."""
    async with proxied(garden.cluster, directory) as (proxy, transport):
        path = f"/{resource.plural}$"
        proxy.rules.add(Rule(fault=EndWatch(how=WatchEnd.SILENT), path=path, watch=True))
        client = Client(transport, user_agent="without-news")
        async with run_garden_controllers([declare], client, **options) as (loop,):
            await soon(lambda: proxy.injected[WatchEnd.SILENT.value], "the watch to fall silent")
            yield proxy, loop


async def requested(proxy: FaultProxy, loop: ControlLoop, path: str) -> None:
    """Returns when the API server has been queried, and what follows from it is done."""
    await soon(lambda: any(path in e.request.path and e.answer == 200 for e in _reads(proxy)), f"{path} to be read")
    await until_idle(loop)


def _reads(proxy: FaultProxy) -> list[LogEntry]:
    """Those that are no list of all, which are made at the start."""
    return [e for e in proxy.log if e.request.method == "GET" and not e.request.watch]


async def test_a_seed_is_not_lost_as_long_as_its_lease_is_renewed(garden: Garden, tmp_path: Path) -> None:
    place = ShootPlace(garden)
    seed = place.seed()
    condition = {"type": "GardenletReady", "status": "True", "reason": "R", "message": "m"}
    now = datetime.now(UTC)
    times = dict.fromkeys(("lastTransitionTime", "lastUpdateTime"), format_time(now))
    place.patch(SEEDS, seed, {"status": {"conditions": [condition | times]}}, status=True)
    garden.create(LEASES, seed, namespace=LEASE_NAMESPACE, spec={"renewTime": format_micro_time(now)})
    hour = Controllers(seed=Seed(monitor_period=3600.0))
    async with without_news_of(garden, tmp_path, LEASES, lifecycle, controllers=hour, clock=lambda: now) as (
        proxy,
        loop,
    ):
        now += timedelta(hours=2)
        renewed = {"spec": {"renewTime": format_micro_time(now)}}
        garden.patch(LEASES, seed, renewed, namespace=LEASE_NAMESPACE)
        # Has the Seed looked at.
        place.patch(SEEDS, seed, {"status": {"conditions": [condition | times | {"message": "n"}]}}, status=True)
        await requested(proxy, loop, f"/leases/{seed}")
        assert (condition_of(place.get(SEEDS, seed), "GardenletReady") or {})["status"] == "True"
    garden.delete(LEASES, seed, namespace=LEASE_NAMESPACE)
    place.remove()


async def test_a_namespace_that_a_project_has_just_taken_does_not_go_with_it(garden: Garden, tmp_path: Path) -> None:
    name = f"p{uuid.uuid4().hex[:6]}"
    namespace = f"garden-{name}"
    marks = {"gardener.cloud/role": "project", "project.gardener.cloud/name": name}
    garden.create(NAMESPACES, namespace, metadata={"labels": marks})
    async with without_news_of(garden, tmp_path, NAMESPACES, project) as (proxy, _):
        # It is taken, and the answer lost.
        taken = Reset(carried_out=True)
        proxy.rules.add(Rule(fault=taken, methods=("PATCH",), path=f"/namespaces/{namespace}$", times=1))
        garden.create(PROJECTS, name, spec={"namespace": namespace})
        await soon(lambda: proxy.injected[taken.name], "the namespace to be taken")
        garden.patch(PROJECTS, name, CONFIRMED)
        garden.delete(PROJECTS, name)
        await soon(lambda: _is_gone(garden, PROJECTS, name), "the Project to go")
        left = metadata(garden.get(NAMESPACES, namespace))
        assert {"ownerReferences", "deletionTimestamp"}.isdisjoint(left), "it goes with the Project"
    garden.delete(NAMESPACES, namespace)


def _is_gone(garden: Garden, resource: Resource, name: str) -> bool:
    try:
        garden.get(resource, name)
    except NotFound:
        return True
    return False


async def test_credentials_are_kept_for_a_binding_that_is_not_known_yet(garden: Garden, tmp_path: Path) -> None:
    place = ShootPlace(garden)
    async with without_news_of(garden, tmp_path, CREDENTIALS_BINDINGS, credentials) as (proxy, loop):
        place.create(SECRETS, "cred", stringData={"a": "b"}, metadata={"finalizers": [CREDENTIALS_FINALIZER]})
        reference = {"apiVersion": "v1", "kind": "Secret", "name": "cred", "namespace": place.namespace}
        place.create(CREDENTIALS_BINDINGS, "b", provider={"type": place.name}, credentialsRef=reference)
        place.delete(SECRETS, "cred")
        lists = len(_reads(proxy))
        # As who led before has left it.
        place.patch(SECRETS, "cred", {"metadata": {"labels": {CREDENTIALS_BINDING_REFERENCE: "true"}}})
        await soon(lambda: len(_reads(proxy)) > lists, "the API server to be queried")
        await until_idle(loop)
        kept = place.get(SECRETS, "cred")
        assert finalizers(kept) == [CREDENTIALS_FINALIZER]
        place.delete(CREDENTIALS_BINDINGS, "b")
    place.remove()


async def test_what_shoots_refer_to_is_kept_for_one_that_is_not_known_yet(garden: Garden, tmp_path: Path) -> None:
    place = ShootPlace(garden)

    def refers_to(name: str) -> list[Object]:
        return [{"name": name, "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": name}}]

    place.create(SECRETS, "first", stringData={"a": "b"})
    place.shoot("known", resources=refers_to("first"))
    async with without_news_of(garden, tmp_path, SHOOTS, reference) as (proxy, loop):
        await soon(lambda: REFERENCE_PROTECTION in finalizers(place.get(SECRETS, "first")))
        await until_idle(loop)
        second = place.create(SECRETS, "second", stringData={"a": "b"}, metadata={"finalizers": [REFERENCE_PROTECTION]})
        place.shoot("new", resources=refers_to("second"))
        place.delete(SECRETS, "second")
        await looked_at(loop, SECRETS, {**second, "metadata": place.meta(SECRETS, "second")})
        lists = len(_reads(proxy))
        place.patch(SECRETS, "first", {"metadata": {"finalizers": None}})
        await soon(lambda: len(_reads(proxy)) > lists, "the API server to be queried")
        await until_idle(loop)
        assert finalizers(place.get(SECRETS, "second")) == [REFERENCE_PROTECTION]
    place.remove()


async def test_a_shoot_that_is_heard_of_before_its_project_is_activity(garden: Garden, tmp_path: Path) -> None:
    async with proxied(garden.cluster, tmp_path) as (proxy, transport):
        late = LateEvents(seconds=3)
        proxy.rules.add(Rule(fault=late, path=f"/{PROJECTS.plural}$", watch=True))
        async with run_garden_controllers([activity], Client(transport, user_agent="late-news")):
            place = ShootPlace(garden)
            place.shoot()
            await soon(lambda: "lastActivityTimestamp" in place.get(PROJECTS, place.name).get("status", {}))
            assert proxy.injected[late.name]
    place.remove()


# --- in steady state


async def test_nothing_is_queried_while_seeds_are_alive_and_nothing_changes(garden: Garden, tmp_path: Path) -> None:
    """Not even after renewals of Leases, which a watch reports."""
    place = ShootPlace(garden)
    seed = place.seed()
    place.shoot(seedName=seed)
    spec = {"renewTime": format_micro_time(datetime.now(UTC))}
    garden.create(LEASES, seed, namespace=LEASE_NAMESPACE, spec=spec)
    with contextlib.closing(garden.cluster.audit()) as audit:
        async with controller_manager(garden, tmp_path) as (_, loops):
            (watching,) = (loop for loop in loops if loop.controller.name == "seed-lifecycle")

            async def is_quiet() -> bool:
                mark = audit.mark()
                for _ in range(3):
                    renewed = {"spec": {"renewTime": format_micro_time(datetime.now(UTC))}}
                    lease = garden.patch(LEASES, seed, renewed, namespace=LEASE_NAMESPACE)
                    heard = {"metadata": {"annotations": {"test.example.com/seen": uuid.uuid4().hex}}}
                    place.patch(SHOOTS, "s", heard)
                    await looked_at(watching, LEASES, lease)
                    for loop in loops:
                        await until_idle(loop)
                assert audit.count(since=mark, user_agent=USER_AGENT) == {}
                return True

            await soon(is_quiet, "nothing to be queried")
    garden.delete(LEASES, seed, namespace=LEASE_NAMESPACE)
    place.remove()


# --- two replicas

LEASE = "gardener-controller-manager-leader-election"


@contextlib.contextmanager
def members_that_come_and_go(garden: Garden, projects: list[str]) -> Iterator[None]:
    ended = threading.Event()

    def work() -> None:
        for number, name in enumerate(itertools.cycle(projects)):
            if ended.is_set():
                return
            member = {"kind": "User", "apiGroup": RBAC_GROUP, "name": f"user-{number}", "roles": ["admin"]}
            garden.patch(PROJECTS, name, {"spec": {"members": [member]}})

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        try:
            yield
        finally:
            ended.set()
        working.result()


def writes_of(audit: Audit, user: str, *, since: int = 0) -> list[Call]:
    """Refused ones, too; Events are about leading itself, among others, and anybody may write them."""
    calls = audit.calls(since=since, verbs=("create", "update", "patch", "delete"), leases=True)
    return [call for call in calls if call.user == user and call.resource != "events"]


def has_written(audit: Audit, user: str, *, since: int) -> bool:
    return not all(map(is_of_lease, writes_of(audit, user, since=since)))


def is_of_lease(call: Call) -> bool:
    return (call.resource, call.name) == ("leases", LEASE)


def test_two_replicas_hand_over_under_load_and_never_write_both(garden: Garden) -> None:
    mark = uuid.uuid4().hex[:4]
    names, users = [f"p{mark}{number}" for number in range(4)], [f"manager-{mark}-{letter}" for letter in "ab"]
    with contextlib.closing(garden.cluster.audit()) as audit:
        with replica(garden.cluster, users[0]) as first:
            first.wait_until_leading()
            for name in names:
                garden.create(PROJECTS, name, spec={"namespace": f"garden-{name}"})
            with replica(garden.cluster, users[1]) as second, members_that_come_and_go(garden, names):
                for giver, taker, user in ((first, second, users[1]), (second, first, users[0])):
                    taker.wait_until_ready()
                    assert giver.stop() == 0
                    taker.wait_until_leading()
                    taken = audit.mark()
                    eventually(partial(has_written, audit, user, since=taken), "the new leader to write")
                    giver.start()
        calls = sorted((call for user in users for call in writes_of(audit, user)), key=received)
    leases = [call for call in calls if is_of_lease(call) and call.status < 300]
    taken_over = [next(group) for _, group in itertools.groupby(leases, key=lambda call: call.user)]
    assert len(taken_over) == 3
    for call in (each for each in calls if not is_of_lease(each)):
        before = [each for each in taken_over if received(each) <= received(call)]
        assert before, f"no leader: {call.uri}"
        assert before[-1].user == call.user, f"another one led: {call.uri}"
        after = taken_over[len(before) :]
        assert not after or call.event["stageTimestamp"] <= received(after[0]), f"another one leads already: {call.uri}"
    for name in names:
        garden.patch(PROJECTS, name, CONFIRMED)
        garden.patch(PROJECTS, name, {"metadata": {"finalizers": None}})
        garden.delete(PROJECTS, name)


def received(call: Call) -> str:
    moment: str = call.event["requestReceivedTimestamp"]
    return moment
