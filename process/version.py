"""The version that this installation reports, and the user agent made of it."""

import importlib.metadata
import platform
import sys

COMPONENT = "gardener-resource-manager"

_DISTRIBUTION = "resource-manager"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def version(override: str = "") -> str:
    """Such as `v1.2.3`: the override of the command line, or the version of the installed package."""
    if override:
        return override
    try:
        return f"v{importlib.metadata.version(_DISTRIBUTION)}"
    except importlib.metadata.PackageNotFoundError:
        return "v0.0.0-source"  # run from a source tree that was never installed


def user_agent(reported_version: str) -> str:
    """Names this component in the audit logs of API servers; system and architecture in Go's terms."""
    machine = platform.machine()
    return f"{COMPONENT}/{reported_version} ({sys.platform}/{_ARCHITECTURES.get(machine, machine)})"
