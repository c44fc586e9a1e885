"""What a control loop does with its stores, and which changes lead to which keys."""

import asyncio
import uuid
from typing import Any, cast

import pytest

from kube.objects import Key, Object, resource_version
from kube.resources import CONFIG_MAPS, SECRETS
from kube.runtime.cache import Caches, Change, Store, View
from kube.runtime.client import Client
from kube.runtime.controller import Done, Result
from kube.runtime.loop import ControlLoop, EventHandler, enqueue, enqueue_after, enqueue_mapped, enqueue_own
from kube.runtime.predicates import changed, changed_or_listed, exists, now
from kube.runtime.priorities import CHANGE, RESYNC
from kube.runtime.watch import ListBegins, ListEnds, Present

OWN, OTHER = Key("ns", "own"), Key("ns", "other")
MAPS, SECRET_VERSIONS = View(CONFIG_MAPS, resource_version), View(SECRETS, resource_version)


class Unwatched(Caches):
    """Stores that tests feed."""

    def __init__(self) -> None:
        super().__init__(cast("Client", None))
        self.held: dict[View[Any], Store[Any]] = {}

    def acquire(self, view: View[Any], *, needed_at_start: bool = False) -> Store[Any]:
        assert view not in self.held
        return self.held.setdefault(view, Store(view, needed_at_start=needed_at_start))

    async def release(self, view: View[Any]) -> None:
        del self.held[view]


class Reconciler:
    def __init__(self) -> None:
        self.seen: list[Key] = []

    async def reconcile(self, key: Key) -> Result:
        self.seen.append(key)
        return Done()


def config_map(version: int) -> Object:
    return {"metadata": {"namespace": OWN.namespace, "name": OWN.name, "resourceVersion": str(version)}}


def fill(store: Store[Any], *objects: Object) -> None:
    source = store.source("")
    source.apply(ListBegins(1))
    for obj in objects:
        source.apply(Present(obj))
    source.apply(ListEnds(1))


def control_loop(**options: Any) -> ControlLoop:
    return ControlLoop(f"loop-{uuid.uuid4()}", **options)


async def test_keys_are_reconciled() -> None:
    caches, reconciler = Unwatched(), Reconciler()
    loop = control_loop(initial_keys=[OTHER])
    fill(loop.watch(caches, MAPS, enqueue(when=exists)), config_map(1))
    loop.reconciled_by(reconciler)
    await loop.start()
    working = asyncio.create_task(loop.controller.run())
    while len(reconciler.seen) < 2:
        await asyncio.sleep(0)
    working.cancel()
    await asyncio.wait([working])
    assert sorted(reconciler.seen) == [OTHER, OWN]


async def test_handlers_hear_nothing_until_all_stores_are_synced() -> None:
    caches, heard = Unwatched(), list[Key]()
    loop = control_loop()
    maps = loop.watch(caches, MAPS, lambda _, change: heard.append(change.key))
    secrets = loop.watch(caches, SECRET_VERSIONS)
    assert maps.needed_at_start
    assert secrets.needed_at_start
    fill(maps, config_map(1))
    starting = asyncio.create_task(loop.start())
    await asyncio.sleep(0)
    assert heard == []
    fill(secrets)
    await starting
    assert heard == [OWN]


async def test_a_store_that_is_watched_late_is_heard_at_once_and_can_be_given_back() -> None:
    caches, heard = Unwatched(), list[Change[int]]()
    loop = control_loop()
    await loop.start()
    maps = loop.watch(caches, MAPS, lambda _, change: heard.append(change))
    assert not maps.needed_at_start
    fill(maps, config_map(1))
    assert [change.key for change in heard] == [OWN]
    loop.unwatch(maps)
    maps.resync()
    assert len(heard) == 1
    await loop.close()
    assert caches.held == {}


async def test_close_gives_back_all_stores_also_if_the_start_was_cancelled() -> None:
    caches, ended = Unwatched(), list[str]()

    async def end() -> None:
        ended.append("closed")
        loop.unwatch(late)

    loop = control_loop()
    loop.watch(caches, MAPS, enqueue(when=exists))
    late = loop.watch(caches, SECRET_VERSIONS, enqueue(when=exists))
    loop.on_close(end)
    starting = asyncio.create_task(loop.start())
    await asyncio.sleep(0)
    starting.cancel()
    await asyncio.wait([starting])
    await loop.close()
    assert ended == ["closed"]
    assert caches.held == {}


async def test_a_close_that_was_cut_off_is_carried_on() -> None:
    """As when a process is to end while its control loops are recreated."""

    class Slow(Unwatched):
        async def release(self, view: View[Any]) -> None:
            await super().release(view)
            if not cut_off.done():
                await cut_off

    cut_off = asyncio.get_running_loop().create_future()
    caches, ended = Slow(), list[str]()

    async def end() -> None:
        ended.append("closed")

    loop = control_loop()
    for view in MAPS, SECRET_VERSIONS:
        loop.watch(caches, view, enqueue(when=exists))
    loop.on_close(end)
    closing = asyncio.create_task(loop.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    await loop.close()
    assert ended == ["closed"]
    assert caches.held == {}


async def test_kinds_that_changed_are_passed_on() -> None:
    groups: list[str] = []
    loop = control_loop()
    loop.kinds_changed("example.com")
    loop.on_kinds_changed(groups.append)
    loop.kinds_changed("example.com")
    assert groups == ["example.com"]


class Queue:
    def __init__(self) -> None:
        self.added: list[tuple[Any, ...]] = []
        self.forgotten: list[Key] = []

    def add(self, *added: Any) -> None:
        self.added.append(added)

    add_after = add

    def forget(self, key: Key) -> None:
        self.forgotten.append(key)


LISTED = Change(OWN, None, 1, initial=True)
CREATED = Change(OWN, None, 1, initial=False)
UPDATED = Change(OWN, 1, 2, initial=False)
UNTOUCHED = Change(OWN, 1, 1, initial=False)
RESYNCED = Change(OWN, 1, 1, initial=True)
GONE = Change(OWN, 1, None, initial=False)


def others(_: Change[int]) -> list[Key]:
    return [OTHER]


def is_even(kept: int) -> bool:
    return kept % 2 == 0


@pytest.mark.parametrize(
    ("change", "is_other", "is_added"),
    [
        (Change(OWN, 1, 2, initial=False), True, True),
        (Change(OWN, 2, 1, initial=True), True, True),
        (CREATED, True, True),
        (GONE, True, True),
        (Change(OWN, 2, 4, initial=False), False, True),
        (Change(OWN, 1, 3, initial=False), False, False),
        (UNTOUCHED, False, False),
    ],
)
def test_responsibility_that_changes_leads_to_a_pass_and_ends_former_back_off(
    change: Change[int], is_other: bool, is_added: bool
) -> None:
    forgotten: list[Key] = []
    queue: Any = Queue()
    handle = enqueue_own(is_even, when=now(lambda kept: kept == 4), forget=forgotten.append)
    handle(queue, change)
    assert forgotten == queue.forgotten == [OWN] * is_other
    assert [key for key, _ in queue.added] == [OWN] * is_added


@pytest.mark.parametrize(
    ("handler", "change", "expected"),
    [
        (enqueue(exists), LISTED, [(OWN, RESYNC)]),
        (enqueue(exists), UNTOUCHED, [(OWN, CHANGE)]),
        (enqueue(exists), GONE, []),
        (enqueue(changed()), UPDATED, [(OWN, CHANGE)]),
        (enqueue(changed()), GONE, [(OWN, CHANGE)]),
        (enqueue(changed()), UNTOUCHED, []),
        (enqueue(changed()), RESYNCED, []),
        (enqueue(changed_or_listed), RESYNCED, [(OWN, RESYNC)]),
        (enqueue(changed_or_listed), UNTOUCHED, []),
        (enqueue_mapped(others), LISTED, [(OTHER, RESYNC)]),
        (enqueue_mapped(others), CREATED, [(OTHER, CHANGE)]),
        (enqueue_mapped(others), RESYNCED, []),
        (enqueue_mapped(others, when=changed_or_listed), RESYNCED, [(OTHER, RESYNC)]),
        (enqueue_after(1.5, OTHER, when=changed()), UPDATED, [(OTHER, 1.5, CHANGE)]),
        (enqueue_after(1.5, OTHER, when=changed()), RESYNCED, []),
    ],
)
def test_a_handler_adds(handler: EventHandler[int], change: Change[int], expected: list[tuple[Any, ...]]) -> None:
    queue: Any = Queue()
    handler(queue, change)
    assert queue.added == expected
