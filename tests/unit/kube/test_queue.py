"""The rules of the work queue, on a clock that the test moves."""

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import REGISTRY

from kit.clock import FakeClock, Timer, settle
from kube.runtime.priorities import CHANGE, LAST, REMOVAL, RESYNC
from kube.runtime.queue import QueueShutDownError, WorkQueue


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def queue_of(clock: FakeClock, **options: Any) -> WorkQueue[str]:
    return WorkQueue(f"queue-{uuid.uuid4()}", now=clock, call_later=clock.call_later, **options)


@pytest.fixture
def queue(clock: FakeClock) -> WorkQueue[str]:
    return queue_of(clock, workers=20)


async def take_all(queue: WorkQueue[str]) -> list[str]:
    """All keys that are due, in their order; they are in work afterwards."""
    return [await queue.get() for _ in range(len(queue))]


def add_all(queue: WorkQueue[str], *added: Any) -> None:
    """Args: added: keys, or the arguments of `add`."""
    for each in added:
        queue.add(*((each,) if isinstance(each, str) else each))


async def take_and_finish(queue: WorkQueue[str], count: int) -> list[str]:
    """So many keys by a single worker."""
    taken = []
    for _ in range(count):
        taken.append(await queue.get())
        queue.done(taken[-1])
    return taken


def metric(queue: WorkQueue[str], name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, {"name": queue.name, "controller": queue.name, **labels})


# --- order


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        pytest.param([("a",), ("b",), ("c",)], "abc", id="in the order in which they were added"),
        pytest.param([("a",), ("b",), ("a",), ("a",), ("b",)], "ab", id="one that waits is not added again"),
        pytest.param([("a", RESYNC), ("b", RESYNC), ("c", CHANGE)], "cab", id="changes before what is looked at again"),
        pytest.param(
            [("a", LAST), ("b", RESYNC), ("c", CHANGE), ("d", LAST), ("d", RESYNC)],
            "cbda",
            id="what is put off when nothing else is left",
        ),
        pytest.param(
            [("a", RESYNC), ("b", RESYNC), ("c", RESYNC), ("c",)],
            "cab",
            id="a change lifts what waits with low priority",
        ),
        pytest.param([("a",), ("b", RESYNC), ("a", RESYNC)], "ab", id="a resync does not lower a change"),
        pytest.param(
            [("a", RESYNC), ("b", REMOVAL), ("b", RESYNC), ("c", CHANGE)],
            "cba",
            id="a removal after changes and before resyncs",
        ),
    ],
)
async def test_the_order_of_keys(queue: WorkQueue[str], added: list[Any], expected: str) -> None:
    add_all(queue, *added)
    assert await take_and_finish(queue, len(expected)) == list(expected)


async def test_what_is_put_off_gets_a_turn_though_there_is_always_something_else(queue: WorkQueue[str]) -> None:
    queue.add("put off", LAST)
    taken = []
    for number in range(100):
        add_all(queue, f"change-{number}", (f"resync-{number}", RESYNC))
        taken += await take_and_finish(queue, 1)
    assert 30 < taken.index("put off") < 60


def leaving_goes_last(clock: FakeClock, leaving: set[str], *, workers: int = 1) -> WorkQueue[str]:
    """Keys in `leaving` are being deleted, whatever they were added for."""
    return queue_of(clock, workers=workers, highest=lambda key: REMOVAL if key in leaving else CHANGE)


@pytest.mark.parametrize("is_delayed", [False, True])
async def test_what_a_key_was_added_for_before_does_not_lift_its_removal(is_delayed: bool, clock: FakeClock) -> None:
    leaving: set[str] = set()
    queue = leaving_goes_last(clock, leaving)
    for key in "abc":
        queue.add_after(key, 60 if is_delayed else 0, CHANGE)
    queue.add("drift")
    leaving.update("abc")
    add_all(queue, "a", "b", "c")
    assert await take_and_finish(queue, 4) == ["drift", "a", "b", "c"]


async def test_a_change_does_not_lift_what_is_removed_not_even_while_it_runs(clock: FakeClock) -> None:
    queue = leaving_goes_last(clock, {"a"})
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a", CHANGE)
    queue.add("drift")
    queue.done("a")
    assert await take_and_finish(queue, 2) == ["drift", "a"]


async def test_workers_that_were_let_through_for_what_was_lowered_wait_on(clock: FakeClock) -> None:
    leaving: set[str] = set()
    queue = leaving_goes_last(clock, leaving, workers=4)
    keys = [f"leaving-{number}" for number in range(10)]
    add_all(queue, *keys)
    leaving.update(keys)
    add_all(queue, *keys)
    taken: list[str] = []

    async def work() -> None:
        while True:
            taken.append(await queue.get())

    at_work = [asyncio.create_task(work()) for _ in range(4)]
    await settle()
    assert taken == keys[:3]  # as many as may be in work at once
    queue.add("drift")
    queue.done(keys[0])
    await settle()
    assert taken == [*keys[:3], "drift", keys[3]]
    queue.shut_down()
    ended = await asyncio.gather(*at_work, return_exceptions=True)
    assert all(isinstance(each, QueueShutDownError) for each in ended)


# --- fairness


async def test_what_comes_in_bulk_gets_its_share_though_there_are_always_changes(queue: WorkQueue[str]) -> None:
    for number in range(100):
        queue.add(f"change-{number}")
        queue.add(f"removal-{number}", REMOVAL)
        queue.add(f"resync-{number}", RESYNC)
    for first in range(0, 60, 10):
        kinds = [key.partition("-")[0] for key in await take_and_finish(queue, 10)]
        assert kinds.count("change") >= 5, first
        assert min(kinds.count("removal"), kinds.count("resync")) >= 1, first


@pytest.mark.parametrize(("workers", "most"), [(1, 1), (2, 1), (5, 4), (10, 8)])
async def test_what_comes_in_bulk_leaves_a_worker_free_for_changes(workers: int, most: int, clock: FakeClock) -> None:
    queue = queue_of(clock, workers=workers)
    for number in range(3000):
        queue.add(f"leaving-{number}", REMOVAL if number % 2 else RESYNC)
    taken: list[str] = []

    async def work() -> None:
        taken.append(await queue.get())

    at_work = [asyncio.create_task(work()) for _ in range(workers)]
    await settle()
    assert len(taken) == most
    queue.add("drift")
    await settle()
    assert ("drift" in taken) == (workers > 1)  # a single worker takes it next
    in_bulk = next(key for key in taken if key != "drift")
    queue.done(in_bulk)
    at_work.append(asyncio.create_task(work()))
    await settle()
    assert "drift" in taken
    assert len(taken) == (most + 2 if workers > 1 else 2)
    for task in at_work:
        task.cancel()
    await asyncio.gather(*at_work, return_exceptions=True)


async def test_a_namespace_with_much_to_do_does_not_keep_others_waiting(clock: FakeClock) -> None:
    queue = queue_of(clock, flow=lambda key: key.partition("/")[0])
    for number in range(3000):
        queue.add(f"busy/{number}")
    add_all(queue, "quiet/a", "quiet/b", "small/a")
    assert await take_and_finish(queue, 7) == [
        "busy/0", "quiet/a", "small/a", "busy/1", "quiet/b", "busy/2", "busy/3",
    ]  # fmt: skip


@pytest.mark.parametrize(("workers", "most"), [(1, 1), (2, 1), (5, 4), (20, 15)])
async def test_passes_that_never_end_leave_workers_to_other_namespaces(
    workers: int, most: int, clock: FakeClock
) -> None:
    queue = queue_of(clock, workers=workers, flow=lambda key: key.partition("/")[0])
    add_all(queue, *(f"stuck/{number}" for number in range(100)))
    taken: list[str] = []

    async def work() -> None:
        while True:
            taken.append(key := await queue.get())
            if key.startswith("stuck"):
                await asyncio.Event().wait()
            await asyncio.sleep(0)
            queue.done(key)

    at_work = [asyncio.create_task(work()) for _ in range(workers)]
    await settle()
    assert len(taken) == most
    add_all(queue, *(f"other-{number % 2}/{number}" for number in range(20)), ("other-0/last", REMOVAL))
    for _ in range(20):
        await settle()
    assert len(taken) == most + (21 if workers > 1 else 0)
    for task in at_work:
        task.cancel()
    await asyncio.gather(*at_work, return_exceptions=True)


async def test_keys_of_no_namespace_get_all_workers(queue: WorkQueue[str]) -> None:
    add_all(queue, *map(str, range(20)))
    assert len([await queue.get() for _ in range(20)]) == 20


async def test_a_drift_comes_before_3000_deletions_in_as_many_namespaces(clock: FakeClock) -> None:
    queue = queue_of(clock, flow=lambda key: key)
    for number in range(3000):
        queue.add(f"leaving-{number}", REMOVAL)
    await queue.get()
    queue.add("drift")
    queue.done("leaving-0")
    assert await queue.get() == "drift"


# --- one worker a key


async def test_a_key_in_work_is_not_handed_out_until_it_is_done(queue: WorkQueue[str]) -> None:
    queue.add("a")
    assert await queue.get() == "a"
    for _ in range(3):
        queue.add("a")
    queue.add("b")
    assert await queue.get() == "b"
    waiter = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    assert not waiter.done()
    queue.done("a")
    assert await waiter == "a"


async def test_a_queue_is_idle_when_no_key_is_due_or_in_work(queue: WorkQueue[str]) -> None:
    seen = [queue.is_idle]
    queue.add("a")
    seen.append(queue.is_idle)
    await queue.get()
    seen.append(queue.is_idle)
    queue.done("a")
    seen.append(queue.is_idle)
    assert seen == [True, False, False, True]


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        pytest.param([], "", id="none: it is gone"),
        pytest.param(["a", "a"], "a", id="all of them make one further run"),
        pytest.param(
            [("a", RESYNC), ("a", CHANGE), ("b", CHANGE), ("a", RESYNC)], "ba", id="a change counts more than a resync"
        ),
    ],
)
async def test_adds_while_a_key_is_in_work(queue: WorkQueue[str], added: list[Any], expected: str) -> None:
    queue.add("a")
    await queue.get()
    add_all(queue, *added)
    queue.done("a")
    assert await take_and_finish(queue, len(expected)) == list(expected)
    assert len(queue) == 0


# --- delays


async def test_a_delayed_key_is_not_due_before_its_time(queue: WorkQueue[str], clock: FakeClock) -> None:
    queue.add_after("a", 10)
    clock.advance(9.9)
    assert len(queue) == 0
    clock.advance(0.1)
    assert await take_all(queue) == ["a"]


@pytest.mark.parametrize("delays", [(10, 5), (5, 10), (7, 5, 6), (10, 0), (0, 10)])
async def test_of_several_delays_the_earliest_wins(queue: WorkQueue[str], clock: FakeClock, delays: Any) -> None:
    for delay in delays:
        queue.add_after("a", delay)
    clock.advance(5)
    assert await take_and_finish(queue, 1) == ["a"]
    clock.advance(100)
    assert len(queue) == 0


async def test_delayed_keys_come_in_the_order_of_their_times(queue: WorkQueue[str], clock: FakeClock) -> None:
    for key, delay in (("c", 3), ("a", 1), ("b", 2)):
        queue.add_after(key, delay)
    clock.advance(3)
    assert await take_all(queue) == ["a", "b", "c"]


async def test_a_delay_that_ends_while_the_key_is_in_work(queue: WorkQueue[str], clock: FakeClock) -> None:
    queue.add("a")
    await queue.get()
    queue.add_after("a", 1)
    clock.advance(2)
    queue.done("a")
    assert await take_all(queue) == ["a"]


@pytest.mark.parametrize("delay", [0, -1])
async def test_no_delay_means_at_once(queue: WorkQueue[str], delay: float) -> None:
    queue.add_after("a", delay)
    assert await take_all(queue) == ["a"]


async def test_a_delayed_key_keeps_the_priority_with_which_it_ran(queue: WorkQueue[str], clock: FakeClock) -> None:
    queue.add("resynced", RESYNC)
    await queue.get()
    queue.add_after("resynced", 1)
    queue.done("resynced")
    clock.advance(1)
    queue.add("changed")
    assert await take_all(queue) == ["changed", "resynced"]


async def test_one_timer_serves_all_delays(queue: WorkQueue[str], clock: FakeClock) -> None:
    for number in range(100):
        queue.add_after(f"key-{number}", 200 - number)
    assert clock.pending == 1


async def test_moving_delayed_keys_forward_takes_no_memory(queue: WorkQueue[str], clock: FakeClock) -> None:
    for step in range(10_000):
        queue.add_after("a", 20_000 - step)
    assert len(queue._delays.heap) < 100
    clock.advance(10_001)
    assert await take_all(queue) == ["a"]


async def test_a_timer_that_goes_off_early_is_set_again(clock: FakeClock) -> None:
    early: list[Callable[[], object]] = []
    delays: list[float] = []

    def call_later(delay: float, callback: Callable[[], object]) -> Timer:
        delays.append(delay)
        early.append(callback)
        return Timer(callback)

    queue: WorkQueue[str] = WorkQueue(f"queue-{uuid.uuid4()}", now=clock, call_later=call_later)
    queue.add_after("a", 1)
    clock.now += 0.9999
    early.pop()()
    assert len(queue) == 0
    assert delays == [1, 0.001]
    clock.now += 0.001
    early.pop()()
    assert len(queue) == 1


# --- what is only looked at because it is time


async def test_regular_looks_that_are_put_off_come_back_together_until_one_is_needed(clock: FakeClock) -> None:
    requested: list[tuple[float, str]] = []

    def put_off(key: str) -> float | None:
        requested.append((clock.now, key))
        return None if clock.now > 1100 else 60

    queue = queue_of(clock, workers=20, put_off=put_off)
    for number in range(10):
        queue.add_after(f"key-{number}", 10.1 + number / 20, RESYNC)
    clock.advance(20)
    assert (len(queue), len(requested), clock.pending) == (0, 10, 1)
    clock.advance(60)
    assert (len(queue), {moment for moment, _ in requested[10:]}) == (0, {1071})
    assert metric(queue, "workqueue_retries_total") == 10 + 20
    clock.advance(60)
    assert len(await take_all(queue)) == 10


@pytest.mark.parametrize("priority", [CHANGE, REMOVAL, LAST])
async def test_only_regular_looks_are_put_off(clock: FakeClock, priority: Any) -> None:
    queue = queue_of(clock, put_off=lambda _: 60)
    queue.add_after("a", 1, priority)
    queue.add_after("b", 1, RESYNC)
    clock.advance(1)
    assert await take_all(queue) == ["a"]


async def test_a_change_comes_at_once_for_what_was_put_off(clock: FakeClock) -> None:
    queue = queue_of(clock, put_off=lambda _: 60)
    queue.add_after("a", 1, RESYNC)
    clock.advance(2)
    queue.add("a")
    assert await take_all(queue) == ["a"]
    queue.done("a")
    clock.advance(100)
    assert len(queue) == 0


async def test_what_a_worker_holds_is_not_put_off(clock: FakeClock) -> None:
    queue = queue_of(clock, put_off=lambda _: 60)
    queue.add("a")
    await queue.get()
    queue.add_after("a", 1, RESYNC)
    clock.advance(2)
    queue.done("a")
    assert await take_all(queue) == ["a"]


# --- back-off


async def delay_of_rate_limited(queue: WorkQueue[str], clock: FakeClock, key: str) -> float:
    start = clock.now
    queue.add_rate_limited(key)
    clock.advance(clock.due - start)
    assert await queue.get() == key
    queue.done(key)
    return clock.now - start


@pytest.mark.parametrize(("options", "longest"), [({}, 1000), ({"max_backoff": 0.06}, 0.06)])
async def test_the_delay_doubles_with_every_failure(options: Any, longest: float, clock: FakeClock) -> None:
    queue = queue_of(clock, **options)
    delays = [await delay_of_rate_limited(queue, clock, "a") for _ in range(20)]
    assert delays == pytest.approx([min(0.005 * 2**n, longest) for n in range(20)])


async def test_each_key_has_its_own_back_off_until_it_is_forgotten(queue: WorkQueue[str], clock: FakeClock) -> None:
    for _ in range(5):
        await delay_of_rate_limited(queue, clock, "a")
    assert await delay_of_rate_limited(queue, clock, "b") == pytest.approx(0.005)
    queue.forget("a")
    assert await delay_of_rate_limited(queue, clock, "a") == pytest.approx(0.005)


async def test_a_key_that_fails_forever_is_delayed_by_a_finite_time(queue: WorkQueue[str], clock: FakeClock) -> None:
    for _ in range(10_000):
        queue.add_rate_limited("a")
    clock.advance(1)
    queue.done(await queue.get())
    assert await delay_of_rate_limited(queue, clock, "a") == pytest.approx(1000)


# --- workers


async def test_keys_reach_workers_that_wait(queue: WorkQueue[str]) -> None:
    waiters = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    for key in "abc":
        queue.add(key)
    assert sorted(await asyncio.gather(*waiters)) == ["a", "b", "c"]


async def test_a_worker_that_is_cancelled_while_a_key_arrives_leaves_it_to_others(queue: WorkQueue[str]) -> None:
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await asyncio.wait_for(second, 60) == "a"
    assert first.cancelled()


async def test_shutting_down_wakes_all_and_hands_out_nothing(queue: WorkQueue[str], clock: FakeClock) -> None:
    waiters = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.add_after("a", 1)
    queue.shut_down()
    results = await asyncio.gather(*waiters, return_exceptions=True)
    assert [type(result) for result in results] == [QueueShutDownError] * 3
    queue.add("b")
    queue.add_after("c", 1)
    queue.add_rate_limited("d")
    clock.advance(10)
    assert len(queue) == 0
    with pytest.raises(QueueShutDownError):
        await queue.get()


async def test_a_key_in_work_can_be_done_after_shutting_down(queue: WorkQueue[str]) -> None:
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    queue.shut_down()
    queue.done(key)
    assert len(queue) == 0


async def test_the_loop_of_the_process_is_the_timer_by_default() -> None:
    queue: WorkQueue[str] = WorkQueue(f"queue-{uuid.uuid4()}")
    queue.add_after("a", 0.001)
    assert await asyncio.wait_for(queue.get(), 60) == "a"


# --- metrics


async def test_all_series_of_a_queue_exist_from_the_start(queue: WorkQueue[str]) -> None:
    for name in (
        "workqueue_adds_total",
        "workqueue_retries_total",
        "workqueue_queue_duration_seconds_count",
        "workqueue_work_duration_seconds_count",
        "workqueue_unfinished_work_seconds",
        "workqueue_longest_running_processor_seconds",
    ):
        assert metric(queue, name) == 0
    assert metric(queue, "workqueue_depth", priority="0") == 0
    assert metric(queue, "workqueue_depth", priority="-100") == 0


async def test_the_depth_counts_what_is_due_and_not_what_is_delayed(queue: WorkQueue[str]) -> None:
    add_all(queue, "a", "b", ("c", RESYNC))
    queue.add_after("d", 10)
    assert metric(queue, "workqueue_depth", priority="0") == 2
    assert metric(queue, "workqueue_depth", priority="-100") == 1
    await queue.get()
    queue.add("a")
    assert metric(queue, "workqueue_depth", priority="0") == 2


async def test_adds_are_keys_that_become_due_and_retries_delayed_adds(queue: WorkQueue[str], clock: FakeClock) -> None:
    queue.add("a")
    queue.add("a")
    queue.add_after("b", 10)
    queue.add_rate_limited("c")
    assert metric(queue, "workqueue_adds_total") == 1
    assert metric(queue, "workqueue_retries_total") == 2
    clock.advance(10)
    assert metric(queue, "workqueue_adds_total") == 3


async def test_waiting_and_working_are_timed(queue: WorkQueue[str], clock: FakeClock) -> None:
    queue.add("a")
    clock.advance(2)
    queue.add("a")
    await queue.get()
    assert metric(queue, "workqueue_queue_duration_seconds_sum") == 2
    clock.advance(3)
    queue.add("b")
    await queue.get()
    clock.advance(1)
    assert metric(queue, "workqueue_unfinished_work_seconds") == 5
    assert metric(queue, "workqueue_longest_running_processor_seconds") == 4
    queue.done("a")
    assert metric(queue, "workqueue_work_duration_seconds_sum") == 4
    assert metric(queue, "workqueue_longest_running_processor_seconds") == 1


async def test_waiting_for_ones_own_run_to_end_counts_as_waiting(queue: WorkQueue[str], clock: FakeClock) -> None:
    queue.add("a")
    await queue.get()
    queue.add("a")
    clock.advance(7)
    queue.done("a")
    await queue.get()
    assert metric(queue, "workqueue_queue_duration_seconds_sum") == 7
