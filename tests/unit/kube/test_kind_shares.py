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
from kube.runtime import handing_over, kind_shares
from kube.runtime.kind_shares import MOST_OF_A_KIND, MOST_OF_ALL, Answers, KindShares, is_late, patience

THINGS, OTHERS = (Resource("example.com", "v1", kind, f"{kind.lower()}s", True) for kind in ("Thing", "Other"))


@pytest.fixture(autouse=True)
def asked_at_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind_shares, "_ASKED_SECONDS", 0.0)


class Requests:
    """Requests that are answered when `answer` is set. Meanwhile the API server answers others, or not."""

    def __init__(self, *, patience: float = 0.01, answers_others: bool = True) -> None:
        self.requested = 0
        self._answers_others = answers_others
        self.shares = KindShares(self._is_answering, patience=lambda _: patience)
        self.answer = asyncio.Event()
        self.tasks: list[asyncio.Task[None]] = []

    def send(self, resource: Resource, count: int = 1, *, namespace: str = "a") -> None:
        self.tasks += [asyncio.create_task(self._send(resource, namespace)) for _ in range(count)]

    async def _send(self, resource: Resource, namespace: str) -> None:
        async with self.shares.hold(resource, namespace):
            await self.answer.wait()

    async def _is_answering(self) -> bool:
        self.requested += 1
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
        with pytest.raises(KindBusy, match=r"requests for Thing \(example.com\) in namespace a take more than"):
            sent.shares.demand(THINGS, "a")
        sent.shares.demand(OTHERS, "a")
        errors = [error for task in sent.tasks if task.done() and (error := task.exception())]
        assert {type(error) for error in errors} == {KindBusy}
        assert len(errors) == 50 - MOST_OF_A_KIND


async def test_other_namespaces_of_such_a_kind_are_not_affected() -> None:
    async with requests() as sent:
        sent.send(CONFIG_MAPS, 50)
        await soon(lambda: sent.waiting == MOST_OF_A_KIND)
        with pytest.raises(KindBusy):
            sent.shares.demand(CONFIG_MAPS, "a")
        for number in range(20):
            async with sent.shares.hold(CONFIG_MAPS, "b" if number % 2 else f"c{number}"):
                sent.shares.demand(CONFIG_MAPS, "b")


async def test_many_requests_of_a_kind_of_kubernetes_in_a_namespace_give_way_sooner_than_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kind_shares, "PATIENCE_WITH_MANY", 0.01)
    async with requests(patience=60.0) as sent:
        sent.send(CONFIG_MAPS, MOST_OF_A_KIND, namespace="few")
        sent.send(CONFIG_MAPS, 50, namespace="many")
        await soon(lambda: sent.waiting <= 2 * MOST_OF_A_KIND)
        assert not any(task.done() for task in sent.tasks[:MOST_OF_A_KIND])


async def test_shares_that_do_not_answer_are_remembered_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind_shares, "MOST_REMEMBERED", 3)
    async with requests() as sent:
        for number in range(10):
            sent.send(THINGS, 5, namespace=f"n{number}")
        await soon(lambda: sent.waiting == MOST_OF_ALL)
        assert len(sent.shares._kinds) <= 5


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
            async with sent.shares.hold(THINGS, "a"):
                if not is_found:
                    raise NotFound(404, message="no")
        sent.answer.clear()
        sent.send(THINGS, 10)
        await settle()
        assert sent.waiting == 10
        sent.shares.demand(OTHERS, "a")


async def test_nothing_is_given_up_while_the_api_server_answers_nothing() -> None:
    async with requests(answers_others=False) as sent:
        sent.send(THINGS, 20)
        await soon(lambda: sent.requested > 2)
        assert sent.waiting == 20
        sent.shares.demand(THINGS, "a")
    assert all(task.exception() is None for task in sent.tasks)


@pytest.mark.parametrize(
    ("waited", "unanswered_for", "expected"),
    [(2.0, 2.0, True), (5.0, 1.9, False), (9.9, 0.1, False), (10.0, 0.1, True)],
)
def test_a_request_is_not_late_while_others_of_its_kind_are_answered(
    waited: float, unanswered_for: float, expected: bool
) -> None:
    assert is_late(waited=waited, unanswered_for=unanswered_for, patience=2.0) is expected


@pytest.mark.parametrize(
    ("at", "prompt_at", "expected"), [(9.0, 7.9, True), (9.0, 8.1, False), (7.9, 7.9, False), (9.0, 9.0, False)]
)
def test_a_kind_is_slow_if_it_was_answered_lately_but_not_in_time(at: float, prompt_at: float, expected: bool) -> None:
    assert Answers(at, prompt_at).are_slow(now=10.0) is expected


async def test_where_all_answers_of_a_kind_are_slow_no_namespace_of_it_is_given_up() -> None:
    async with requests() as sent:
        sent.send(THINGS, 10)
        await soon(lambda: sent.waiting == MOST_OF_A_KIND)
        sent.answer.set()
        await soon(lambda: not sent.waiting)  # late, and nothing else of the kind was answered
        sent.answer.clear()
        sent.send(THINGS, 10, namespace="b")
        requested = sent.requested
        await soon(lambda: sent.requested > requested + 2)
        assert sent.waiting == 10


@pytest.mark.parametrize(("answers_others", "is_repeatable"), [(True, True), (False, True), (True, False)])
async def test_a_repeatable_pass_that_waits_for_it_gives_its_worker_to_others_if_the_api_server_answers(
    answers_others: bool, is_repeatable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind_shares, "WAITS_AFTER", 0.01)
    present = handing_over.begin(asyncio.timeout(None), is_repeatable=is_repeatable)
    gives_way = answers_others and is_repeatable
    async with requests(patience=60.0, answers_others=answers_others) as sent:
        sent.send(CONFIG_MAPS)
        if gives_way:
            await soon(lambda: present._waits)
        else:
            await asyncio.sleep(0.2)
        assert present._waits == gives_way
    assert not present._waits


async def test_in_time_any_number_may_wait() -> None:
    async with requests(patience=60.0) as sent:
        sent.send(THINGS, 100)
        await settle()
        assert sent.waiting == 100
        sent.shares.demand(THINGS, "a")
    assert all(task.exception() is None for task in sent.tasks)


async def test_who_is_cancelled_takes_no_share_along() -> None:
    async with requests() as sent:
        sent.send(THINGS, MOST_OF_A_KIND)
        await soon(lambda: sent.requested)
        for task in sent.tasks:
            task.cancel()
        await asyncio.gather(*sent.tasks, return_exceptions=True)
        sent.shares.demand(THINGS, "a")


def test_kinds_of_kubernetes_may_take_as_long_as_admission() -> None:
    assert (patience(CONFIG_MAPS), patience(THINGS)) == (10.0, 2.0)
