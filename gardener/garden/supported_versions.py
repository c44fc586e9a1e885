"""Versions of Kubernetes that seeds and Shoots may have."""

from enum import Enum, auto

from gardener.garden.versions import parse_version

OLDEST, NEWEST = (1, 28), (1, 36)


class Support(Enum):
    TESTED = auto()
    NEWER = auto()
    """Untested, but likely to work."""
    NONE = auto()


def support(version: str) -> Support:
    """Support of a version. Args: version: as an API server reports it, such as `v1.30.2+vendor`."""
    parsed = parse_version(version)
    if parsed is None or parsed[:2] < OLDEST:
        return Support.NONE
    return Support.TESTED if parsed[:2] <= NEWEST else Support.NEWER


def unsupported_text(version: str) -> str:
    """Error text, as in the original."""
    return f'error discovering kubernetes version: unsupported kubernetes version "{version}"'
