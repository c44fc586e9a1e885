"""Where clusters keep their state, and which of them are alive.

A cluster is a directory `<temporary directory>/resource-manager-devcluster-<uid>/<checkout>-<name>`, where
`<checkout>` stands for the path of this package: two checkouts never meet. It lies in the temporary directory since
nothing in it is worth keeping, and since paths of Unix sockets have to be short.

Whether a cluster is alive is told by locks, not by process ids, which would be used again one day: its supervisor
holds `alive` as long as it runs, and whoever starts or stops a cluster holds `<directory>.lock` meanwhile.
"""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devcluster.errors import DevclusterError


def checkout_id() -> str:
    return hashlib.sha256(os.fsencode(Path(__file__).resolve().parent)).hexdigest()[:8]


def root() -> Path:
    """The directory of all clusters of this user; it belongs to nobody else, which is checked."""
    path = Path(tempfile.gettempdir()) / f"resource-manager-devcluster-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if path.is_symlink() or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise DevclusterError(
            f"{path} has to be a directory that only you can enter, since it holds keys; remove it and try again"
        )
    return path


def directory(name: str) -> Path:
    return root() / f"{checkout_id()}-{name}"


@contextmanager
def locked(path: Path, *, blocking: bool = True) -> Iterator[bool]:
    """Holds the lock file `path`; gives False if it is held by another and `blocking` is False."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if blocking else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def start_lock(state: Path) -> Path:
    return state.with_name(state.name + ".lock")


def alive_lock(state: Path) -> Path:
    return state / "alive"


def is_alive(state: Path) -> bool:
    """Whether the supervisor of the cluster runs."""
    if not alive_lock(state).exists():
        return False
    with locked(alive_lock(state), blocking=False) as free:
        return not free


def sweep() -> None:
    """Removes what clusters left whose supervisor was killed, of all checkouts."""
    for state in root().iterdir():
        if not state.is_dir():
            continue
        with locked(start_lock(state), blocking=False) as free:
            if free and not is_alive(state):
                shutil.rmtree(state, ignore_errors=True)
