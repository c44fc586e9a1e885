"""Charts are rendered by the program `helm`, each in a process of its own that has next to nothing.

    helm = Helm()
    manifests = await helm.render(archive, Release(name="e", namespace="extension-e", values={}, kubernetes="v1.33.1"))

The archive is handed over in memory, values on standard input: nothing is written to a disk. The process has no
network, no plugins, no environment, and bounded memory, time and output (`program`); a chart can do no more than fail.
Two charts are rendered at a time, but never one of them twice: so one that takes all the time it may have leaves the
other place to others.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from agent.gardenlet.charts.program import MIB, Limits, found, in_memory, path_of, run
from agent.gardenlet.charts.rules.output import Manifest, error_text, manifests, not_loadable

LIMITS = Limits(seconds=30.0, cpu_seconds=10, memory=512 * MIB, output=8 * MIB)
_AT_ONCE = 2


class ChartError(Exception):
    """The chart can't be rendered with these values, however often that is tried; the words are those of `helm`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What a chart is rendered for. Attributes: kubernetes: version of the cluster; empty: that of `helm`."""

    name: str
    namespace: str
    values: Mapping[str, Any]
    kubernetes: str = ""


class Helm:
    """Args: program: its file; None: looked for at each use, so that it may be installed later."""

    def __init__(self, *, program: Path | None = None, limits: Limits = LIMITS) -> None:
        self._program = program
        self._limits = limits
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
        version = ["--kube-version", release.kubernetes] if release.kubernetes else []
        with in_memory(archive) as file:
            done = await run(
                program,
                [
                    *("template", release.name, path_of(file)),
                    *("--namespace", release.namespace, *version, "--no-hooks", "--values", "-"),
                ],
                limits=self._limits,
                given=orjson.dumps(release.values),
                files=(file,),
            )
        if done.code:
            raise ChartError(error_text(done.errors, release.values))
        return await asyncio.to_thread(_manifests, done.output)


def _manifests(output: bytes) -> list[Manifest]:
    return manifests(output.decode(errors="replace"))
