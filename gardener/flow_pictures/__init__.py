"""Pictures of flows: bars over time, drawn by the macros in `templates/flow.html`.

Succeeded tasks that took no time are folded: of a reconciliation without changes, they are nearly all.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gardener.flow_reports import Bar, FlowReport, State, bars, duration, ticks

TEMPLATES = Path(__file__).parent / "templates"

_WIDTH = 1000
"""Width of the picture, in units that the browser scales."""
_LEAST = 4
_LOOKS: Mapping[State, tuple[str, str]] = {
    State.WAITING: ("…", "dim"),
    State.RUNNING: ("↻", "busy"),
    State.SUCCEEDED: ("✓", "good"),
    State.FAILED: ("✕", "bad"),
    State.CANCELED: ("‖", "warn"),
    State.NOT_STARTED: ("–", "dim"),
}
_NO_TIME = 0.05
"""Seconds below which a task is folded."""


def unfolded(report: FlowReport) -> tuple[Sequence[Bar], Sequence[Bar]]:
    """Bars that are shown, and bars of succeeded tasks that took no time."""
    every = bars(report, width=_WIDTH, least=_LEAST)
    folded = [bar for bar in every if _is_folded(bar)]
    return [bar for bar in every if not _is_folded(bar)], folded


def _is_folded(bar: Bar) -> bool:
    return bar.task.state is State.SUCCEEDED and bar.task.seconds < _NO_TIME


GLOBALS: Mapping[str, Any] = {
    "looks": _LOOKS,
    "width": _WIDTH,
    "ticks": ticks,
    "duration": duration,
    "unfolded": unfolded,
}
"""Names that the macros use."""
