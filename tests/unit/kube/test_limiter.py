"""The token bucket and the allowance, on a clock that the test moves."""

import asyncio

import pytest

from kit.clock import FakeClock, settle
from kube.runtime.limiter import Allowance, ByteBudget, TokenBucket


@pytest.fixture
def time() -> FakeClock:
    return FakeClock()


def bucket(time: FakeClock, *, qps: float, burst: int) -> TokenBucket:
    return TokenBucket(qps=qps, burst=burst, clock=time, sleep=time.sleep)


async def test_a_burst_goes_at_once_and_the_rest_as_fast_as_allowed(time: FakeClock) -> None:
    limiter = bucket(time, qps=10, burst=3)
    assert [await limiter.acquire() for _ in range(3)] == [0, 0, 0]
    waiting = [asyncio.create_task(limiter.acquire()) for _ in range(2)]
    await settle()
    assert not any(task.done() for task in waiting)
    time.advance(0.2)
    await settle()
    assert [await task for task in waiting] == [pytest.approx(0.1), pytest.approx(0.2)]


async def test_waiters_are_served_in_the_order_in_which_they_came(time: FakeClock) -> None:
    limiter = bucket(time, qps=1, burst=1)
    served: list[int] = []

    async def wait(number: int) -> None:
        await limiter.acquire()
        served.append(number)

    tasks = []
    for number in range(4):
        tasks.append(asyncio.create_task(wait(number)))
        await settle()
    assert served == [0]
    for seconds in range(1, 4):
        time.advance(1)
        await settle()
        assert served == list(range(seconds + 1))
    await asyncio.gather(*tasks)


async def test_unused_time_fills_the_bucket_no_further_than_the_burst(time: FakeClock) -> None:
    limiter = bucket(time, qps=10, burst=2)
    time.advance(3600)
    await settle()
    assert [await limiter.acquire() for _ in range(2)] == [0, 0]
    third = asyncio.create_task(limiter.acquire())
    await settle()
    assert not third.done()
    time.advance(0.1)
    await settle()
    assert await third == pytest.approx(0.1)


async def test_a_negative_rate_is_no_limit(time: FakeClock) -> None:
    limiter = bucket(time, qps=-1, burst=1)
    assert {await limiter.acquire() for _ in range(1000)} == {0}


async def test_a_burst_of_nothing_lets_one_go(time: FakeClock) -> None:
    limiter = bucket(time, qps=1, burst=0)
    assert await limiter.acquire() == 0


async def test_who_stops_waiting_gives_the_token_back(time: FakeClock) -> None:
    limiter = bucket(time, qps=1, burst=1)
    await limiter.acquire()
    waiting = asyncio.create_task(limiter.acquire())
    await settle()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    following = asyncio.create_task(limiter.acquire())
    await settle()
    time.advance(1)
    await settle()
    assert await following == pytest.approx(1)


async def test_the_rate_holds_over_time(time: FakeClock) -> None:
    limiter = bucket(time, qps=5, burst=5)
    served = 0

    async def ask() -> None:
        nonlocal served
        while True:
            await limiter.acquire()
            served += 1

    asking = [asyncio.create_task(ask()) for _ in range(10)]
    await settle()
    for _ in range(100):
        time.advance(0.1)
        await settle()
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    assert 50 <= served <= 5 + 50


def test_an_allowance_is_used_up_and_comes_back_with_time(time: FakeClock) -> None:
    allowance = Allowance(burst=2, per_second=0.5, clock=time)
    assert [allowance.take() for _ in range(3)] == [True, True, False]
    time.now += 1.9
    assert not allowance.take()
    time.now += 0.2
    assert [allowance.take() for _ in range(2)] == [True, False]


def test_an_allowance_grows_no_further_than_its_burst(time: FakeClock) -> None:
    allowance = Allowance(burst=2, per_second=1, clock=time)
    time.now += 3600
    assert [allowance.take() for _ in range(3)] == [True, True, False]


# --- memory


async def test_memory_is_given_in_the_order_of_asking_and_never_more_than_there_is() -> None:
    budget, order = ByteBudget(10), list[str]()
    may_go_on = asyncio.Event()

    async def use(name: str, need: int) -> None:
        async with budget.hold(need):
            order.append(name)
            await may_go_on.wait()
            order.append(f"{name} ends")

    tasks = []
    for name, need in (("a", 6), ("b", 5), ("c", 1), ("all", 99)):
        tasks.append(asyncio.create_task(use(name, need)))
        await asyncio.sleep(0)
    # There would be room for c, but b came first.
    assert order == ["a"]
    may_go_on.set()
    await asyncio.gather(*tasks)
    assert order.index("a ends") < order.index("b")
    assert order[-3:] == ["c ends", "all", "all ends"]


async def test_who_is_cancelled_while_waiting_for_memory_is_not_in_the_way() -> None:
    budget = ByteBudget(10)

    async def use(need: int) -> None:
        async with budget.hold(need):
            pass

    async with budget.hold(10):
        waiting = [asyncio.create_task(use(5)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        waiting[1].cancel()
    await asyncio.wait(waiting)
    assert [task.cancelled() for task in waiting] == [True, True, False]
    async with asyncio.timeout(60), budget.hold(10):
        pass
