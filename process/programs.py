"""Locations of third-party programs that were built locally."""

import os
from pathlib import Path


def cache_directory() -> Path:
    """Return the user's cache directory; its content can be recreated."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "resource-manager-devcluster"


def built_programs() -> Path:
    """Return the directory of third-party programs that programs of this project run."""
    return cache_directory() / "programs"
