"""Processes of a supervisor that have ended, and why."""

import errno
import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_MOST_ATTEMPTS = 3
_END = 16384
"""Bytes of the end of a log, with the trace of a Go program that crashed."""
_MOST = 300
_CRASH = re.compile(r"(panic|fatal error): ")
"""First line of a crash of a Go program; its trace follows."""
_FULL = os.strerror(errno.ENOSPC).lower()


def is_final(found: Mapping[str, Any]) -> bool:
    """Whether a process has ended for good, or again and again, by its status."""
    return found["exit"] is not None and (found["wait"] is None or found["attempts"] >= _MOST_ATTEMPTS)


def reason(state: Path, name: str, found: Mapping[str, Any]) -> str:
    """Return the reason, such as `ended with 1, and is started again in 4 s: leader election lost`.

    Args:
        state: directory of the supervisor.
        name: name of the process.
        found: its status by the supervisor.
    """
    code, wait = found["exit"], found["wait"]
    again = "" if wait is None else f", and is started again in {wait:.0f} s"
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}{again}"
    error = last_error(state / "logs" / f"{name}.log")
    return f"ended with {code}{again}{f': {error}' if error else ''}"


def last_error(log: Path) -> str:
    """Return the last error in a log: the line about a full disk, or of a crash, or the last line; empty for none."""
    lines = [line.strip() for line in end_of(log, _END).splitlines() if line.strip()]
    full = (each for each in lines if _FULL in each.lower())
    crashes = (each for each in reversed(lines) if _CRASH.match(each))
    return next(full, next(crashes, lines[-1] if lines else ""))[:_MOST]


def end_of(log: Path, most: int) -> str:
    """Return the end of a log, at most so many bytes; empty if it can't be read."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - most))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
