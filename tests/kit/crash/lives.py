"""Lives of a program in this process that end at one of its writes, wherever it sends it.

For what talks to several clusters over connections of its own making, with certificates that no proxy can show. The
connections are cut in the process: what a write is, and what comes after, is as in `kit.crash.sweep`.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from devcluster.testing.faults import Request
from kit.crash.sweep import Moment, write_of
from kube.runtime.connection import Connection
from kube.runtime.transport import Transport
from process import clusters


class Killed(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


class Life:
    """Args: moment: of its end; None: it lives."""

    def __init__(self, moment: Moment | None = None) -> None:
        self.moment = moment
        self.writes: list[str] = []
        self.is_over = False

    def is_last(self, method: str, path: str) -> bool:
        written = write_of(Request(method=method, path=path))
        if written is None or written.resource in {"events", "leases"}:
            return False
        self.writes.append(str(written))
        return self.moment is not None and len(self.writes) == self.moment.number


class MortalTransport(Transport):
    life = Life()

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._life = MortalTransport.life

    @asynccontextmanager
    async def send(self, method: str, path: str, **options: Any) -> AsyncIterator[Any]:
        life = self._life
        if not life.is_over and life.is_last(method, path):
            life.is_over = True
            assert life.moment is not None
            if life.moment.carried_out:
                async with super().send(method, path, **options) as response:
                    await response.read()
        if life.is_over:
            raise Killed
        async with super().send(method, path, **options) as response:
            yield response


def begin(monkeypatch: pytest.MonkeyPatch, moment: Moment | None = None) -> Life:
    """Connections that a program opens from now on are those of this life."""
    monkeypatch.setattr(clusters, "Transport", MortalTransport)
    MortalTransport.life = Life(moment)
    return MortalTransport.life


def moments(writes: int) -> list[Moment]:
    """Before and after each of so many."""
    return [Moment(number=n, carried_out=done) for n in range(1, writes + 1) for done in (False, True)]
