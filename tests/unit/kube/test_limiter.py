"""The token bucket and the allowance, on a clock that the test moves."""

import asyncio

import pytest

from kube.limiter import Allowance, TokenBucket


class FakeTime:
    """A clock, and sleepers that wake when it has gone far enough."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        awake = asyncio.Event()
        self._sleepers.append((self.now + seconds, awake))
        await awake.wait()

    async def advance(self, seconds: float) -> None:
        self.now += seconds
        for until, awake in self._sleepers:
            if until <= self.now + 1e-9:
                awake.set()
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


def bucket(time: FakeTime, *, qps: float, burst: int) -> TokenBucket:
    return TokenBucket(qps=qps, burst=burst, clock=time, sleep=time.sleep)


async def test_a_burst_goes_at_once_and_the_rest_as_fast_as_allowed(time):
    limiter = bucket(time, qps=10, burst=3)
    assert [await limiter.acquire() for _ in range(3)] == [0, 0, 0]
    waiting = [asyncio.create_task(limiter.acquire()) for _ in range(2)]
    await settle()
    assert not any(task.done() for task in waiting)
    await time.advance(0.2)
    assert [await task for task in waiting] == [pytest.approx(0.1), pytest.approx(0.2)]


async def test_waiters_are_served_in_the_order_in_which_they_came(time):
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
        await time.advance(1)
        assert served == list(range(seconds + 1))
    await asyncio.gather(*tasks)


async def test_unused_time_fills_the_bucket_no_further_than_the_burst(time):
    limiter = bucket(time, qps=10, burst=2)
    await time.advance(3600)
    assert [await limiter.acquire() for _ in range(2)] == [0, 0]
    third = asyncio.create_task(limiter.acquire())
    await settle()
    assert not third.done()
    await time.advance(0.1)
    assert await third == pytest.approx(0.1)


async def test_a_negative_rate_is_no_limit(time):
    limiter = bucket(time, qps=-1, burst=1)
    assert {await limiter.acquire() for _ in range(1000)} == {0}


async def test_a_burst_of_nothing_lets_one_go(time):
    limiter = bucket(time, qps=1, burst=0)
    assert await limiter.acquire() == 0


async def test_who_stops_waiting_gives_the_token_back(time):
    limiter = bucket(time, qps=1, burst=1)
    await limiter.acquire()
    waiting = asyncio.create_task(limiter.acquire())
    await settle()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    following = asyncio.create_task(limiter.acquire())
    await settle()
    await time.advance(1)
    assert await following == pytest.approx(1)


async def test_the_rate_holds_over_time(time):
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
        await time.advance(0.1)
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    assert 50 <= served <= 5 + 50


def test_an_allowance_is_used_up_and_comes_back_with_time(time):
    allowance = Allowance(burst=2, per_second=0.5, clock=time)
    assert [allowance.take() for _ in range(3)] == [True, True, False]
    time.now += 1.9
    assert not allowance.take()
    time.now += 0.2
    assert [allowance.take() for _ in range(2)] == [True, False]


def test_an_allowance_grows_no_further_than_its_burst(time):
    allowance = Allowance(burst=2, per_second=1, clock=time)
    time.now += 3600
    assert [allowance.take() for _ in range(3)] == [True, True, False]
