"""Processes, by name, held by a supervisor that outlives a crash of this program.

A process that ends is started again, the later the more often that has happened. What has run for a while begins anew.
That it ends is reported at once where the kernel can say so (Linux); elsewhere, whoever looks next sees it.
"""

import asyncio
import errno
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from localprocesses import supervisor
from localprocesses.landlock import Confinement
from localprocesses.local import wait_until
from localprocesses.state import is_alive

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_END_SECONDS = 60.0
_TRACE = 4096
"""Bytes of what a Go program prints when it gives up, with its trace."""
_LASTS_SECONDS = 60.0


@dataclass(slots=True)
class _Attempts:
    """To run one process. Times are those of a clock that runs on."""

    pause: float = 0.0
    started: float = float("-inf")


@dataclass(frozen=True, slots=True)
class _Followed:
    pid: int
    file: int
    """That can be read when the process has ended."""


@dataclass(slots=True)
class Processes:
    """Args:
    directory: of the supervisor: logs, and its socket. It is removed with it.
    now: seconds of a clock that runs on.
    """

    directory: Path
    now: Callable[[], float]
    _attempts: dict[str, _Attempts] = field(default_factory=dict)
    _followed: dict[str, _Followed] = field(default_factory=dict)

    async def begin(self) -> None:
        """Take up what runs, or start the supervisor. Raises LocalProcessError."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.directory / "logs").mkdir(exist_ok=True)
        if is_alive(self.directory):
            await self._ask("own", owner=os.getppid())
        else:
            await asyncio.to_thread(supervisor.launch, self.directory, owner=os.getppid())

    async def end(self) -> None:
        """With all processes, so that another can begin here at once."""
        for name in [*self._followed]:
            self._leave(name)
        await self._ask("shutdown")
        what = f"the supervisor of {self.directory} to end"
        await asyncio.to_thread(wait_until, lambda: not is_alive(self.directory), what=what, within=_END_SECONDS)

    async def _ask(self, operation: str, **arguments: object) -> dict[str, Any]:
        return await asyncio.to_thread(supervisor.ask, self.directory, operation, **arguments)

    async def running(self) -> dict[str, bool]:
        """Whether each process that was started, and not stopped, still runs."""
        return {name: pid is not None for name, pid in (await self._pids()).items()}

    async def _pids(self) -> dict[str, int | None]:
        """None: it has ended."""
        components = (await self._ask("status"))["components"]
        return {name: found["pid"] if found["exit"] is None else None for name, found in components.items()}

    async def follow(self, name: str, ended: Callable[[], None]) -> None:
        """Have this called when the process of now has ended. Raises LocalProcessError."""
        pid, known = (await self._pids()).get(name), self._followed.get(name)
        if known is not None and known.pid == pid:
            return
        self._leave(name)
        if pid is None or not hasattr(os, "pidfd_open"):
            return
        try:
            file = os.pidfd_open(pid)
        except ProcessLookupError:
            ended()
            return
        self._followed[name] = _Followed(pid, file)

        def report() -> None:
            self._leave(name)
            ended()

        asyncio.get_running_loop().add_reader(file, report)

    def _leave(self, name: str) -> None:
        if (known := self._followed.pop(name, None)) is not None:
            asyncio.get_running_loop().remove_reader(known.file)
            os.close(known.file)

    async def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        confinement: Confinement | None = None,
    ) -> float:
        """Start it, or say in how many seconds to come back. Raises LocalProcessError.

        Args:
            name: of the process.
            command: its arguments, the program first.
            environment: all of it; None: that of this program.
            confinement: None: it may use all files.
        """
        attempts = self._attempts.setdefault(name, _Attempts())
        if self.now() - attempts.started > _LASTS_SECONDS + attempts.pause:
            attempts.pause = 0.0
        if (left := attempts.started + attempts.pause - self.now()) > 0:
            return left
        attempts.started = self.now()
        attempts.pause = min(max(attempts.pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE)
        await self.stop(name)
        allowed = None if confinement is None else asdict(confinement)
        await self._ask("start", name=name, command=list(command), environment=environment, confinement=allowed)
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
    """The last output of a process; or the line about a full disk, which comes before a trace."""
    try:
        with log.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - _TRACE))
            read = file.read().decode(errors="replace")
    except OSError:
        return ""
    full = (each for each in read.splitlines() if os.strerror(errno.ENOSPC).lower() in each.lower())
    return next(full, read.strip()[-most:])[:most]
