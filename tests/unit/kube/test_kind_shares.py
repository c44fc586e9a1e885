"""Requests for a kind that does not answer give way, and few of them find out when it answers again."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kit.clock import settle
from kit.eventually import soon
from kube.errors import KindBusy, NotFound
from kube.resources import CONFIG_MAPS, Resource
from kube.runtime.kind_shares import MOST_OF_A_KIND, MOST_OF_ALL, KindShares, is_late, patience

THINGS, OTHERS = (Resource("example.com", "v1", kind, f"{kind.lower()}s", True) for kind in ("Thing", "Other"))


class Requests:
    """Requests that are answered when `answer` is set. Meanwhile the API server answers others, or not."""

    def __init__(self, *, patience: float = 0.01, answers_others: bool = True) -> None:
        self.asked = 0
        self._answers_others = answers_others
        self.shares = KindShares(self._is_answering, patience=lambda _: patience)
        self.answer = asyncio.Event()
        self.tasks: list[asyncio.Task[None]] = []

    def send(self, resource: Resource, count: int = 1) -> None:
        self.tasks += [asyncio.create_task(self._send(resource)) for _ in range(count)]

    async def _send(self, resource: Resource) -> None:
        async with self.shares.hold(resource):
            await self.answer.wait()

    async def _is_answering(self) -> bool:
        self.asked += 1
        return self._answers_others

    @property
    def waiting(self) -> int:
        return sum(not task.done() for task in self.tasks)


@contextlib.asynccontextmanager
async def requests(**options: Any) -> AsyncIterator[Requests]:
    sent = Requests(**options)
    yield sent
    sent.answer.set()
    await asyncio.gather(*sent.tasks, return_exceptions=True)


async def test_of_a_kind_that_does_not_answer_few_requests_go_on() -> None:
    async with requests() as sent:
        sent.send(THINGS, 50)
        await soon(lambda: sent.waiting == MOST_OF_A_KIND)
        with pytest.raises(KindBusy, match=r"requests for Thing \(example.com\) are not answered"):
            sent.shares.demand(THINGS)
        sent.shares.demand(OTHERS)
        errors = [error for task in sent.tasks if task.done() and (error := task.exception())]
        assert {type(error) for error in errors} == {KindBusy}
        assert len(errors) == 50 - MOST_OF_A_KIND


async def test_several_such_kinds_hold_no_more_than_a_share_either() -> None:
    async with requests() as sent:
        for number in range(5):
            sent.send(Resource("example.com", "v1", f"Kind{number}", f"kind{number}s", True), 10)
        await soon(lambda: sent.waiting == MOST_OF_ALL)


@pytest.mark.parametrize("is_found", [True, False])
async def test_an_answer_in_time_lets_all_through_again(is_found: bool) -> None:
    async with requests() as sent:
        sent.send(THINGS, 10)
        await soon(lambda: sent.waiting == MOST_OF_A_KIND)
        sent.answer.set()
        await soon(lambda: not sent.waiting)
        with contextlib.suppress(NotFound):
            async with sent.shares.hold(THINGS):
                if not is_found:
                    raise NotFound(404, message="no")
        sent.answer.clear()
        sent.send(THINGS, 10)
        await settle()
        assert sent.waiting == 10
        sent.shares.demand(OTHERS)


async def test_nothing_is_given_up_while_the_api_server_answers_nothing() -> None:
    async with requests(answers_others=False) as sent:
        sent.send(THINGS, 20)
        await soon(lambda: sent.asked > 2)
        assert sent.waiting == 20
        sent.shares.demand(THINGS)
    assert all(task.exception() is None for task in sent.tasks)


@pytest.mark.parametrize(
    ("waited", "unanswered_for", "expected"),
    [(2.0, 2.0, True), (5.0, 1.9, False), (9.9, 0.1, False), (10.0, 0.1, True)],
)
def test_a_request_is_not_late_while_others_of_its_kind_are_answered(
    waited: float, unanswered_for: float, expected: bool
) -> None:
    assert is_late(waited=waited, unanswered_for=unanswered_for, patience=2.0) is expected


async def test_in_time_any_number_may_wait() -> None:
    async with requests(patience=60.0) as sent:
        sent.send(THINGS, 100)
        await settle()
        assert sent.waiting == 100
        sent.shares.demand(THINGS)
    assert all(task.exception() is None for task in sent.tasks)


async def test_who_is_cancelled_takes_no_share_along() -> None:
    async with requests() as sent:
        sent.send(THINGS, MOST_OF_A_KIND)
        await soon(lambda: sent.asked)
        for task in sent.tasks:
            task.cancel()
        await asyncio.gather(*sent.tasks, return_exceptions=True)
        sent.shares.demand(THINGS)


def test_kinds_of_kubernetes_may_take_as_long_as_admission() -> None:
    assert (patience(CONFIG_MAPS), patience(THINGS)) == (10.0, 2.0)
