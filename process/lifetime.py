"""The first moment of a process, before all else is loaded, and its last.

Signals are taken: to process 1 of a container, one that it has not taken yet is not delivered, and the program would be
killed at the end of the grace period. Until `process.runner` has something to stop, a signal ends the program at once.
Images and manifests start programs with SIGTERM blocked (`env --block-signal`), so that one that comes while Python
itself starts is kept until here. A process 1 that was started in another way may have lost one; a warning in the log
names the remedy. This module imports little, since nothing is taken before it is loaded.

Standard streams that were closed are opened anew, to nowhere. Else the first sockets and files would get their numbers,
and what is written to standard error would be sent to an API server.
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
    """Whether the kernel discarded a SIGTERM that came before `begin`: the process is 1, and did not block it."""
    return _state["may have lost a signal"]


def _open_standard_streams() -> None:
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free, so this one.
            os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - for ever


def exit_now(code: int) -> "Never":
    """End the process at once.

    Threads and tasks are not waited for: one that hangs, in a name lookup say, must not hold up the end. Modules are
    not taken apart either, which takes a tenth of the CPU of a command.
    """
    for stream in (sys.stdout, sys.stderr):
        # The pipe may be closed, or a signal came in the middle of a write.
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            stream.flush()
    os._exit(code)
