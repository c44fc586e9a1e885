"""What is done for a Shoot ends when another Seed is responsible."""

import asyncio
from functools import partial

import pytest

from agent.gardenlet.shoot.responsibility import while_on
from gardener.api.garden import SHOOTS
from kube.errors import NotFound
from kube.objects import Object
from kube.runtime.cache import Store, View, without_managed_fields
from kube.runtime.status import Overtaken

VIEW = View(SHOOTS, without_managed_fields)


def shoot(seed: str, *, version: int, wanted: str = "") -> Object:
    meta = {"namespace": "n", "name": "s", "uid": "u", "resourceVersion": str(version)}
    return {"metadata": meta, "spec": {"seedName": wanted or seed}, "status": {"seedName": seed}}


def store_of(obj: Object) -> Store[Object]:
    store = Store(VIEW)
    store.source("")
    store.observe(obj)
    return store


async def test_it_ends_when_another_seed_is_responsible_and_not_before() -> None:
    here = shoot("a", version=1)
    store, has_ended, begun = store_of(here), asyncio.Event(), asyncio.Event()

    async def run() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            has_ended.set()

    running = asyncio.create_task(while_on("a", store, here, run))
    await begun.wait()
    store.observe(shoot("a", version=2, wanted="b"))  # it is only to move
    await asyncio.sleep(0)
    assert not running.done()
    store.observe(shoot("b", version=3))
    with pytest.raises(Overtaken):
        await running
    assert has_ended.is_set()


async def test_it_ends_when_a_new_cluster_takes_the_place_of_the_seed() -> None:
    """A user reports then that the Shoot is to be restored; who moves it reports so, too, but ends by itself."""

    def last(kind: str, state: str, *, version: int) -> Object:
        found = shoot("a", version=version)
        return {**found, "status": {**found["status"], "lastOperation": {"type": kind, "state": state}}}

    here = last("Reconcile", "Processing", version=1)
    store = store_of(here)
    running = asyncio.create_task(while_on("a", store, here, asyncio.Event().wait))
    await asyncio.sleep(0)
    store.observe(last("Reconcile", "Error", version=2))
    await asyncio.sleep(0)
    assert not running.done()
    store.observe(last("Migrate", "Aborted", version=3))
    with pytest.raises(Overtaken):
        await running
    here = last("Restore", "Processing", version=4)
    await while_on("a", store_of(here), here, partial(asyncio.sleep, 0))


async def test_it_ends_when_the_shoot_is_deleted_while_it_is_created() -> None:
    here = shoot("a", version=1)
    store = store_of(here)
    running = asyncio.create_task(while_on("a", store, here, asyncio.Event().wait))
    await asyncio.sleep(0)
    leaving = shoot("a", version=2)
    store.observe({**leaving, "metadata": {**leaving["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    with pytest.raises(Overtaken):
        await running


@pytest.mark.parametrize(
    ("kind", "ends"), [("Create", True), ("Reconcile", True), ("Delete", False), ("Migrate", False)]
)
async def test_it_begins_again_when_settings_of_the_control_plane_change(kind: str, *, ends: bool) -> None:
    """The program that it waits for may never start with the previous ones."""

    def of(version: int, **spec: object) -> Object:
        found = shoot("a", version=version)
        status = {**found["status"], "lastOperation": {"type": kind, "state": "Processing"}}
        return {**found, "spec": {**found["spec"], "kubernetes": {"version": "1"}, **spec}, "status": status}

    here = of(1)
    store = store_of(here)
    running = asyncio.create_task(while_on("a", store, here, asyncio.Event().wait))
    await asyncio.sleep(0)
    store.observe(of(2, purpose="testing"))
    await asyncio.sleep(0)
    assert not running.done()
    store.observe(of(3, kubernetes={"version": "1", "kubeAPIServer": {"runtimeConfig": {}}}))
    if ends:
        with pytest.raises(Overtaken):
            await running
    else:
        await asyncio.sleep(0)
        assert not running.done()
        running.cancel()


async def test_it_begins_again_when_a_file_changes_that_the_control_plane_names() -> None:
    here, change = shoot("a", version=1), asyncio.Event()

    async def until() -> None:
        await change.wait()

    running = asyncio.create_task(while_on("a", store_of(here), here, asyncio.Event().wait, until=until))
    await asyncio.sleep(0)
    assert not running.done()
    change.set()
    with pytest.raises(Overtaken):
        await running


async def test_else_it_ends_as_it_ends() -> None:
    here = shoot("a", version=1)
    store, done = store_of(here), list[str]()

    async def run() -> None:
        done.append("done")

    async def fail() -> None:
        raise NotFound(404, message="gone")

    await while_on("a", store, here, run)
    with pytest.raises(NotFound):
        await while_on("a", store, here, fail)
    store.observe(shoot("b", version=2))
    with pytest.raises(Overtaken):
        await while_on("a", store, here, asyncio.Event().wait)
    assert done == ["done"]


@pytest.mark.parametrize(
    ("kind", "confined", "changed", "ends"),
    [
        ("Reconcile", False, {"kubernetes": {"version": "2"}}, True),
        ("Reconcile", True, {"kubernetes": {"version": "2"}}, False),
        ("Create", True, {"kubernetes": {"version": "2"}}, True),
        ("Reconcile", False, {"seedName": "b"}, False),
        ("Migrate", False, {"seedName": "a"}, True),
        ("Migrate", False, {"kubernetes": {"version": "2"}}, False),
    ],
)
async def test_it_ends_when_it_applies_what_is_no_longer_wanted(
    kind: str, confined: bool, changed: Object, ends: bool
) -> None:
    here = shoot("a", version=1, wanted="b" if kind == "Migrate" else "a")
    here["spec"] |= {"maintenance": {"confineSpecUpdateRollout": confined}}
    here["status"] |= {"lastOperation": {"type": kind, "state": "Processing"}}
    store = store_of(here)
    running = asyncio.create_task(while_on("a", store, here, partial(asyncio.sleep, 0.05)))
    await asyncio.sleep(0)
    meta = {**here["metadata"], "resourceVersion": "2"}
    store.observe({**here, "metadata": meta, "spec": {**here["spec"], **changed}})
    if ends:
        with pytest.raises(Overtaken):
            await running
    else:
        await running
