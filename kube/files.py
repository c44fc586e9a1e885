"""Files that others write, read within bounds."""

from pathlib import Path


def read_bounded(path: Path, *, most: int) -> bytes:
    """The content of a file of at most so many bytes. Raises OSError, ValueError."""
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it is larger than {most} bytes")
    return content
