"""Charts of ControllerDeployments, from the deployment itself or a registry."""

import base64
import binascii
from dataclasses import dataclass, field, replace

from agent.gardenlet.common.charts.helm import ChartError, Helm, Release
from agent.gardenlet.common.charts.program import HelmError
from agent.gardenlet.common.charts.registry import Chart, Registry, with_credentials
from agent.gardenlet.common.charts.rules.output import Manifest
from agent.gardenlet.common.charts.rules.registries import Reference, RegistryError, reference
from agent.gardenlet.common.metrics import gardenlet_chart_rendering_duration_seconds
from kube.objects import Object, mapping, text
from kube.paths import at

INFORMATION_INVALID = "ChartInformationInvalid"
CANNOT_BE_PULLED = "OCIChartCannotBePulled"
CANNOT_BE_RENDERED = "ChartCannotBeRendered"


class ChartProblem(Exception):
    """No manifests could be rendered.

    Attributes:
        reason: for the condition.
        is_final: whether a retry is useless until something changes.
    """

    def __init__(self, reason: str, message: str, *, is_final: bool) -> None:
        super().__init__(message)
        self.reason = reason
        self.is_final = is_final


@dataclass(frozen=True, slots=True)
class Source:
    """Source of the chart of a ControllerDeployment.

    Attributes:
        raw: its archive, base64; empty if it is in a registry.
    """

    raw: str
    reference: Reference | None
    values: Object


def source_of(deployment: Object) -> Source:
    """Return the source of the chart.

    Raises:
        ChartProblem: the ControllerDeployment is invalid.
    """
    helm = mapping(deployment.get("helm"))
    values = helm.get("values")
    if values is not None and not isinstance(values, dict):
        raise ChartProblem(INFORMATION_INVALID, "chart values are not a mapping", is_final=True)
    if raw := text(helm.get("rawChart")):
        return Source(raw, None, mapping(values))
    repository = at(helm, "ociRepository")
    if not isinstance(repository, dict):
        raise ChartProblem(
            INFORMATION_INVALID, "neither a chart nor an OCI repository is set; set one of them", is_final=True
        )
    try:
        return Source("", reference(repository), mapping(values))
    except RegistryError as error:
        raise ChartProblem(INFORMATION_INVALID, f"chart reference is invalid: {error}", is_final=True) from error


@dataclass(eq=False, slots=True)
class Charts:
    """Charts of extensions.

    Attributes:
        helm: renders charts.
        registry: pulls charts.
    """

    helm: Helm = field(default_factory=Helm)
    registry: Registry = field(default_factory=with_credentials)

    async def fixed(self, source: Source) -> Source:
        """Return the source with a digest instead of a tag, which may move.

        Raises:
            ChartProblem: the chart can't be pulled.
        """
        if source.reference is None or source.reference.digest:
            return source
        chart = await self._pulled(source.reference)
        return replace(source, reference=replace(source.reference, version=chart.digest))

    async def render(self, deployment: str, source: Source, release: Release) -> list[Manifest]:
        """Render a chart.

        Raises:
            ChartProblem: it can't be pulled or rendered.
        """
        archive = await self._archive(source)
        try:
            with gardenlet_chart_rendering_duration_seconds.time():
                return await self.helm.render(archive, release, chart=deployment)
        except (ChartError, HelmError) as error:
            message = f"chart rendering process failed: {error}"
            raise ChartProblem(CANNOT_BE_RENDERED, message, is_final=isinstance(error, ChartError)) from error

    async def _archive(self, source: Source) -> bytes:
        """Return the archive.

        Raises:
            ChartProblem: it can't be pulled or decoded.
        """
        return _decoded(source.raw) if source.reference is None else (await self._pulled(source.reference)).archive

    async def _pulled(self, reference: Reference) -> Chart:
        """Pull a chart.

        Raises:
            ChartProblem: it can't be pulled.
        """
        try:
            return await self.registry.chart(reference)
        except RegistryError as error:
            message = f"chart pulling process failed: {error}"
            raise ChartProblem(CANNOT_BE_PULLED, message, is_final=False) from error


def _decoded(raw: str) -> bytes:
    """Decode an archive.

    Raises:
        ChartProblem: it is not valid base64.
    """
    try:
        return base64.b64decode(raw, validate=True)
    except binascii.Error as error:
        raise ChartProblem(INFORMATION_INVALID, f"the chart is not valid base64: {error}", is_final=True) from error
