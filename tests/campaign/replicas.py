"""The processes of agents and webhooks, and what a kubelet does for them: ended ones are restarted.

Logs are kept over restarts. A `Replica` belongs to the event loop; what takes time is done in threads.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from campaign.oracles import Level
from kit.processes.agent import AgentProcess

FULL_DISK = Path("/dev/full")
"""Every write to it fails, for want of space."""
_LIBRARY = "faketime/libfaketimeMT.so.1"
_STOP_SECONDS = 40.0
_BACK_OFF_SECONDS = 0.5
_SHORTEST_LIFE = 5.0
"""Who lived for less is started again later and later, like a container in a crash loop."""
_LONGEST_BACK_OFF = 8.0


@dataclass(frozen=True, slots=True)
class Exit:
    at: float
    code: int
    output: str


class Clock:
    """The clock on the wall of one process, moved at will; only with libfaketime, which not every machine has."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._library = next((path for path in Path("/usr/lib").glob(f"*/{_LIBRARY}")), None)
        self.move(0)

    @property
    def is_movable(self) -> bool:
        return self._library is not None

    @property
    def environment(self) -> dict[str, str]:
        if self._library is None:
            return {}
        return {
            "LD_PRELOAD": str(self._library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def move(self, seconds: float) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+.0f}\n")
        new.rename(self._file)


P = TypeVar("P", bound=AgentProcess)


class Replica(Generic[P]):
    def __init__(self, name: str, process: P, archive: Path, *, clock: Clock | None = None) -> None:
        self.name = name
        self.process = process
        self.clock = clock
        self.exits: list[Exit] = []
        self._archive = archive
        self._log_file, self._output_file = process.log_file, process.output_file
        self._begun = self._is_held = self._is_frozen = False
        self._failures = 0

    # --- as a kubelet does

    async def keep(self) -> None:
        """Start it, and start it again when it ends."""
        while True:
            if not self._is_held and not self.is_running:
                if self._begun:
                    self._note_exit()
                    await asyncio.sleep(min(_BACK_OFF_SECONDS * 2**self._failures, _LONGEST_BACK_OFF))
                self._begun = True
                self.process.start()
            await asyncio.sleep(0.1)

    def _note_exit(self) -> None:
        code = self.process.wait()
        is_short = time.monotonic() - self.process.started_at < _SHORTEST_LIFE
        self._failures = self._failures + 1 if is_short else 0
        self.exits.append(Exit(time.time(), code, "" if self._has_full_disk else self.process.output[-2000:]))
        self._keep_log()

    def _keep_log(self) -> None:
        if self._has_full_disk:
            return
        with self._archive.open("ab") as archive:
            for file in (self.process.log_file, self.process.output_file):
                if file.exists():
                    with file.open("rb") as log:
                        shutil.copyfileobj(log, archive)

    @property
    def _has_full_disk(self) -> bool:
        return self.process.log_file == FULL_DISK

    @property
    def is_running(self) -> bool:
        return self._begun and self.process._process is not None and self.process.process.poll() is None

    async def is_ready(self) -> bool:
        return self.is_running and not self._is_frozen and (await asyncio.to_thread(self.process.probe))[0] == 200

    async def is_leading(self) -> bool:
        """Not requested from one that can't answer."""
        if not self.is_running or self._is_frozen:
            return False
        return await asyncio.to_thread(self.process.is_leading)

    # --- what strikes it

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.signal(signal.SIGKILL)

    def terminate(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.signal(signal.SIGTERM)

    def freeze(self) -> None:
        self._is_frozen = True
        self.process.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.signal(signal.SIGCONT)
        self._is_frozen = False

    async def restart_logging_to(self, disk: Path | None) -> None:
        """Ends it as a kubelet would; it comes back with its log there, or where it was at first."""
        await self.stop(keep_on=True)
        self._keep_log()
        self.process.log_file = disk or self._log_file
        self.process.output_file = disk or self._output_file

    async def stop(self, *, keep_on: bool = False) -> None:
        """With `keep_on` it is started again."""
        self._is_held = True
        if self.is_running:
            self.thaw()
            self.terminate()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STOP_SECONDS):
                    while self.is_running:
                        await asyncio.sleep(0.05)
            if self.is_running:
                self.kill()
        self._is_held = not keep_on

    def end(self) -> None:
        """At once, and for good; takes what it has reported."""
        self._is_held = True
        if not self._begun:
            return
        self.thaw()
        self.kill()
        self.process.wait()
        self._keep_log()
        self.process.log_file, self.process.output_file = self._log_file, self._output_file
        self.process.__exit__(None, None)  # its files go

    # --- what it reports and uses

    def log(self) -> str:
        text = self._archive.read_text(errors="replace") if self._archive.exists() else ""
        if self.is_running and not self._has_full_disk:
            text += self.process.log + self.process.output
        return text

    def level(self) -> Level:
        pid = self.process.pid
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return Level(pages * os.sysconf("SC_PAGESIZE"), len(list(Path(f"/proc/{pid}/fd").iterdir())))
