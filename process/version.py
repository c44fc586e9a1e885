"""The version that this installation reports, and the user agent made of it."""

import platform
import sys
from pathlib import Path

DISTRIBUTION = "gardener-resource-manager-python"
_INSTALLED = f"{DISTRIBUTION.replace('-', '_')}-*.dist-info"
"""The directory that an installation leaves. `importlib.metadata` reads it, and more, and takes a megabyte for that."""
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def version(override: str = "") -> str:
    """Such as `v1.2.3`: the override of the command line, or the version of the installed package."""
    if override:
        return override
    for directory in sys.path:
        for found in sorted(Path(directory).glob(_INSTALLED)):
            return f"v{found.name.removesuffix('.dist-info').rpartition('-')[2]}"
    return "v0.0.0-source"  # run from a source tree that was never installed


def user_agent(component: str, reported_version: str) -> str:
    """Names the component in the audit logs of API servers; system and architecture in Go's terms."""
    machine = platform.machine()
    return f"{component}/{reported_version} ({sys.platform}/{_ARCHITECTURES.get(machine, machine)})"
