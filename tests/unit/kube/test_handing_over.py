"""Which passes give their workers to namespaces that have none, and what becomes of them."""

import asyncio
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kit.clock import FakeClock, settle
from kube.objects import Key
from kube.runtime.controller import Controller, Done, Result
from kube.runtime.handing_over import BULK_SECONDS, LOOK_SECONDS, Holder, to_give_way, waits
from kube.runtime.priorities import CHANGE, RESYNC, Priority
from kube.runtime.queue import WorkQueue

NOW = 1000.0
WORKERS = 20


def holders(**described: tuple[str, Priority, float]) -> Mapping[str, Holder]:
    """Args: described: flow, priority and for how many seconds each key is in work."""
    return {key: Holder(flow, priority, NOW - age) for key, (flow, priority, age) in described.items()}


@pytest.mark.parametrize(
    ("held", "options", "expected"),
    [
        pytest.param(
            holders(new=("a", CHANGE, 0.2), old=("a", CHANGE, 0.4)), {"to_change": True}, ["old"], id="after a moment"
        ),
        pytest.param(
            holders(a=("a", CHANGE, 5), b=("b", CHANGE, 9)), {"to_change": True}, ["b", "a"], id="the oldest first"
        ),
        pytest.param(
            holders(a=("one", CHANGE, 9), b=("two", CHANGE, 5), c=("two", CHANGE, 7)),
            {"to_change": True},
            ["c", "b", "a"],
            id="of who has most first",
        ),
        pytest.param(
            holders(a=("a", CHANGE, 9), b=("b", RESYNC, 5)), {"to_change": True}, ["b", "a"], id="bulk before changes"
        ),
        pytest.param(
            holders(a=("a", CHANGE, 59), b=("b", RESYNC, 59), c=("c", RESYNC, 60)),
            {"to_change": False},
            ["c"],
            id="to bulk after a minute",
        ),
        pytest.param(
            holders(a=("a", CHANGE, 99), b=("b", RESYNC, 60)),
            {"to_change": False, "bulk_only": True},
            ["b"],
            id="only bulk where changes make no room",
        ),
    ],
)
def test_which_give_way(held: Mapping[str, Holder], options: dict[str, bool], expected: list[str]) -> None:
    assert to_give_way(held, now=NOW, **options) == expected


class Desk:
    """A queue for twenty workers, and passes that only wait, but for those of `busy` keys."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.ended: list[str] = []
        self.busy = set[str]()
        self.queue: WorkQueue[str] = WorkQueue(
            f"queue-{uuid.uuid4()}",
            workers=WORKERS,
            flow=lambda key: key.partition("/")[0],
            give_way=self._give_way,
            now=self.clock,
            call_later=self.clock.call_later,
        )

    def _give_way(self, key: str) -> bool:
        if key in self.busy:
            return False
        self.ended.append(key)
        return True

    async def fill(self, *namespaces: str, priority: Priority = CHANGE) -> None:
        """Have workers taken by one namespace after the other, as many as it gets."""
        for namespace in namespaces:
            for number in range(WORKERS):
                self.queue.add(f"{namespace}/{number}", priority)
            while self.queue._offered:
                await self.queue.get()


async def test_six_namespaces_do_not_keep_all_workers_from_a_seventh() -> None:
    desk = Desk()
    await desk.fill(*"abcdef")
    assert len(desk.queue._running) == WORKERS
    desk.clock.advance(30)
    assert desk.ended == []
    desk.queue.add("other/shoot")
    desk.clock.advance(LOOK_SECONDS)
    assert [each.partition("/")[0] for each in desk.ended] == ["a"]
    desk.queue.done(desk.ended[0])
    assert await desk.queue.get() == "other/shoot"


async def test_what_works_does_not_give_way_and_one_makes_room_for_one() -> None:
    desk = Desk()
    await desk.fill(*"abcdef")
    desk.busy = {each for each in desk.queue._running if each.startswith("a/")}
    desk.clock.advance(30)
    for name in ("x/1", "x/2", "y/1"):
        desk.queue.add(name)
    desk.clock.advance(LOOK_SECONDS)
    assert len(desk.ended) == 2
    assert not desk.busy.intersection(desk.ended)


@pytest.mark.parametrize(("priority", "seconds"), [(CHANGE, LOOK_SECONDS), (RESYNC, BULK_SECONDS)])
async def test_how_long_bulk_has_its_workers(priority: Priority, seconds: float) -> None:
    desk = Desk()
    await desk.fill("bulk", priority=RESYNC)
    await desk.fill(*"abcde")
    assert len(desk.queue._running) == WORKERS
    desk.queue.add("other/shoot", priority)
    desk.clock.advance(0.9 * seconds)
    assert desk.ended == []
    desk.clock.advance(2 * seconds)
    assert {each.partition("/")[0] for each in desk.ended} == {"bulk"}


async def test_only_those_without_any_worker_are_given_one() -> None:
    desk = Desk()
    await desk.fill(*"abcdef")
    desk.queue.add("b/another")
    desk.clock.advance(600)
    assert desk.ended == []
    assert desk.clock.pending == 0


class Passes:
    """A controller whose passes of `stuck` namespaces wait forever."""

    def __init__(self, wait: Callable[[], Any]) -> None:
        self.seen: list[str] = []
        self._wait = wait
        self.controller = Controller(f"controller-{uuid.uuid4()}", self._reconcile, concurrency=2, stop_within=0.1)

    async def _reconcile(self, name: Key) -> Result:
        self.seen.append(name.namespace)
        if name.namespace.startswith("stuck"):
            await asyncio.gather(self._wait())
        return Done()


async def stuck() -> None:
    with waits():
        await asyncio.Event().wait()


async def at_work() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(("wait", "comes"), [(stuck, True), (at_work, False)])
async def test_a_pass_that_waits_ends_and_comes_again(wait: Callable[[], Any], comes: bool) -> None:
    passes = Passes(wait)
    clock = FakeClock()
    queue = passes.controller.queue
    queue._now, queue._call_later = clock, clock.call_later
    queue._delays._now, queue._delays._call_later = clock, clock.call_later
    running = asyncio.create_task(passes.controller.run())
    await settle()
    for name in ("stuck-1", "stuck-2"):
        queue.add(Key(name, "shoot"))
    await settle()
    queue.add(Key("other", "shoot"))
    clock.advance(1)
    await asyncio.sleep(0.01)
    await settle()
    assert passes.seen[2:] == (["other"] if comes else [])
    clock.advance(1)
    await settle()
    assert passes.seen[3:] == (["stuck-1"] if comes else [])
    assert len(queue._failures) == 0
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
