"""Processes of a supervisor that have ended, and why."""

import errno
import json
import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_MOST_ATTEMPTS = 3
_END = 16 << 10
"""Bytes of the end of a log, with the trace of a Go program that crashed."""
_LEVELS = frozenset({"error", "fatal", "panic", "dpanic"})
_KLOG = re.compile(r"[EF]\d{4} [\d:.]+ +\d+ [^\]]+\] (.*)")
_REASON = re.compile(r'^"command failed" err=(".*")$')
"""Error with which a program of Kubernetes ends."""
_PLAIN = re.compile(r"(?:Error|panic|fatal error): (.*)")
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
    error = last_error(state / "logs" / f"{name}.log").rpartition("\n")[2]
    return f"ended with {code}{again}{f': {error}' if error else ''}"


def last_error(log: Path, *, most: int = 500) -> str:
    """Return the last error in a log, or the line about a full disk, which precedes a trace.

    The errors are those of klog and of JSON logs, and of a command line; without any, it is the end of the log.
    """
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _END))
            read = file.read().decode(errors="replace")
    except OSError:
        return ""
    full = (each for each in read.splitlines() if _FULL in each.lower())
    errors = (found for each in reversed(read.splitlines()) if (found := _error_in(each)))
    return (next(full, "") or next(errors, "") or read.strip()[-most:])[:most]


def _error_in(line: str) -> str:
    if line.startswith("{"):
        try:
            entry = json.loads(line)
        except ValueError:
            return ""
        if not isinstance(entry, dict) or entry.get("level") not in _LEVELS:
            return ""
        return ": ".join(str(entry[field]) for field in ("msg", "error") if entry.get(field))
    if (plain := _PLAIN.match(line)) is not None:
        return plain[1]
    if (klog := _KLOG.match(line)) is None:
        return ""
    failed = _REASON.search(klog[1])
    try:
        return str(json.loads(failed[1])) if failed is not None else klog[1]
    except ValueError:
        return klog[1]
