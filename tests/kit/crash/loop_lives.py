"""Lives of a gardenlet's control loops that end at one of their writes, wherever they send it, and are followed by another.

The connections to all clusters are cut in the process, all at the same moment (`kit.crash.lives`). Control loops go on
without API servers; they are ended by who plays.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from kit import world
from kit.crash.lives import Killed, Life, MortalTransport, begin
from kit.crash.sweep import Moment
from kit.eventually import soon
from kube.errors import Unreachable
from kube.runtime.loop import ControlLoop
from process import clusters


class _CutTransport(MortalTransport):
    @asynccontextmanager
    async def send(self, method: str, path: str, **options: Any) -> AsyncIterator[Any]:
        try:
            async with super().send(method, path, **options) as response:
                yield response
        except Killed as error:
            message = "this life is over"
            raise Unreachable(message) from error


@dataclass(frozen=True, kw_only=True)
class Lives:
    """Attributes: at_work: the loop, started again. reported: what is reported meanwhile, for messages."""

    monkeypatch: pytest.MonkeyPatch
    at_work: Callable[[], AbstractAsyncContextManager[Sequence[ControlLoop]]]
    reported: Callable[[], object]

    async def lived(self, is_done: Callable[[], bool], moment: Moment | None) -> list[str]:
        """What was written in a life that ends at the moment, and in the next one."""
        first = await self._life(is_done, moment)
        if moment is None:
            return first.writes
        assert first.is_over, f"it did not come {moment}"
        return [*first.writes, *(await self._life(is_done, None)).writes]

    async def _life(self, is_done: Callable[[], bool], moment: Moment | None) -> Life:
        with self.monkeypatch.context() as patched:
            life = begin(patched, moment)
            patched.setattr(clusters, "Transport", _CutTransport)
            patched.setattr(world, "Transport", _CutTransport)
            async with self.at_work() as (loop, *_):
                await soon(
                    lambda: life.is_over or (loop.queue.is_idle and is_done()),
                    "the end of this life",
                    state=self.reported,
                )
                life.is_over = life.is_over or moment is not None
        return life
