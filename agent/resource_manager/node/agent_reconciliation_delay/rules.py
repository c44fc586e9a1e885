"""How delays are spread over Nodes."""

from collections.abc import Iterable

from kube.clock import format_duration


def delays(names: Iterable[str], *, least: float, most: float) -> dict[str, str]:
    """The annotation of each Node: the first in byte order gets the least delay, and none quite the greatest.

    Args: least, most: seconds.
    """
    ordered = sorted(names, key=str.encode)
    if not ordered:
        return {}
    step = (most - least) / len(ordered)
    # To whole nanoseconds they are cut, not rounded, as the original does it.
    return {name: format_duration(int((least + number * step) * 1e9) / 1e9) for number, name in enumerate(ordered)}
