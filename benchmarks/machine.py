"""Description of the machine."""

import os
import platform
import subprocess
from pathlib import Path

from gardener.distribution import version


def description() -> dict[str, str]:
    return {
        "commit": _commit(),
        "version": version(),
        "processor": f"{os.cpu_count()} x {_first('/proc/cpuinfo', 'model name')}",
        "memory": _first("/proc/meminfo", "MemTotal"),
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "load at the start": " ".join(f"{load:.1f}" for load in os.getloadavg()),
    }


def _commit() -> str:
    try:
        commit = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit} and changes" if changed else commit


def _git(*arguments: str) -> str:
    found = subprocess.run(["git", *arguments], capture_output=True, check=True, text=True, timeout=20)
    return found.stdout.strip()


def _first(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        found, _, value = line.partition(":")
        if found.strip() == name:
            return value.strip()
    return "unknown"
