"""What a review may cost: values of its JSON, and how many large ones are at work at a time."""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.webhooks.mutating import patiently
from webhooks import bounds
from webhooks.bounds import MAX_VALUES, TooManyValues, Turns, demand_few_values

texts = st.text(alphabet='ab,[{}]:"\\\n\u00e9', max_size=6)
anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(texts, inner, max_size=6),
    max_leaves=40,
)
KIB = 1 << 10


def values(of: Any) -> int:
    """How many there are; lists and objects without anything in them count twice."""
    inner = list(of.values()) if isinstance(of, dict) else of if isinstance(of, list) else None
    return 1 if inner is None else 1 + int(not inner) + sum(map(values, inner))


def is_refused(body: bytes) -> bool:
    try:
        demand_few_values(body)
    except TooManyValues:
        return True
    return False


@patiently
@given(anything, st.integers(min_value=1, max_value=40), st.booleans())
def test_values_are_counted_whatever_is_in_strings(value: Any, limit: int, ascii_only: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "MAX_VALUES", limit)
        body = json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":")).encode()
        assert is_refused(body) is (len(body) > 2 * limit and values(value) > limit)


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        pytest.param(lambda: b"[" + b",".join([b"{}"] * 2_300_000) + b"]", True, id="objects"),
        pytest.param(lambda: b"[" + b",".join([b"[]"] * 2_300_000) + b"]", True, id="lists"),
        pytest.param(lambda: b"[" + b",".join([b"0"] * 3_400_000) + b"]", True, id="numbers"),
        pytest.param(lambda: b"[" + b",".join([b'""'] * 2_300_000) + b"]", True, id="strings"),
        pytest.param(lambda: b"{" + b",".join([b'"":0'] * 1_300_000) + b"}", True, id="fields"),
        pytest.param(lambda: b"[" * 6_900_000, True, id="depth"),
        pytest.param(
            lambda: b'["\\\\\\"",' + b",".join([b"{}"] * MAX_VALUES) + b'"\\"', True, id="behind escapes, and broken"
        ),
        pytest.param(lambda: b'["' + b",[{" * 2_000_000 + b'"]', False, id="a long string"),
        pytest.param(lambda: b'["' + b'\\",' * 2_000_000 + b'"]', False, id="a long string with quotes"),
        pytest.param(lambda: orjson.dumps(["x" * 60] * (MAX_VALUES - 1)), False, id="as many as there may be"),
    ],
)
def test_millions_of_values_are_not_parsed_and_large_bodies_with_few_values_are(
    body: Callable[[], bytes], refused: bool
) -> None:
    assert is_refused(body()) is refused


class Work:
    """Reviews that begin, and wait until they are told to end."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.begun: list[int] = []
        self.waiting: set[int] = set()
        self.may_end: dict[int, asyncio.Event] = {}
        self.tasks: list[asyncio.Task[int]] = []

    def start(self, *sizes: int, wait: bool = True) -> None:
        for size in sizes:
            number = len(self.tasks)
            self.may_end[number] = asyncio.Event()
            if not wait:
                self.may_end[number].set()
            self.tasks.append(asyncio.create_task(self.turns.work(size, partial(self._review, number))))

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


async def test_who_waits_keeps_nobody_else_waiting() -> None:
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


async def test_one_that_took_long_leaves_as_much_time_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([0.0, 0.1, 0.1, 0.1])
    monkeypatch.setattr("webhooks.bounds.time.thread_time", lambda: next(readings))
    turns, now = Turns(), asyncio.get_running_loop().time

    async def review() -> float:
        return now()

    first = await turns.work(KIB, review)
    assert await turns.work(KIB, review) >= first + 0.09
