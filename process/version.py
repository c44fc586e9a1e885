"""The version that this installation reports, and the user agent made of it."""

import importlib.metadata
import platform
import sys

DISTRIBUTION = "gardener-resource-manager-python"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def version(override: str = "") -> str:
    """Such as `v1.2.3`: the override of the command line, or the version of the installed package."""
    if override:
        return override
    try:
        return f"v{importlib.metadata.version(DISTRIBUTION)}"
    except importlib.metadata.PackageNotFoundError:
        return "v0.0.0-source"  # run from a source tree that was never installed


def user_agent(component: str, reported_version: str) -> str:
    """Names the component in the audit logs of API servers; system and architecture in Go's terms."""
    machine = platform.machine()
    return f"{component}/{reported_version} ({sys.platform}/{_ARCHITECTURES.get(machine, machine)})"
