"""The chart of this release, packed for Helm."""

import gzip
import io
from functools import cache
from pathlib import Path

NAME = "gardenlet"
"""Name of the chart and of its release."""
_FILES = Path(__file__).with_name("chart")


@cache
def archive() -> bytes:
    """Pack the chart; equal files make equal archives."""
    import tarfile

    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as tar,
    ):
        for path in sorted(_FILES.rglob("*")):
            if path.is_file():
                content = path.read_bytes()
                entry = tarfile.TarInfo(f"{NAME}/{path.relative_to(_FILES)}")
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
