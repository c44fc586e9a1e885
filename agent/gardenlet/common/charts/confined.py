"""Run a program with restricted memory, CPU time and files, and optionally without network.

    python -I -S confined.py CPU_SECONDS DATA_BYTES FILE_BYTES NETWORK FILE ARGUMENT...

It is run by its path, since it must start fast, and imports nothing of this project. The program can't lift the
restrictions: without network, a system call filter refuses sockets; the size of files and the memory are limited, and
the kernel kills it together with its parent. If this computer can't enforce that, it prints an error and runs nothing.
"""

import ctypes
import os
import platform
import resource
import signal
import struct
import sys

REFUSED = 125
"""Exit code if nothing was run; standard error has the reason."""
NO_NETWORK = "no-network"
_NICER = 10
_FILES = 64

_PR_SET_PDEATHSIG = 1
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_MODE_FILTER = 2
_SYSTEMS = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""Architecture constant of the kernel and number of the system call `socket`, by machine."""
_IO_URING_SETUP = 425
_FIRST_FOREIGN = 0x40000000
"""First system call number of a foreign ABI."""
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_KILL, _ALLOW, _DENY = 0x80000000, 0x7FFF0000, 0x00050000 | 13


def _instruction(code: int, operand: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, operand)


def _filter(machine: str) -> bytes:
    """Build the system call filter.

    Raises:
        OSError: unknown machine.
    """
    if machine not in _SYSTEMS:
        raise OSError(f"system calls of {machine} are unknown")
    system, socket = _SYSTEMS[machine]
    return b"".join(
        (
            _instruction(_LOAD, 4),
            _instruction(_EQUAL, system, 1, 0),
            _instruction(_RETURN, _KILL),
            _instruction(_LOAD, 0),
            _instruction(_AT_LEAST, _FIRST_FOREIGN, 3, 0),
            _instruction(_EQUAL, socket, 2, 0),
            _instruction(_EQUAL, _IO_URING_SETUP, 1, 0),
            _instruction(_RETURN, _ALLOW),
            _instruction(_RETURN, _DENY),
        )
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def _control(kernel: ctypes.CDLL, option: int, *arguments: object) -> None:
    values = [*arguments, *[0] * (4 - len(arguments))]
    given = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in values]
    if kernel.prctl(option, *given):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _confine(cpu_seconds: int, data_bytes: int, file_bytes: int, *, has_network: bool) -> None:
    """Restrict this process.

    Raises:
        OSError: the kernel refuses a restriction.
        ValueError: a limit is invalid.
    """
    kernel = ctypes.CDLL(None, use_errno=True)
    _control(kernel, _PR_SET_PDEATHSIG, int(signal.SIGKILL))
    os.nice(_NICER)
    for limit, most in (
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_DATA, data_bytes),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, _FILES),
    ):
        resource.setrlimit(limit, (most, most))
    _control(kernel, _PR_SET_NO_NEW_PRIVS, 1)
    if has_network:
        return
    code = _filter(platform.machine())
    program = _Program(len(code) // 8, code)
    _control(kernel, _PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program))


def main(cpu_seconds: str, data_bytes: str, file_bytes: str, network: str, *command: str) -> int:
    try:
        _confine(int(cpu_seconds), int(data_bytes), int(file_bytes), has_network=network != NO_NETWORK)
        os.execve(command[0], command, dict(os.environ))  # noqa: S606 - no shell is involved
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
    return REFUSED


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
