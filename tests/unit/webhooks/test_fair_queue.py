"""Large reviews: one of them is worked on at a time, beside the event loop, and users take turns."""

import asyncio
import threading
import time
from functools import partial

import pytest

from kit.garbage import garbage
from webhooks import offload
from webhooks.fair_queue import MOST_OF_A_USER, FairQueue, TooManyReviews, user_of
from webhooks.offload import TookTooLong, offloaded

KIB = 1 << 10


class Work:
    """Reviews that begin, and wait until the test ends them."""

    def __init__(self) -> None:
        self.queue = FairQueue()
        self.begun: list[int] = []
        self.waiting: set[int] = set()
        self.may_end: dict[int, asyncio.Event] = {}
        self.tasks: list[asyncio.Task[int]] = []

    def start(self, *sizes: int, wait: bool = True, user: bytes = b"") -> None:
        for size in sizes:
            number = len(self.tasks)
            self.may_end[number] = asyncio.Event()
            if not wait:
                self.may_end[number].set()
            self.tasks.append(asyncio.create_task(self.queue.work(size, user, partial(self._review, number))))

    async def _review(self, number: int) -> int:
        self.begun.append(number)
        if not self.may_end[number].is_set():
            self.waiting.add(number)
            try:
                await self.may_end[number].wait()
            finally:
                self.waiting.remove(number)
        return number

    async def settled(self) -> set[int]:
        """Those that wait for something."""
        for _ in range(50):
            await asyncio.sleep(0)
        return self.waiting

    async def end(self) -> None:
        for each in self.may_end.values():
            each.set()
        assert await asyncio.gather(*self.tasks) == list(range(len(self.tasks)))


async def test_reviews_begin_in_their_order() -> None:
    work = Work()
    work.start(600 * KIB, 400 * KIB, 7000 * KIB, 20 * KIB, wait=False)
    await work.end()
    assert work.begun == [0, 1, 2, 3]


async def test_only_so_many_bytes_wait_and_those_that_find_no_room_begin_again() -> None:
    work = Work()
    work.start(600 * KIB, 400 * KIB, 600 * KIB, 30 * KIB)
    assert await work.settled() == {0, 1}
    work.may_end[1].set()
    assert await work.settled() == {0}
    work.may_end[0].set()
    assert await work.settled() == {2, 3}
    await work.end()
    assert work.begun == [0, 1, 2, 3, 2, 3]


async def test_one_that_is_larger_than_all_that_may_wait_waits_alone() -> None:
    work = Work()
    work.start(7000 * KIB, 20 * KIB)
    assert await work.settled() == {0}
    await work.end()


async def test_a_review_that_waits_does_not_block_the_next() -> None:
    work = Work()
    work.start(1024 * KIB, 1024 * KIB)
    work.start(1024 * KIB, 20 * KIB, wait=False)
    assert await work.settled() == {0}
    assert [task.done() for task in work.tasks] == [False, False, True, True]
    await work.end()


async def test_one_that_is_given_up_makes_room() -> None:
    work = Work()
    work.start(1024 * KIB, 1024 * KIB, 1024 * KIB)
    await work.settled()
    work.tasks[1].cancel()
    work.tasks[0].cancel()
    assert await work.settled() == {2}
    work.may_end[2].set()
    assert await work.tasks[2] == 2


async def test_users_take_turns() -> None:
    work = Work()
    work.start(*[20 * KIB] * 4, wait=False, user=b"many")
    work.start(20 * KIB, wait=False, user=b"one")
    await work.end()
    assert work.begun == [0, 1, 4, 2, 3]


async def test_one_user_has_so_many_large_reviews_at_a_time() -> None:
    work = Work()
    work.start(*[20 * KIB] * MOST_OF_A_USER, user=b"many")
    await work.settled()
    with pytest.raises(TooManyReviews):
        await work.queue.work(KIB, b"many", partial(asyncio.sleep, 0))
    await work.queue.work(KIB, b"one", partial(asyncio.sleep, 0))
    await work.end()
    await work.queue.work(KIB, b"many", partial(asyncio.sleep, 0))


@pytest.mark.parametrize(
    ("body", "user"),
    [
        (b'{"request":{"uid":"u","userInfo":{"username":"ann","groups":["g"]},"object":{}}}', b"ann"),
        (b'{"request":{"userInfo":{"username":"a\\"b"}}}', b'a\\"b'),
        (b'{"request":{"object":' + b" " * 9000 + b'"username":"bob"}}', b""),
        (b'{"request":{"userInfo":{"username":""}}}', b""),
        (b"", b""),
    ],
)
def test_the_user_of_a_request_is_read_before_it_is_parsed(body: bytes, user: bytes) -> None:
    assert user_of(body) == user


# --- beside the event loop


async def test_steps_of_a_large_review_leave_the_event_loop_to_others() -> None:
    ended, threads = threading.Event(), set[int]()

    def step() -> str:
        threads.add(threading.get_ident())
        assert ended.wait(30)
        return "done"

    large = asyncio.create_task(FairQueue().work(KIB, b"", partial(offloaded, step)))
    while not threads:
        await asyncio.sleep(0.001)
    ended.set()  # by the event loop, while the step is at work
    assert await large == "done"
    assert threading.get_ident() not in threads


async def test_a_step_of_a_small_review_is_a_call() -> None:
    assert await offloaded(threading.get_ident) == threading.get_ident()


async def test_what_a_step_raises_is_raised() -> None:
    def step() -> None:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        await FairQueue().work(KIB, b"", partial(offloaded, step))


def _forever() -> None:
    while True:
        try:
            sum(range(1000))
        except Exception:  # noqa: BLE001 - as a careless rule has it
            continue


async def test_a_step_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offload, "LONGEST_SECONDS", 0.05)
    queue = FairQueue()
    with pytest.raises(TookTooLong):
        await queue.work(KIB, b"", partial(offloaded, _forever))
    assert await queue.work(KIB, b"", partial(offloaded, lambda: 1)) == 1
    while _reviewing():
        await asyncio.sleep(0.001)


async def test_a_step_that_is_awaited_no_more_is_ended() -> None:
    queue = FairQueue()
    begun = asyncio.create_task(queue.work(KIB, b"", partial(offloaded, _forever)))
    while not _reviewing():
        await asyncio.sleep(0.001)
    begun.cancel()
    await asyncio.wait({begun})
    assert await queue.work(KIB, b"", partial(offloaded, lambda: 1)) == 1
    while _reviewing():
        await asyncio.sleep(0.001)


def _reviewing() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "review"]


async def test_one_that_took_long_leaves_as_much_time_to_others() -> None:
    queue, now = FairQueue(), asyncio.get_running_loop().time

    def step() -> None:
        until = time.thread_time() + 0.1
        while time.thread_time() < until:
            pass

    await queue.work(KIB, b"", partial(offloaded, step))
    ended = now()
    await queue.work(KIB, b"", partial(asyncio.sleep, 0))
    assert now() >= ended + 0.09


async def test_the_error_of_a_step_keeps_no_review_until_the_garbage_collector_comes() -> None:
    async def review() -> str:
        try:
            return await offloaded(partial(str, b"x", "no encoding"))
        except LookupError as error:
            return str(error)

    with garbage() as found:
        assert await FairQueue().work(40 * KIB, b"", review) == "unknown encoding: no encoding"
        for thread in threading.enumerate():
            if thread.name == "review":
                thread.join()
    assert found.isdisjoint({"frame", "traceback"})
