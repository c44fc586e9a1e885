"""Processes, by name, held by a supervisor that outlives a crash of this program.

A process that ends is started again, the later the more often that has happened. What has run for a while begins anew.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localprocesses import supervisor
from localprocesses.state import is_alive

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_LASTS_SECONDS = 60.0


@dataclass(slots=True)
class _Attempts:
    """To run one process. Times are those of a clock that runs on."""

    pause: float = 0.0
    started: float = float("-inf")


@dataclass(slots=True)
class Processes:
    """Args:
    directory: of the supervisor: logs, and its socket. It is removed with it.
    now: seconds of a clock that runs on.
    """

    directory: Path
    now: Callable[[], float]
    _attempts: dict[str, _Attempts] = field(default_factory=dict)

    async def begin(self) -> None:
        """Take up what runs, or start the supervisor. Raises LocalProcessError."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.directory / "logs").mkdir(exist_ok=True)
        if is_alive(self.directory):
            await self._ask("own", owner=os.getppid())
        else:
            await asyncio.to_thread(supervisor.launch, self.directory, owner=os.getppid())

    async def end(self) -> None:
        """With all processes."""
        await self._ask("shutdown")

    async def _ask(self, operation: str, **arguments: object) -> dict[str, Any]:
        return await asyncio.to_thread(supervisor.ask, self.directory, operation, **arguments)

    async def running(self) -> dict[str, bool]:
        """Whether each process that was started, and not stopped, still runs."""
        components = (await self._ask("status"))["components"]
        return {name: found["exit"] is None for name, found in components.items()}

    async def start(self, name: str, command: Sequence[str]) -> float:
        """Start it, or say in how many seconds to come back. Raises LocalProcessError."""
        attempts = self._attempts.setdefault(name, _Attempts())
        if self.now() - attempts.started > _LASTS_SECONDS + attempts.pause:
            attempts.pause = 0.0
        if (left := attempts.started + attempts.pause - self.now()) > 0:
            return left
        attempts.started = self.now()
        attempts.pause = min(max(attempts.pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE)
        await self.stop(name)
        await self._ask("start", name=name, command=list(command))
        return 0.0

    async def stop(self, name: str) -> None:
        """Return when it has ended."""
        if name in await self.running():
            await self._ask("stop", name=name, kill=False)

    def forget(self, name: str) -> None:
        """That it has ended before counts no more."""
        self._attempts.pop(name, None)

    def log(self, name: str) -> Path:
        return self.directory / "logs" / f"{name}.log"


def last_lines(log: Path, *, most: int = 500) -> str:
    """What a process printed last, for people."""
    try:
        with log.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - most))
            return file.read().decode(errors="replace").strip()
    except OSError:
        return ""
