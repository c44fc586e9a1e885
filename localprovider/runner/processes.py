"""Processes, by name, held by a supervisor that outlives a crash of this program.

A process that ends is restarted with increasing pauses, and so are all if the supervisor was killed. The end of a
process is reported at once if the kernel supports that (Linux); elsewhere, the next look notices it.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from localprocesses import supervisor
from localprocesses.ended import last_error
from localprocesses.landlock import Confinement
from localprocesses.local import wait_until
from localprocesses.restarts import Attempts
from localprocesses.state import is_alive

_END_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _Followed:
    pid: int
    file: int
    """File that becomes readable when the process ends."""


@dataclass(slots=True)
class Processes:
    """Processes of a supervisor.

    Args:
        directory: logs and socket of the supervisor, removed when it ends.
        now: returns seconds of a monotonic clock.
    """

    directory: Path
    now: Callable[[], float]
    _attempts: dict[str, Attempts] = field(default_factory=dict)
    _followed: dict[str, _Followed] = field(default_factory=dict)
    _launching: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def begin(self) -> None:
        """Take over the running processes, or start the supervisor.

        Raises:
            LocalProcessError: the supervisor does not start or answer.
        """
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.directory / "logs").mkdir(exist_ok=True)
        await self._ask("own", owner=os.getppid(), keep=False)

    async def end(self) -> None:
        """Stop the supervisor with all processes, so that another can begin here at once."""
        for name in [*self._followed]:
            self._leave(name)
        if not is_alive(self.directory):
            return
        await self._ask("shutdown")
        what = f"the supervisor of {self.directory} to end"
        await asyncio.to_thread(wait_until, lambda: not is_alive(self.directory), what=what, within=_END_SECONDS)

    async def _ask(self, operation: str, **arguments: object) -> dict[str, Any]:
        """Send a request to the supervisor, which is started if there is none.

        Raises:
            LocalProcessError: it does not start or answer.
        """
        async with self._launching:
            if not is_alive(self.directory):
                await asyncio.to_thread(supervisor.launch, self.directory, owner=os.getppid())
        return await asyncio.to_thread(supervisor.ask, self.directory, operation, **arguments)

    async def running(self) -> dict[str, bool]:
        """Return whether each process that was started, and not stopped, still runs."""
        return {name: pid is not None for name, pid in (await self._pids()).items()}

    async def _pids(self) -> dict[str, int | None]:
        """Return the pid of each process; None if it has ended."""
        components = (await self._ask("status"))["components"]
        return {name: found["pid"] if found["exit"] is None else None for name, found in components.items()}

    async def follow(self, name: str, ended: Callable[[], None]) -> None:
        """Call `ended` when the current process has ended.

        Raises:
            LocalProcessError: the supervisor does not answer.
        """
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
        """Start a process, or return the seconds until the next attempt.

        Args:
            name: name of the process.
            command: its arguments, the program first.
            environment: its whole environment; None for that of this program.
            confinement: None if it may use all files.

        Raises:
            LocalProcessError: the supervisor refused, or does not answer.
        """
        attempts = self._attempts.setdefault(name, Attempts())
        if (left := attempts.left(self.now())) > 0:
            return left
        attempts.begin(self.now())
        await self.stop(name)
        allowed = None if confinement is None else asdict(confinement)
        await self._ask("start", name=name, command=list(command), environment=environment, confinement=allowed)
        return 0.0

    async def stop(self, name: str) -> None:
        """Stop a process, and wait until it has ended."""
        if name in await self.running():
            await self._ask("stop", name=name, kill=False)

    def forget(self, name: str) -> None:
        """Reset the pause between restarts."""
        self._attempts.pop(name, None)

    def note_end(self, name: str) -> None:
        """Remember the last error of a process that has ended."""
        self._attempts.setdefault(name, Attempts()).error = last_error(self.log(name))

    def note_readiness(self, name: str) -> None:
        if name in self._attempts:
            self._attempts[name].error = ""

    def error(self, name: str) -> str:
        """Return the error with which the previous process has ended; empty once the current one was ready."""
        return self._attempts[name].error if name in self._attempts else ""

    def log(self, name: str) -> Path:
        return self.directory / "logs" / f"{name}.log"
