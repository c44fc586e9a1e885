"""Rendering of charts by the program `helm`, each in its own process with minimal rights.

    helm = Helm()
    manifests = await helm.render(archive, Release(name="e", namespace="extension-e", values={}, kubernetes="v1.33.1"))

The archive is passed in memory, values on standard input: nothing is written to a disk. The process has no network, no
plugins, no environment, and limited memory, time and output (`program`); the worst a chart can do is fail. Two charts
are rendered at a time, but never one of them twice, so a slow chart leaves the other slot to others.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from agent.gardenlet.common.charts.program import MIB, Limits, found, in_memory, path_of, run
from agent.gardenlet.common.charts.rules.output import Manifest, error_text, manifests, not_loadable

LIMITS = Limits(seconds=30.0, cpu_seconds=10, memory=512 * MIB, output=8 * MIB)
_AT_ONCE = 2


class ChartError(Exception):
    """The chart can't be rendered with these values, even if retried; the text is that of `helm`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Target of a rendering.

    Attributes:
        kubernetes: version of the cluster; empty for the default of `helm`.
    """

    name: str
    namespace: str
    values: Mapping[str, Any]
    kubernetes: str = ""


class Helm:
    """Renderer of charts.

    Args:
        program: its file; None to look it up at each use, so that it may be installed later.
    """

    def __init__(self, *, program: Path | None = None, limits: Limits = LIMITS) -> None:
        self._program = program
        self._limits = limits
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._charts: dict[str, asyncio.Lock] = {}

    async def render(self, archive: bytes, release: Release, *, chart: str = "") -> list[Manifest]:
        """Render a chart; `chart` identifies it for the limit of one rendering per chart.

        Raises:
            ChartError: the chart can't be rendered.
            HelmError: `helm` can't be run.
        """
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
