"""Where programs of others are that were built on this computer."""

import os
from pathlib import Path


def cache_directory() -> Path:
    """Of the user, whose content can be made again."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "resource-manager-devcluster"


def built_programs() -> Path:
    """The directory of those that programs of this project run."""
    return cache_directory() / "programs"
