"""Files that a process may use, enforced by the kernel (Landlock, Linux 5.19 and newer), for it and all its children.

Files that are not listed can neither be opened, made, removed nor run, even if the process is compromised. If the
kernel has no Landlock, nothing is enforced.
"""

import ctypes
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""Numbers of system calls, the same on all architectures."""
_VERSION_FLAG, _PATH_BENEATH, _PR_SET_NO_NEW_PRIVS = 1, 1, 38
_LEAST_VERSION = 2
"""Minimum version: older ones can't move a file into another directory at all."""
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = (1 << bit for bit in range(4))
_OF_DIRECTORIES = sum(1 << bit for bit in range(3, 14))
"""Rights to list a directory, to create and remove its entries, and to move it."""
_TRUNCATE = 1 << 14
_FIRST_WITH_TRUNCATE = 3
_READ = _READ_FILE | _READ_DIR
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Confinement:
    """Paths, each with all that is below it; missing ones are left out.

    Attributes:
        writes: paths that may be read and written.
        reads: paths that may be read.
        runs: files that may be run and read.
    """

    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()


class _Rules(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def version() -> int:
    """Version of Landlock in this kernel; 0 if it has none."""
    if sys.platform != "linux":
        return 0
    return max(0, int(_LIBC.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))))


def is_enforced() -> bool:
    return version() >= _LEAST_VERSION


def rules_of(confinement: Confinement) -> int:
    """Return a descriptor for `enter`, to be closed; -1 if the kernel enforces none.

    Raises:
        OSError: a system call failed.
    """
    if not is_enforced():
        return -1
    truncate = _TRUNCATE if version() >= _FIRST_WITH_TRUNCATE else 0
    writes = _READ | _WRITE_FILE | _OF_DIRECTORIES | truncate
    handled = _Rules(writes | _EXECUTE)
    rules = _checked(_LIBC.syscall(_CREATE_RULESET, ctypes.byref(handled), ctypes.sizeof(handled), ctypes.c_uint32(0)))
    try:
        _allow(rules, confinement.writes, writes)
        _allow(rules, confinement.reads, _READ)
        _allow(rules, confinement.runs, _READ | _EXECUTE)
    except BaseException:
        os.close(rules)
        raise
    return rules


def _allow(rules: int, paths: Iterable[str], access: int) -> None:
    for path in paths:
        try:
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            own = access if Path(path).is_dir() else access & (_EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE)
            rule = _PathBeneath(own, opened)
            _checked(_LIBC.syscall(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(rule), ctypes.c_uint32(0)))
        finally:
            os.close(opened)


def enter(rules: int) -> None:
    """Enforce the rules from now on; to be called between fork and exec.

    Raises:
        OSError: a system call failed.
    """
    if rules >= 0:
        _checked(_LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _checked(_LIBC.syscall(_RESTRICT_SELF, rules, ctypes.c_uint32(0)))


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"Landlock: {os.strerror(ctypes.get_errno())}")
    return result
