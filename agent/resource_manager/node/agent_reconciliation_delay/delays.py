"""How delays are spread over Nodes."""

from collections.abc import Iterable

from kube.clock import format_duration


def delays(names: Iterable[str], *, least: float, most: float) -> dict[str, str]:
    """The annotation of each Node: the first in byte order gets the least delay, and nobody quite the greatest.

    Args:
        names: of Nodes.
        least: seconds.
        most: seconds.
    """
    ordered = sorted(names, key=str.encode)
    if not ordered:
        return {}
    step = (most - least) / len(ordered)
    return {name: _whole_nanoseconds(least + number * step) for number, name in enumerate(ordered)}


def _whole_nanoseconds(seconds: float) -> str:
    """Cut, not rounded, as the original does it."""
    return format_duration(int(seconds * 1e9) / 1e9)
