"""Files with the server's certificate, for a server that runs next to the keeper."""

import os
import tempfile
from pathlib import Path

from kube.x509 import Pair

CERTIFICATE = "tls.crt"
KEY = "tls.key"


def write(directory: Path, pair: Pair) -> bool:
    """Write both files if they differ, each atomically; a reader in between sees a pair that does not match.

    Only the owner may read the key. Return whether something was written.

    Raises:
        OSError: the directory is not writable.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    contents = {KEY: (pair.key_pem, 0o600), CERTIFICATE: (pair.certificate_pem, 0o644)}
    if all(_holds(directory / name, content) for name, (content, _) in contents.items()):
        return False
    for name, (content, mode) in contents.items():
        _replace(directory / name, content, mode)
    return True


def _holds(path: Path, content: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(content) + 1) == content
    except FileNotFoundError:
        return False


def _replace(path: Path, content: bytes, mode: int) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
