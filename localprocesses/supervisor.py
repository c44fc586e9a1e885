"""The process that holds a cluster's components, so that none of them is ever left behind.

It is a daemon of its own session: Ctrl-C in a terminal does not reach it. It ends, and all components with it, on
request, when its owner process ends (even by kill -9), and when it is killed itself (the kernel then kills the
components). Supervisors of directories below, which components may have, end first. It knows nothing of Kubernetes: it
starts and stops commands.

On request, a component that ends is started again, with increasing pauses; else the owner handles its end. Each
component has its own process group, so that its children end with it.

Requests come over a Unix socket in the state directory, one JSON object a connection:

    {"op": "start", "name": N, "command": [...]}     run it; its output goes to logs/N.log, of which the end is kept;
                                                     "environment": {...} replaces that of this process;
                                                     "confinement": {...}: the only files that it may use
    {"op": "stop", "name": N, "kill": bool}          SIGTERM, after two seconds or with `kill` SIGKILL; forget it
    {"op": "status"}                                 {"components": {N: {"pid": P, "exit": null or code, "attempts": A,
                                                     "wait": null or seconds until it is started again}},
                                                     "port": P, "pid": P}
    {"op": "own", "owner": P, "keep": bool}          from now on end with process P; 0: with none; `keep`: start
                                                     components again
    {"op": "shutdown"}                               kill everything, remove the state directory
"""

import asyncio
import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from kube.visible_text import printable
from localprocesses import landlock
from localprocesses.local import LocalProcessError, wait_until
from localprocesses.restarts import Attempts
from localprocesses.state import alive_lock, is_alive, is_at, root

CPU_FILE = "DEVCLUSTER_CPU_FILE"
"""Variable with a file to which each supervisor appends the seconds of CPU of its cluster when it ends."""
_LONGEST_PATH = 100
"""Maximum length of the path of a Unix socket, on all systems."""
_TERMINATION_SECONDS = 2.0
_START_SECONDS, _END_SECONDS = 300.0, 60.0
_OWNER_SECONDS = 1.0
"""Seconds between two checks that the owner lives."""
LARGEST_LOG = 16 << 20
"""Bytes of a log; then it becomes the old one, of which there is one."""
_LOGS_SECONDS = 2.0
"""Seconds between two checks of the sizes of logs."""
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def _socket(state: Path) -> Path:
    """Path in the state directory, unless that is too long for a socket."""
    path = state / "control.sock"
    digest = hashlib.sha256(os.fsencode(state)).hexdigest()[:16]
    return path if len(os.fsencode(path)) <= _LONGEST_PATH else root() / f"{digest}.sock"


@dataclass(eq=False, slots=True, kw_only=True)
class _Component:
    """A command and its current process."""

    name: str
    command: list[str]
    environment: dict[str, str] | None
    confinement: landlock.Confinement | None
    attempts: Attempts = field(default_factory=Attempts)
    process: asyncio.subprocess.Process = field(init=False)

    async def run(self, state: Path, log: Path) -> None:
        """Start its process.

        Raises:
            OSError: the program or its log can't be used.
        """
        self.attempts.begin(time.monotonic())
        rules = landlock.rules_of(self.confinement) if self.confinement else -1
        try:
            with log.open("ab") as output:
                self.process = await asyncio.create_subprocess_exec(
                    *self.command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd=state,
                    env=self.environment,
                    process_group=0,
                    preexec_fn=partial(_begin, rules),
                )
        finally:
            if rules >= 0:
                os.close(rules)

    def kill(self) -> None:
        """Kill its process, and the children that this process has left."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def status(self, *, is_kept: bool) -> dict[str, Any]:
        code, left = self.process.returncode, self.attempts.left(time.monotonic())
        wait = max(left, 0.0) if is_kept and code is not None else None
        return {"pid": self.process.pid, "exit": code, "attempts": self.attempts.count, "wait": wait}


class Supervisor:
    """Holder of components; `lock` is the open file that is locked as long as this process runs."""

    def __init__(self, state: Path, owner: int, lock: int) -> None:
        self._state = state
        self._owner, self._keep = owner, False
        self._lock = lock
        self._components: dict[str, _Component] = {}
        self._changing: Mapping[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._keeping = set[asyncio.Task[None]]()
        self._ended = asyncio.Event()
        self._port = socket.socket(socket.AF_INET, socket.SOCK_STREAM)

    async def run(self) -> None:
        # Bound but not listening: the port stays the cluster's own, also while its API server is down. The API
        # server shares it (--permit-port-sharing).
        self._port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._port.bind(("127.0.0.1", 0))
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(signum, self._ended.set)
        server = await asyncio.start_unix_server(self._serve, _socket(self._state))
        self._watch_owner()
        self._cut_logs()
        await self._ended.wait()
        server.close()
        for each in self._keeping:
            each.cancel()
        for component in self._components.values():
            component.kill()
        for component in self._components.values():
            await component.process.wait()
        self._end_below()
        _note_cpu()
        self._remove_state()

    def _end_below(self) -> None:
        """End supervisors in directories below, so that nothing is left when this one has ended."""
        for lock in self._state.rglob(f"*/{alive_lock(self._state).name}"):
            below = lock.parent
            with contextlib.suppress(LocalProcessError):  # it ends by itself
                if is_alive(below):
                    ask(below, "shutdown")
                wait_until(partial(_is_over, below), what=f"the end of {below}", within=_END_SECONDS)

    def _remove_state(self) -> None:
        """Remove the state, its lock last: once that is gone, the directory may be another supervisor's."""
        lock = alive_lock(self._state)
        if not is_at(lock, self._lock):
            return
        with contextlib.suppress(OSError):  # others may write into it, or remove it
            for each in self._state.iterdir():
                if each.is_dir() and not each.is_symlink():
                    shutil.rmtree(each, ignore_errors=True)
                elif each != lock:
                    each.unlink()
        _socket(self._state).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            lock.unlink()
            self._state.rmdir()

    def _watch_owner(self) -> None:
        if self._owner and not _exists(self._owner):
            self._ended.set()
        else:
            asyncio.get_running_loop().call_later(_OWNER_SECONDS, self._watch_owner)

    def _cut_logs(self) -> None:
        """Cut large logs; components append, so their next output is the first line of the log."""
        for name in self._components:
            with contextlib.suppress(OSError):
                _cut(self._log(name))
        asyncio.get_running_loop().call_later(_LOGS_SECONDS, self._cut_logs)

    def _log(self, name: str) -> Path:
        return self._state / "logs" / f"{name}.log"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = json.loads(await reader.readline())
            answer = await self._handle(request)
        except Exception as error:  # noqa: BLE001 - reported to the client
            answer = {"error": f"{type(error).__name__}: {error}"}
        with contextlib.suppress(ConnectionError):
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()

    async def _handle(self, request: dict[str, Any]) -> dict[str, Any]:
        match request["op"]:
            case "start":
                await self._start(**{name: value for name, value in request.items() if name != "op"})
            case "stop":
                await self._stop(request["name"], kill=request["kill"])
            case "status":
                components = {name: each.status(is_kept=self._keep) for name, each in self._components.items()}
                return {"components": components, "port": self._port.getsockname()[1], "pid": os.getpid()}
            case "own":
                self._owner, self._keep = request["owner"], request["keep"]
            case "shutdown":
                self._ended.set()
            case other:
                raise ValueError(f"unknown operation {other!r}")
        return {}

    async def _start(
        self,
        name: str,
        command: list[str],
        environment: dict[str, str] | None = None,
        confinement: dict[str, tuple[str, ...]] | None = None,
    ) -> None:
        async with self._changing[name]:
            known = self._components.get(name)
            if known and known.process.returncode is None:
                raise ValueError(f"{name} runs already")
            allowed = landlock.Confinement(**confinement) if confinement else None
            component = _Component(name=name, command=command, environment=environment, confinement=allowed)
            await component.run(self._state, self._log(name))
            self._components[name] = component
        keeping = asyncio.create_task(self._keep_running(component))
        self._keeping.add(keeping)
        keeping.add_done_callback(self._keeping.discard)

    async def _keep_running(self, component: _Component) -> None:
        """Start a component again whenever it ends, until it is stopped."""
        name = component.name
        while True:
            await component.process.wait()
            component.kill()
            if not self._keep:
                return
            await asyncio.sleep(component.attempts.left(time.monotonic()))
            async with self._changing[name]:
                if self._components.get(name) is not component:
                    return
                try:
                    await component.run(self._state, self._log(name))
                except OSError as error:
                    print(printable(f"{name} can't be started: {error}"), file=sys.stderr, flush=True)

    async def _stop(self, name: str, *, kill: bool) -> None:
        async with self._changing[name]:
            component = self._components[name]
            process = component.process
            with contextlib.suppress(ProcessLookupError):
                if not kill:
                    process.terminate()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(process.wait(), _TERMINATION_SECONDS)
            component.kill()
            await process.wait()
            del self._components[name]


def _is_over(below: Path) -> bool:
    return not is_alive(below)


def _cut(log: Path) -> None:
    """Cut a large log, and keep its content as the old one.

    Raises:
        OSError: the log can't be read or cut.
    """
    if log.stat().st_size <= LARGEST_LOG:
        return
    old = log.with_suffix(".old.log")
    try:
        shutil.copyfile(log, old)
    except OSError:  # on a full disk: make room
        old.unlink(missing_ok=True)
    os.truncate(log, 0)


def _note_cpu() -> None:
    if file := os.environ.get(CPU_FILE):
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        with contextlib.suppress(OSError), Path(file).open("a") as costs:
            costs.write(f"{sum(usage.ru_utime + usage.ru_stime for usage in usages):.2f}\n")


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """Whether the process has ended but was not waited for; it exists, yet it owns nothing any more."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] == "Z"


def _begin(rules: int) -> None:
    """Prepare the new process, before its program runs."""
    end_with_parent()
    landlock.enter(rules)


def end_with_parent() -> None:
    """Have this process killed when the thread that started it ends; on Linux."""
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


# --- the client's side


def launch(state: Path, *, owner: int) -> None:
    """Start the supervisor of `state` (an existing directory), and return when it accepts requests."""
    log = state / "logs" / "supervisor.log"
    with log.open("ab") as output:
        subprocess.run(
            [sys.executable, "-P", "-m", "localprocesses.supervisor", str(state), str(owner)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])},
            check=False,
        )

    def answers() -> bool:
        with contextlib.suppress(LocalProcessError):
            ask(state, "status")
            return True
        return False

    what = "the supervisor to start"
    wait_until(
        answers, what=what, within=_START_SECONDS, pause=0.01, explain=lambda: log.read_text(errors="replace").strip()
    )


def ask(state: Path, op: str, **arguments: object) -> dict[str, Any]:
    """Send one request to the supervisor of `state`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(30)
        try:
            connection.connect(str(_socket(state)))
            connection.sendall(json.dumps({"op": op, **arguments}).encode() + b"\n")
            with connection.makefile("rb") as answers:
                answer: dict[str, Any] = json.loads(answers.readline() or b'{"error": "it ended meanwhile"}')
        except OSError as error:
            raise LocalProcessError(f"the cluster in {state} does not run: {error}") from error
    if "error" in answer:
        raise LocalProcessError(f"the supervisor refused '{op}': {answer['error']}")
    return answer


def main() -> None:
    state, owner = Path(sys.argv[1]), int(sys.argv[2])
    # The child of a process that ends at once belongs to init: the launching process never has to wait for it.
    if os.fork():
        return
    os.setsid()
    os.chdir(state)
    lock = alive_lock(state).open("a")
    fcntl.flock(lock, fcntl.LOCK_EX)
    asyncio.run(Supervisor(state, owner, lock.fileno()).run())
    lock.close()


if __name__ == "__main__":
    main()
