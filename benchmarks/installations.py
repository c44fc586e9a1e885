"""The gardenlet of a seed with many extensions: cost of their installation, and of rest after that.

The controller manager creates the ControllerInstallations, and the resource manager of the seed applies the rendered
charts. Each chart is another one, of a common size.
"""

import asyncio
import base64
import contextlib
import hashlib
import io
import tarfile

from benchmarks.gardenlet import COLUMNS, NAME, Gardenlet, Phases, Side, make_garden
from benchmarks.measuring import QUIET_SECONDS
from benchmarks.report import Table
from devcluster.cluster import Cluster
from devcluster.garden.box import account_of
from devcluster.garden.objects import GARDENLET_ACCOUNT
from devcluster.garden.seed import GARDENLET, SeedBox, configuration
from devcluster.program import Program
from gardener.api.garden import CONTROLLER_DEPLOYMENTS, CONTROLLER_INSTALLATIONS, CONTROLLER_REGISTRATIONS
from gardener.conditions import HEALTHY, INSTALLED
from kube.objects import Object, condition, key
from localprocesses.local import wait_until

_FILES = 20
_PADDING_BYTES = 1500
_TEMPLATE = """\
apiVersion: v1
kind: ConfigMap
metadata: {{name: conf-{number}, namespace: {{{{ .Release.Namespace }}}}}}
data: {{seed: {{{{ .Values.gardener.seed.name }}}}, word: {{{{ .Values.word }}}}, padding: {padding}}}
"""
_PREFIX = "extension-"
_PATIENCE_SECONDS = 900.0
_SETTLES_SECONDS = 45.0
"""Seconds until health checks that follow an installation are over."""


async def measure(*, count: int, rest: float) -> Table:
    """Measure, with `rest` seconds of rest."""
    async with Cluster() as garden, Cluster(nodes=1) as seed:
        await asyncio.to_thread(make_garden, garden)
        with contextlib.closing(garden.audit()) as in_garden, contextlib.closing(seed.audit()) as in_seed:
            box = _box(garden, seed)
            await asyncio.to_thread(box.install)
            gardenlet = Gardenlet(box, seed)
            phases = Phases(gardenlet, Side(garden, in_garden), Side(seed, in_seed), originals={})
            charts = [_chart(number) for number in range(count)]
            await asyncio.sleep(QUIET_SECONDS)
            async with phases.phase(f"install {count}", quiet=QUIET_SECONDS):
                await asyncio.to_thread(_install, garden, charts, gardenlet)
            rendered = _renderings(gardenlet)
            await asyncio.sleep(min(_SETTLES_SECONDS, rest))
            async with phases.phase("steady state", quiet=0.0):
                await asyncio.sleep(rest)
            before = _renderings(gardenlet)
            async with phases.phase("a new value", quiet=QUIET_SECONDS):
                await asyncio.to_thread(_change, garden, gardenlet, until=before + 1)
            changed = _renderings(gardenlet) - before
    notes = [
        f"Charts rendered: {rendered} to install all, {before - rendered} in steady state, {changed} for a new value.",
        f"*Charts*: {_FILES} ConfigMaps, {len(charts[0]) * 3 // 4 >> 10} KiB packed. *install*: until all are healthy.",
        "*steady state*: with heartbeats, and a reconcile of the Seed a minute.",
    ]
    return Table(f"Gardenlet: a seed with {count} extensions", COLUMNS[:-1], [row[:-1] for row in phases.rows], notes)


def _box(garden: Cluster, seed: Cluster) -> SeedBox:
    """Box with a gardenlet that installs extensions."""
    box = SeedBox(garden, seed, NAME)
    config = configuration(NAME, visible=True)
    del config["controllers"]
    account = account_of(seed, GARDENLET_ACCOUNT)
    box.gardenlet = Program("agent", seed, config, name=GARDENLET, kubeconfig=account)
    return box


def _chart(number: int) -> str:
    """Packed chart, as a ControllerDeployment has it."""
    files = {"Chart.yaml": f"apiVersion: v1\nname: extension-{number}\nversion: 0.1.0\n"}
    for each in range(_FILES):
        padding = hashlib.shake_256(f"{number}/{each}".encode()).hexdigest(_PADDING_BYTES // 2)
        files[f"templates/{each}.yaml"] = _TEMPLATE.format(number=each, padding=f"x{padding}")
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"extension/{name}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return base64.b64encode(archive.getvalue()).decode()


def _install(garden: Cluster, charts: list[str], gardenlet: Gardenlet) -> None:
    for number, chart in enumerate(charts):
        helm = {"rawChart": chart, "values": {"word": "hello"}}
        registered = {"policy": "Always", "deploymentRefs": [{"name": f"{_PREFIX}{number}"}]}
        for resource, content in (
            (CONTROLLER_DEPLOYMENTS, {"helm": helm}),
            (CONTROLLER_REGISTRATIONS, {"spec": {"deployment": registered}}),
        ):
            made: Object = {**resource.type_meta, "metadata": {"name": f"{_PREFIX}{number}"}, **content}
            garden.api.create(resource.path(), made)

    def all_are_healthy() -> bool:
        gardenlet.check()
        found = garden.api.get(CONTROLLER_INSTALLATIONS.path())["items"]
        return sum(map(_is_healthy, found)) == len(charts)

    wait_until(all_are_healthy, what="the extensions to be healthy", within=_PATIENCE_SECONDS, pause=1.0)


def _is_healthy(installation: Object) -> bool:
    found = [(condition(installation, kind) or {}).get("status") for kind in (INSTALLED, HEALTHY)]
    return key(installation).name.startswith(_PREFIX) and found == ["True", "True"]


def _renderings(gardenlet: Gardenlet) -> int:
    return int(gardenlet.metric("gardenlet_chart_rendering_duration_seconds_count"))


def _change(garden: Cluster, gardenlet: Gardenlet, *, until: int) -> None:
    """Change the charts, and wait until the gardenlet has rendered `until` charts."""
    body = {"helm": {"values": {"more": "goodbye"}}}
    garden.api.patch(CONTROLLER_DEPLOYMENTS.path(name=f"{_PREFIX}0"), body)
    wait_until(
        lambda: _renderings(gardenlet) >= until,
        what="the changed chart to be rendered",
        within=_PATIENCE_SECONDS,
        pause=0.1,
    )
