"""Agents forked from a process that has loaded a program already: a start costs a tenth of the CPU.

    async with forked_agents(configuration) as fork:
        agent = await fork(["--config=…"], log=path)
        agent.signal(signal.SIGTERM)
        code = await agent.ended

All else is as with `AgentProcess`: the program reads its command line and its file, and ends with a code.
"""

import asyncio
import contextlib
import ctypes
import itertools
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Never

_PR_SET_PDEATHSIG = 1
PROJECT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True)
class Forked:
    pid: int
    ended: "asyncio.Future[int]"
    """Its exit code, negative if a signal ended it."""

    @property
    def runs(self) -> bool:
        return not self.ended.done()

    def signal(self, number: signal.Signals) -> None:
        if self.runs:
            with contextlib.suppress(ProcessLookupError):  # it ends just now
                os.kill(self.pid, number)


Fork = Callable[[Sequence[str], Path], Awaitable[Forked]]


@contextlib.asynccontextmanager
async def forked_agents(configuration: Path) -> AsyncIterator[Fork]:
    """Args: configuration: a file of the program to load."""
    server = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.kit.processes.forked_agents", str(configuration)),
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdin is not None
    started: dict[int, asyncio.Future[Forked]] = {}
    endings: dict[int, asyncio.Future[int]] = {}
    numbers = itertools.count()
    loop = asyncio.get_running_loop()

    async def listen(lines: asyncio.StreamReader) -> None:
        async for line in lines:
            match json.loads(line):
                case {"started": number, "pid": pid}:
                    # At once: it may have ended before its requester goes on.
                    endings[pid] = loop.create_future()
                    started.pop(number).set_result(Forked(pid, endings[pid]))
                case {"ended": pid, "code": code}:
                    endings[pid].set_result(code)
        for each in started.values():
            each.set_exception(ChildProcessError("the process that is forked has ended; its error is above"))

    assert server.stdout is not None
    listening = asyncio.create_task(listen(server.stdout))

    async def fork(arguments: Sequence[str], log: Path) -> Forked:
        assert server.stdin is not None
        number = next(numbers)
        started[number] = loop.create_future()
        request = {"number": number, "arguments": list(arguments), "log": str(log)}
        answered = started[number]
        server.stdin.write(json.dumps(request).encode() + b"\n")
        return await answered

    try:
        yield fork
    finally:
        server.stdin.close()
        await server.wait()
        listening.cancel()


# --- the process that is forked


def _serve() -> None:
    """Until standard input ends; then all that still runs is killed."""
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        pending = b""
        while True:
            for ready, _ in selector.select():
                if ready.data is not None:
                    selector.unregister(ready.fd)
                    os.close(ready.fd)
                    _, status = os.waitpid(ready.data, 0)
                    _say({"ended": ready.data, "code": os.waitstatus_to_exitcode(status)})
                    continue
                read = os.read(0, 65536)
                if not read:
                    for each in [each for each in selector.get_map().values() if each.data is not None]:
                        os.kill(each.data, signal.SIGKILL)
                        os.waitpid(each.data, 0)
                    return
                *requests, pending = (pending + read).split(b"\n")
                for request in map(json.loads, requests):
                    pid = _forked(request)
                    selector.register(os.pidfd_open(pid), selectors.EVENT_READ, pid)
                    _say({"started": request["number"], "pid": pid})


def _say(what: dict[str, Any]) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


def _forked(request: dict[str, Any]) -> int:
    pid = os.fork()
    if not pid:
        _be_agent(request)
    return pid


def _be_agent(request: dict[str, Any]) -> Never:
    os.setsid()
    # Whatever becomes of the process of the tests, none is left.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.closerange(3, 256)
    sys.argv = ["agent", *request["arguments"]]
    from agent.__main__ import main

    main()
    raise AssertionError("the program returns")


def _load(configuration: Path) -> None:
    """All that the program imports before it has a connection."""
    from agent.programs import PROGRAMS
    from process import composition, runner
    from process.configuration.component import load
    from process.configuration.overrides import Overrides

    assert composition
    assert runner
    component, loaded = load(
        configuration, [program.component for program in PROGRAMS], overrides=Overrides(), environment={}
    )
    (program,) = (each for each in PROGRAMS if each.component is component)
    program.compose()
    if program.name == "gardenlet":
        from agent.gardenlet.controllers import CONTROLLERS

        CONTROLLERS.load(loaded.config)


if __name__ == "__main__":
    _load(Path(sys.argv[1]))
    _serve()
