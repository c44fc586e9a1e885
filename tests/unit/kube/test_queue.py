"""The rules of the work queue, on a clock that the test moves."""

import asyncio
import heapq
import itertools
import uuid
from collections.abc import Callable

import pytest
from prometheus_client import REGISTRY

from kube.queue import CHANGE, RESYNC, QueueShutDownError, WorkQueue


class FakeTimer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class FakeClock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._timers: list[tuple[float, int, FakeTimer]] = []
        self._count = itertools.count()

    def __call__(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], object]) -> FakeTimer:
        timer = FakeTimer(callback)
        heapq.heappush(self._timers, (self.now + delay, next(self._count), timer))
        return timer

    @property
    def pending(self) -> int:
        return sum(not timer.is_cancelled for _, _, timer in self._timers)

    def advance(self, seconds: float) -> None:
        until = self.now + seconds
        while self._timers and self._timers[0][0] <= until:
            self.now, _, timer = heapq.heappop(self._timers)
            if not timer.is_cancelled:
                timer.callback()
        self.now = until


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def queue(clock: FakeClock) -> WorkQueue[str]:
    return WorkQueue(f"queue-{uuid.uuid4()}", now=clock, call_later=clock.call_later)


async def take_all(queue: WorkQueue[str]) -> list[str]:
    """All keys that are due, in their order; they are in work afterwards."""
    return [await queue.get() for _ in range(len(queue))]


def metric(queue: WorkQueue[str], name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, {"name": queue.name, "controller": queue.name, **labels})


# --- order


async def test_keys_come_out_in_the_order_in_which_they_were_added(queue):
    for key in "abc":
        queue.add(key)
    assert await take_all(queue) == ["a", "b", "c"]


async def test_a_key_that_waits_is_not_added_again(queue):
    for key in "abaab":
        queue.add(key)
    assert await take_all(queue) == ["a", "b"]


async def test_changes_go_before_what_is_merely_looked_at_again(queue):
    queue.add("old", RESYNC)
    queue.add("older", RESYNC)
    queue.add("new", CHANGE)
    assert await take_all(queue) == ["new", "old", "older"]


async def test_a_change_lifts_a_key_that_waits_with_low_priority(queue):
    for key in "abc":
        queue.add(key, RESYNC)
    queue.add("c")
    assert await take_all(queue) == ["c", "a", "b"]


async def test_a_resync_does_not_lower_a_change(queue):
    queue.add("a")
    queue.add("b", RESYNC)
    queue.add("a", RESYNC)
    assert await take_all(queue) == ["a", "b"]


# --- one worker a key


async def test_a_key_in_work_is_not_handed_out_until_it_is_done(queue):
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


async def test_all_adds_while_a_key_is_in_work_make_one_further_run(queue):
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("a")
    queue.done("a")
    assert await take_all(queue) == ["a"]
    queue.done("a")
    assert len(queue) == 0


async def test_a_change_while_a_key_is_in_work_counts_more_than_a_resync(queue):
    queue.add("a")
    await queue.get()
    queue.add("a", RESYNC)
    queue.add("a", CHANGE)
    queue.add("b", CHANGE)
    queue.add("a", RESYNC)
    queue.done("a")
    assert await take_all(queue) == ["b", "a"]


async def test_a_key_that_is_done_and_was_not_added_is_gone(queue):
    queue.add("a")
    queue.done(await queue.get())
    assert len(queue) == 0


# --- delays


async def test_a_delayed_key_is_not_due_before_its_time(queue, clock):
    queue.add_after("a", 10)
    clock.advance(9.9)
    assert len(queue) == 0
    clock.advance(0.1)
    assert await take_all(queue) == ["a"]


@pytest.mark.parametrize("delays", [(10, 5), (5, 10), (7, 5, 6)])
async def test_of_several_delays_of_a_key_the_earliest_wins(queue, clock, delays):
    for delay in delays:
        queue.add_after("a", delay)
    clock.advance(5)
    assert await take_all(queue) == ["a"]
    queue.done("a")
    clock.advance(100)
    assert len(queue) == 0


async def test_adding_a_delayed_key_makes_it_due_once(queue, clock):
    queue.add_after("a", 10)
    queue.add("a")
    assert await take_all(queue) == ["a"]
    queue.done("a")
    clock.advance(100)
    assert len(queue) == 0


async def test_a_later_look_at_a_key_that_is_due_is_needless(queue, clock):
    queue.add("a")
    queue.add_after("a", 10)
    queue.done(await queue.get())
    clock.advance(100)
    assert len(queue) == 0


async def test_delayed_keys_come_in_the_order_of_their_times(queue, clock):
    for key, delay in (("c", 3), ("a", 1), ("b", 2)):
        queue.add_after(key, delay)
    clock.advance(3)
    assert await take_all(queue) == ["a", "b", "c"]


async def test_a_delay_that_is_over_while_the_key_is_in_work_makes_it_due_afterwards(queue, clock):
    queue.add("a")
    await queue.get()
    queue.add_after("a", 1)
    clock.advance(2)
    queue.done("a")
    assert await take_all(queue) == ["a"]


@pytest.mark.parametrize("delay", [0, -1])
async def test_no_delay_means_at_once(queue, delay):
    queue.add_after("a", delay)
    assert await take_all(queue) == ["a"]


async def test_a_delayed_key_keeps_the_priority_with_which_it_ran(queue, clock):
    queue.add("resynced", RESYNC)
    await queue.get()
    queue.add_after("resynced", 1)
    queue.done("resynced")
    clock.advance(1)
    queue.add("changed")
    assert await take_all(queue) == ["changed", "resynced"]


async def test_one_timer_serves_all_delays(queue, clock):
    for number in range(100):
        queue.add_after(f"key-{number}", 200 - number)
    assert clock.pending == 1


async def test_moving_delayed_keys_forward_again_and_again_takes_no_memory(queue, clock):
    for step in range(10_000):
        queue.add_after("a", 20_000 - step)
    assert len(queue._heap) < 100
    clock.advance(10_001)
    assert await take_all(queue) == ["a"]


async def test_a_timer_that_goes_off_early_is_set_again(clock):
    early: list[Callable[[], object]] = []
    delays: list[float] = []

    def call_later(delay: float, callback: Callable[[], object]) -> FakeTimer:
        delays.append(delay)
        early.append(callback)
        return FakeTimer(callback)

    queue: WorkQueue[str] = WorkQueue(f"queue-{uuid.uuid4()}", now=clock, call_later=call_later)
    queue.add_after("a", 1)
    clock.now += 0.9999
    early.pop()()
    assert len(queue) == 0
    assert delays == [1, 0.001]
    clock.now += 0.001
    early.pop()()
    assert len(queue) == 1


# --- back-off


async def delay_of_rate_limited(queue: WorkQueue[str], clock: FakeClock, key: str) -> float:
    start = clock.now
    queue.add_rate_limited(key)
    clock.advance(queue._timer_due - start)
    assert await queue.get() == key
    queue.done(key)
    return clock.now - start


async def test_the_delay_doubles_with_every_failure_from_5_ms_to_1000_s(queue, clock):
    delays = [await delay_of_rate_limited(queue, clock, "a") for _ in range(20)]
    assert delays == pytest.approx([min(0.005 * 2**n, 1000) for n in range(20)])


async def test_the_longest_delay_can_be_set(clock):
    queue: WorkQueue[str] = WorkQueue(f"queue-{uuid.uuid4()}", max_backoff=0.06, now=clock, call_later=clock.call_later)
    delays = [await delay_of_rate_limited(queue, clock, "a") for _ in range(6)]
    assert delays == pytest.approx([0.005, 0.01, 0.02, 0.04, 0.06, 0.06])


async def test_each_key_has_its_own_back_off(queue, clock):
    for _ in range(5):
        await delay_of_rate_limited(queue, clock, "a")
    assert await delay_of_rate_limited(queue, clock, "b") == pytest.approx(0.005)


async def test_a_key_that_was_forgotten_starts_from_the_beginning(queue, clock):
    for _ in range(5):
        await delay_of_rate_limited(queue, clock, "a")
    queue.forget("a")
    assert await delay_of_rate_limited(queue, clock, "a") == pytest.approx(0.005)


async def test_a_key_that_fails_forever_is_delayed_by_a_finite_time(queue, clock):
    queue._failures["a"] = 10_000
    assert await delay_of_rate_limited(queue, clock, "a") == pytest.approx(1000)


# --- workers


async def test_keys_reach_workers_that_wait(queue):
    waiters = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    for key in "abc":
        queue.add(key)
    assert sorted(await asyncio.gather(*waiters)) == ["a", "b", "c"]


async def test_a_worker_that_is_cancelled_while_a_key_arrives_leaves_it_to_others(queue):
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await asyncio.wait_for(second, 60) == "a"
    assert first.cancelled()


async def test_shutting_down_wakes_all_who_wait_and_hands_out_nothing_more(queue, clock):
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


async def test_a_key_in_work_can_be_done_after_shutting_down(queue):
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    queue.shut_down()
    queue.done(key)
    assert len(queue) == 0


async def test_the_loop_of_the_process_is_the_timer_unless_told_otherwise():
    queue: WorkQueue[str] = WorkQueue(f"queue-{uuid.uuid4()}")
    queue.add_after("a", 0.001)
    assert await asyncio.wait_for(queue.get(), 60) == "a"


# --- metrics


async def test_all_series_of_a_queue_exist_from_the_start(queue):
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


async def test_the_depth_counts_what_is_due_and_not_what_is_delayed(queue):
    queue.add("a")
    queue.add("b")
    queue.add("c", RESYNC)
    queue.add_after("d", 10)
    assert metric(queue, "workqueue_depth", priority="0") == 2
    assert metric(queue, "workqueue_depth", priority="-100") == 1
    await queue.get()
    queue.add("a")
    assert metric(queue, "workqueue_depth", priority="0") == 2


async def test_adds_count_keys_that_become_due_and_retries_all_delayed_adds(queue, clock):
    queue.add("a")
    queue.add("a")
    queue.add_after("b", 10)
    queue.add_rate_limited("c")
    assert metric(queue, "workqueue_adds_total") == 1
    assert metric(queue, "workqueue_retries_total") == 2
    clock.advance(10)
    assert metric(queue, "workqueue_adds_total") == 3


async def test_waiting_and_working_are_timed(queue, clock):
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


async def test_waiting_for_ones_own_run_to_end_counts_as_waiting(queue, clock):
    queue.add("a")
    await queue.get()
    queue.add("a")
    clock.advance(7)
    queue.done("a")
    await queue.get()
    assert metric(queue, "workqueue_queue_duration_seconds_sum") == 7
