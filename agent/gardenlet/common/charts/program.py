"""Runs of the program `helm`: each in its own process with minimal rights (`confined`) and a time limit."""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.gardenlet.common.charts.confined import NO_NETWORK, REFUSED
from process.programs import built_programs

PROGRAM = "helm"
MIB = 1 << 20
_CONFINED = Path(__file__).with_name("confined.py")
NOWHERE = "/nonexistent"
_HOMES = ("HOME", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HELM_PLUGINS")
_PIECE = 1 << 16
_CRASHED = 2
"""Exit code of a crashed Go program."""


class HelmError(Exception):
    """`helm` is missing, or ended without a result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one run.

    Attributes:
        seconds: until it is killed.
        cpu_seconds: CPU time.
        memory: bytes of writable memory.
        output: bytes of output.
        file: bytes of a file that it writes.
        has_network: whether it may open sockets.
    """

    seconds: float
    cpu_seconds: int
    memory: int
    output: int
    file: int = 0
    has_network: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """Result of a run.

    Attributes:
        code: 0, or 1 if `helm` reports an error.
    """

    code: int
    output: bytes
    errors: str


class _TooMuch(Exception):
    """The output exceeds its limit."""


def found() -> Path:
    """Return the program: next to Python, as in the image, else in PATH, else in the build directory of the tests.

    Raises:
        HelmError: there is none.
    """
    places = (str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath), str(built_programs()))
    if (file := shutil.which(PROGRAM, path=os.pathsep.join(places))) is None:
        raise HelmError(
            f"program {PROGRAM} (version 3) is missing in the directory of {sys.executable} and in those of PATH; "
            "install it there, or use the image, which has it; where Go is, `python -m devcluster build` makes it"
        )
    return Path(file).absolute()


async def run(
    program: Path,
    arguments: Sequence[str],
    *,
    limits: Limits,
    given: bytes = b"",
    files: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
) -> Done:
    """Run `helm` confined, with `given` on standard input and the open `files`.

    Raises:
        HelmError: it can't be run, or exceeds a limit.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", str(_CONFINED), str(limits.cpu_seconds), str(limits.memory), str(limits.file)),
        *("network" if limits.has_network else NO_NETWORK, str(program), *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        pass_fds=files,
        env=_environment(limits) | dict(environment or {}),
        cwd="/",
        start_new_session=True,
    )
    what = f"{PROGRAM} {arguments[0]}"
    try:
        async with asyncio.timeout(limits.seconds):
            output, errors = await _exchange(process, given, most=limits.output)
            code = await process.wait()
    except TimeoutError as error:
        remedy = "; check the connection to the registry (HTTPS_PROXY, NetworkPolicy)" if limits.has_network else ""
        raise HelmError(f"{what} took longer than {limits.seconds:g} s{remedy}") from error
    except _TooMuch as error:
        raise HelmError(f"{what} prints more than {limits.output} bytes") from error
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            # Its output is read to the end, since its exit is noticed only then.
            await process.communicate()
    reported = errors.decode(errors="replace")
    if code == REFUSED:
        raise HelmError(f"{program} can't be run confined on this computer: {reported.strip()}")
    if code not in (0, 1):
        raise HelmError(f"{what} {_why(code, limits)}")
    return Done(code, output, reported)


@contextlib.contextmanager
def in_memory(content: bytes) -> Iterator[int]:
    """Open an anonymous file in memory, which is gone when all its users have closed it."""
    file = os.memfd_create(PROGRAM)
    try:
        with open(file, "wb", closefd=False) as stream:
            stream.write(content)
        yield file
    finally:
        os.close(file)


def path_of(file: int) -> str:
    """Path by which a process opens a file that it has inherited."""
    return f"/proc/self/fd/{file}"


def _environment(limits: Limits) -> dict[str, str]:
    """Environment with one processor, and stricter garbage collection when memory gets scarce."""
    return {**dict.fromkeys(_HOMES, NOWHERE), "GOMAXPROCS": "1", "GOMEMLIMIT": str(limits.memory // 2)}


async def _exchange(process: asyncio.subprocess.Process, given: bytes, *, most: int) -> tuple[bytes, bytes]:
    """Return standard output and standard error.

    Raises:
        _TooMuch: the output exceeds the limit.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.TaskGroup() as streams:
            streams.create_task(_write(process.stdin, given))
            output = streams.create_task(_read(process.stdout, most))
            errors = streams.create_task(_read(process.stderr, most))
    except* _TooMuch as group:
        too_much = group.exceptions[0]
    else:
        return output.result(), errors.result()
    raise too_much


async def _write(stream: asyncio.StreamWriter, content: bytes) -> None:
    with contextlib.suppress(ConnectionError):  # a program that exits early reports why
        stream.write(content)
        await stream.drain()
    stream.close()


async def _read(stream: asyncio.StreamReader, most: int) -> bytes:
    """Read a stream to its end.

    Raises:
        _TooMuch: it is longer than the limit.
    """
    body = bytearray()
    while piece := await stream.read(_PIECE):
        body += piece
        if len(body) > most:
            raise _TooMuch
    return bytes(body)


def _why(code: int, limits: Limits) -> str:
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"was stopped: it used more than {limits.cpu_seconds} s of CPU"
    if code == _CRASHED:
        return f"crashed, perhaps since it needs more than {limits.memory // MIB} MiB of memory"
    return f"ended with {code}"
