"""First moment of a process, before all else is loaded, and its last.

Signals get handlers: the kernel discards an unhandled signal to process 1 of a container, and the program would be
killed at the end of the grace period. Until `process.runner` has something to stop, a signal ends the program at once.

Images and manifests start programs with SIGTERM blocked (`env --block-signal`), so that one that arrives while Python
itself starts is kept until here. A process 1 that was started in another way may have lost one; a warning in the log
names the remedy. This module imports little, since signals are lost until it is loaded.

Closed standard streams are opened to the null device. Otherwise the first sockets and files would get their numbers,
and output for standard error would be sent to an API server.
"""

import contextlib
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Never

_state = {"may have lost a signal": False}


def begin() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    blocked = signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
    _state["may have lost a signal"] = os.getpid() == 1 and signal.SIGTERM not in blocked
    _open_standard_streams()


def may_have_lost_a_signal() -> bool:
    """Whether the kernel may have discarded a SIGTERM before `begin`: the process is 1, and did not block it."""
    return _state["may have lost a signal"]


def _open_standard_streams() -> None:
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number, so this one.
            os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - forever


def exit_now(code: int) -> "Never":
    """End the process at once.

    It does not wait for threads and tasks: a hanging one, such as a name lookup, must not hold up the end. Modules are
    not torn down either, which takes a tenth of the CPU of a command.
    """
    for stream in (sys.stdout, sys.stderr):
        # The pipe may be closed, or a signal arrived in the middle of a write.
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            stream.flush()
    os._exit(code)
