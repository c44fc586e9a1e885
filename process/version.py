"""Version of an installed distribution, and the user agent derived from it."""

import platform
import sys
from pathlib import Path

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def installed_version(distribution: str) -> str:
    """Return the version, such as `v1.2.3`.

    `importlib.metadata` reads the same directories, and more, and takes a megabyte for that.
    """
    for directory in sys.path:
        for found in sorted(Path(directory).glob(f"{distribution.replace('-', '_')}-*.dist-info")):
            return f"v{found.name.removesuffix('.dist-info').rpartition('-')[2]}"
    return "v0.0.0-source"  # run from a source tree that was never installed


def user_agent(component: str, reported_version: str) -> str:
    """Return the name of the component for the audit logs of API servers; system and architecture in Go's terms."""
    machine = platform.machine()
    return f"{component}/{reported_version} ({sys.platform}/{_ARCHITECTURES.get(machine, machine)})"
