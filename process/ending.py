"""The end of a program, at once.

Threads and tasks are not waited for: one that hangs, in a name lookup say, must not hold up the end. Modules are not
taken apart either, which takes a tenth of the CPU of a command.
"""

import contextlib
import os
import sys
from typing import Never


def exit_now(code: int) -> Never:
    for stream in (sys.stdout, sys.stderr):
        # The pipe may be closed, or a signal came in the middle of a write.
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            stream.flush()
    os._exit(code)
