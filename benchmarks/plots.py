"""Pictures for reports. Only the programs that draw import this: matplotlib is large, and slow to import."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator

from benchmarks.sampling import Curve

mpl.use("agg")

_DOTS_PER_INCH = 64
_COLUMNS = 2
_PANEL = (5.0, 2.2)
_COLORS = ("#1f5fa8", "#c2571a", "#3d8a4f", "#7a4fa3")
_GRID = "#dddddd"


@dataclass(frozen=True, slots=True)
class Panel:
    """One diagram.

    Args:
        curves: by their name, which is shown if there are several.
        shaded: stretches of the horizontal axis for another phase.
    """

    title: str
    curves: Mapping[str, Curve]
    below: str = ""
    shaded: Sequence[tuple[float, float]] = ()
    logarithmic: bool = False


def draw(file: Path, title: str, panels: Sequence[Panel]) -> None:
    """Draw a picture of all panels."""
    rows = -(-len(panels) // _COLUMNS)
    columns = min(len(panels), _COLUMNS)
    figure, axes = plt.subplots(rows, columns, figsize=(_PANEL[0] * columns, _PANEL[1] * rows), squeeze=False)
    figure.suptitle(title, fontsize=12)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, panel in zip(axes.flat, panels, strict=False):
        _draw(axis, panel)
    figure.tight_layout()
    file.parent.mkdir(exist_ok=True)
    figure.savefig(file, dpi=_DOTS_PER_INCH, metadata={"Software": None})
    plt.close(figure)


def _draw(axis: Axes, panel: Panel) -> None:
    for (name, curve), color in zip(panel.curves.items(), _COLORS, strict=False):
        marker = "o" if panel.logarithmic else "None"
        points = [at for at, _ in curve], [value for _, value in curve]
        axis.plot(*points, marker=marker, ms=4, lw=1, color=color, label=name)
    for begin, end in panel.shaded:
        axis.axvspan(begin, end, color="#eef3f8", zorder=0)
    if panel.logarithmic:
        axis.set_xscale("log")
        axis.set_yscale("log")
        for each in (axis.xaxis, axis.yaxis):
            each.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            each.set_minor_locator(NullLocator())
            each.set_major_formatter("{x:g}")
    else:
        axis.set_ylim(bottom=0)
    axis.set_title(panel.title, fontsize=10, loc="left")
    axis.set_xlabel(panel.below, fontsize=8)
    axis.tick_params(labelsize=8)
    axis.grid(color=_GRID, lw=0.5)
    axis.spines[["top", "right"]].set_visible(False)
    if len(panel.curves) > 1:
        axis.legend(fontsize=7, frameon=False)
