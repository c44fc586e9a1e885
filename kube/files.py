"""Files written by others, read within bounds."""

import os
import stat
from pathlib import Path


def read_bounded(path: Path, *, most: int, regular: bool = False) -> bytes:
    """Content of a file of at most this many bytes. Raises OSError, ValueError.

    Args: regular: accept only a regular file; a pipe might block the reader for ever.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | (os.O_NONBLOCK if regular else 0)), "rb") as file:
        if regular and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not a regular file; use the path of a file")
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it is larger than {most} bytes")
    return content
