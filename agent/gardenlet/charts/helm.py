"""Charts are rendered by the program `helm`, each in a process of its own that has next to nothing.

    helm = Helm()
    manifests = await helm.render(archive, Release(name="e", namespace="extension-e", values={}, kubernetes="v1.33.1"))

The archive is handed over in memory, values on standard input: nothing is written to a disk. The process has no
network, no plugins, no environment, and bounded memory, time and output (`confined`); a chart can do no more than fail.
Two charts are rendered at a time, but never one of them twice: so one that takes all the time it may have leaves the
other place to others.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from agent.gardenlet.charts.confined import REFUSED
from agent.gardenlet.charts.rules.output import Manifest, error_text, manifests, not_loadable
from process.programs import built_programs

PROGRAM = "helm"
_AT_ONCE = 2
_MIB = 1 << 20
_CONFINED = Path(__file__).with_name("confined.py")
_NOWHERE = "/nonexistent"
_HOMES = ("HOME", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HELM_PLUGINS")
_PIECE = 1 << 16


class ChartError(Exception):
    """The chart can't be rendered with these values, however often that is tried; the words are those of `helm`."""


class HelmError(Exception):
    """`helm` is missing, or ended before it had an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the rendering of one chart may take.

    Attributes:
        seconds: until it is ended.
        cpu_seconds: of computing.
        memory: bytes that it may write to.
        output: bytes that it may print.
    """

    seconds: float = 30.0
    cpu_seconds: int = 10
    memory: int = 512 * _MIB
    output: int = 8 * _MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What a chart is rendered for. Attributes: kubernetes: version of the cluster; empty: that of `helm`."""

    name: str
    namespace: str
    values: Mapping[str, Any]
    kubernetes: str = ""


class Helm:
    """Args: program: its file; None: looked for at each use, so that it may be installed later."""

    def __init__(self, *, program: Path | None = None, limits: Limits | None = None) -> None:
        self._program = program
        self._limits = limits or Limits()
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._charts: dict[str, asyncio.Lock] = {}

    async def render(self, archive: bytes, release: Release, *, chart: str = "") -> list[Manifest]:
        """Args: chart: what it is called by whoever counts charts. Raises ChartError, HelmError."""
        if problem := not_loadable(archive):
            raise ChartError(problem)
        program = self._program or found()
        lock = self._charts.setdefault(chart, asyncio.Lock())
        try:
            async with lock, self._places:
                return await self._render(program, archive, release)
        finally:
            if not lock.locked():
                self._charts.pop(chart, None)

    async def _render(self, program: Path, archive: bytes, release: Release) -> list[Manifest]:
        with _in_memory(archive) as file:
            version = ["--kube-version", release.kubernetes] if release.kubernetes else []
            done = await self._run(
                [
                    *(str(program), "template", release.name, f"/proc/self/fd/{file}"),
                    *("--namespace", release.namespace, *version, "--no-hooks", "--values", "-"),
                ],
                given=orjson.dumps(release.values),
                file=file,
            )
        if done.code == 0:
            return await asyncio.to_thread(_manifests, done.output)
        said = done.errors.decode(errors="replace")
        if done.code == 1:
            raise ChartError(error_text(said, release.values))
        if done.code == REFUSED:
            raise HelmError(f"{program} can't be run confined on this computer: {said.strip()}")
        raise HelmError(_why(done.code, self._limits))

    async def _run(self, command: list[str], *, given: bytes, file: int) -> "_Done":
        limits = self._limits
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(_CONFINED), str(limits.cpu_seconds), str(limits.memory), *command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=(file,),
            env=_environment(limits),
            cwd="/",
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(limits.seconds):
                output, errors = await _exchange(process, given, most=limits.output)
                return _Done(await process.wait(), output, errors)
        except TimeoutError as error:
            raise HelmError(f"the chart is not rendered within {limits.seconds:g} s") from error
        except _TooMuch as error:
            raise HelmError(f"the chart makes helm print more than {limits.output} bytes") from error
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                # What it has printed is read to the end: before that, its end is not noticed.
                await process.communicate()


@dataclass(frozen=True, slots=True)
class _Done:
    code: int
    output: bytes
    errors: bytes


class _TooMuch(Exception):
    """More was printed than may be."""


def found() -> Path:
    """The program: beside Python, as in the image, else where all programs are, else where it was built for tests.

    Raises HelmError: there is none.
    """
    places = (str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath), str(built_programs()))
    if (file := shutil.which(PROGRAM, path=os.pathsep.join(places))) is None:
        raise HelmError(
            f"there is no program {PROGRAM} (version 3) beside {sys.executable} or in a directory of PATH: install it "
            "there, or use the image, which has it; where Go is, `python -m devcluster build` makes it"
        )
    return Path(file).absolute()


def _environment(limits: Limits) -> dict[str, str]:
    """One processor, and a collector of garbage that works harder before the memory is used up."""
    return {**dict.fromkeys(_HOMES, _NOWHERE), "GOMAXPROCS": "1", "GOMEMLIMIT": str(limits.memory // 2)}


@contextlib.contextmanager
def _in_memory(content: bytes) -> Iterator[int]:
    file = os.memfd_create(PROGRAM)
    try:
        with open(file, "wb", closefd=False) as stream:
            stream.write(content)
        yield file
    finally:
        os.close(file)


async def _exchange(process: asyncio.subprocess.Process, given: bytes, *, most: int) -> tuple[bytes, bytes]:
    """What it prints, as output and as errors. Raises _TooMuch."""
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
    with contextlib.suppress(ConnectionError):  # who ends early says why
        stream.write(content)
        await stream.drain()
    stream.close()


async def _read(stream: asyncio.StreamReader, most: int) -> bytes:
    """Raises _TooMuch."""
    body = bytearray()
    while piece := await stream.read(_PIECE):
        body += piece
        if len(body) > most:
            raise _TooMuch
    return bytes(body)


def _manifests(output: bytes) -> list[Manifest]:
    return manifests(output.decode(errors="replace"))


def _why(code: int, limits: Limits) -> str:
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"helm was ended: the chart takes more than {limits.cpu_seconds} s of computing"
    if code == 2:
        return f"helm crashed, as it does when a chart needs more than {limits.memory // _MIB} MiB of memory"
    return f"helm ended with {code}"
