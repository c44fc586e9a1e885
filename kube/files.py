"""Files that others write, read within bounds."""

import os
import stat
from pathlib import Path


def read_bounded(path: Path, *, most: int, regular: bool = False) -> bytes:
    """The content of a file of at most so many bytes. Raises OSError, ValueError.

    Args: regular: only of a regular file; a pipe might keep the reader waiting for ever.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | (os.O_NONBLOCK if regular else 0)), "rb") as file:
        if regular and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is no regular file; name a file")
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it is larger than {most} bytes")
    return content
