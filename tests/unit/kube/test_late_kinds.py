"""Kinds that are served later than the program starts: it begins with them once, when all of them are there."""

import asyncio
from typing import Any, cast

import pytest

from kit.clock import settle
from kit.eventually import soon
from kube.errors import Forbidden, KindNotServed, KubeError, Unreachable
from kube.resources import Resource
from kube.runtime.discovery import Discovery
from kube.runtime.loop import LateKinds

WIDGETS = Resource("example.com", "v1", "Widget", "widgets", namespaced=True)
GADGETS = Resource("example.com", "v1", "Gadget", "gadgets", namespaced=True)
MISSING, AWAY = KindNotServed("example.com/v1", "Gadget"), Unreachable("away")


class Looking:
    """Two late kinds, and what discovery reports on request of one; with nothing left to report it does not answer."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.gone: KubeError | None = None
        """Why a kind that is not served may be defined all the same."""
        self.begun = self.requested = 0
        self.late = LateKinds(cast("Discovery", self), (WIDGETS, GADGETS), begin=self._begin)

    def _begin(self) -> None:
        self.begun += 1

    async def require_gone(self, *_: str) -> None:
        if self.gone is not None:
            raise self.gone

    async def find(self, *_: str) -> None:
        self.requested += 1
        if not self.answers:
            await asyncio.Event().wait()
        if (answer := self.answers.pop(0)) is not None:
            raise answer


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kube.runtime.loop._AGAIN_SECONDS", 0.0)
    monkeypatch.setattr("kube.runtime.loop._LOOKS", (0.0, 0.0))


@pytest.mark.parametrize(
    ("answers", "begun"),
    [
        ([None, None], 1),
        ([None, MISSING], 0),
        ([Forbidden(403, message="no")], 0),
        pytest.param([AWAY, None, AWAY, None, None], 1, id="no answer is requested again"),
    ],
)
async def test_a_look_begins_if_all_are_served(answers: list[Any], begun: int) -> None:
    looking = Looking(*answers)
    await looking.late.look()
    assert (looking.begun, looking.late.have_come, looking.answers) == (begun, bool(begun), [])
    if begun:
        await looking.late.look()
        looking.late.kinds_changed("example.com")
        await settle()
        assert (looking.begun, looking.requested) == (1, len(answers))


@pytest.mark.parametrize(
    ("answers", "begun"), [([None, MISSING, None, None], 1), ([MISSING, MISSING], 0)], ids=["at the second", "never"]
)
async def test_news_of_the_group_lead_to_several_looks(answers: list[Any], begun: int) -> None:
    looking = Looking(*answers)
    looking.late.kinds_changed("other.com")
    await settle()
    assert not looking.requested
    looking.late.kinds_changed("example.com")
    await soon(lambda: not looking.answers)
    await settle()
    assert (looking.begun, looking.answers) == (begun, [])


@pytest.mark.parametrize(
    ("gone", "begun"), [(Unreachable("away"), 1), (Forbidden(403, message="no"), 0)], ids=["not known", "never known"]
)
async def test_a_kind_that_may_be_defined_is_looked_for_without_news(gone: KubeError, begun: int) -> None:
    looking = Looking(MISSING, MISSING, None, None)
    looking.gone = gone
    await looking.late.look()
    if begun:
        await soon(lambda: looking.begun)
    assert looking.begun == begun
    await looking.late.close()


async def test_more_news_begin_the_looks_again_and_close_ends_them() -> None:
    looking = Looking(MISSING)
    looking.late.kinds_changed("example.com")
    await soon(lambda: not looking.answers)
    looking.late.kinds_changed("example.com")
    await looking.late.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    await Looking().late.close()
