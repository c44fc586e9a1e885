"""State directories of clusters, and whether the clusters are alive.

A cluster is a directory `<temporary directory>/resource-manager-devcluster-<uid>/<checkout>-<name>`, where `<checkout>`
stands for the path of this package: two checkouts never meet. It is in the temporary directory since nothing in it is
worth keeping, and since paths of Unix sockets have to be short.

Locks show whether a cluster is alive, not process ids, which would be used again one day: its supervisor holds `alive`
as long as it runs, and a process that starts or stops a cluster holds `<directory>.lock` meanwhile.
"""

import fcntl
import glob
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localprocesses.local import LocalProcessError


def checkout_id() -> str:
    return hashlib.sha256(os.fsencode(Path(__file__).resolve().parent)).hexdigest()[:8]


def root() -> Path:
    """Directory of all clusters of this user; it belongs to no other user, which is checked."""
    path = Path(tempfile.gettempdir()) / f"resource-manager-devcluster-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if path.is_symlink() or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise LocalProcessError(
            f"{path} holds keys, but is not a directory that only you can enter; remove it and try again"
        )
    return path


def directory(name: str) -> Path:
    return root() / f"{checkout_id()}-{name}"


def names_below(name: str) -> list[str]:
    """Names of the clusters of this checkout that end with the one of this name."""
    start = f"{checkout_id()}-"
    found = root().glob(f"{glob.escape(f'{start}{name}')}.*")
    return sorted(path.name.removeprefix(start) for path in found if path.is_dir())


@contextmanager
def locked(path: Path, *, blocking: bool = True, shared: bool = False) -> Iterator[bool]:
    """Hold the lock file `path`; False if another process holds it and `blocking` is False.

    The holder may remove the file: others that wait for it then start over with a new one.
    """
    how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if blocking else fcntl.LOCK_NB)
    while True:
        with path.open("a") as file:
            try:
                fcntl.flock(file, how)
            except BlockingIOError:
                yield False
                return
            if is_at(path, file.fileno()):
                yield True
                return


@contextmanager
def locked_with_notice(path: Path, notice: str) -> Iterator[None]:
    """Hold the lock file; the notice is printed to stderr if another process holds it."""
    with locked(path, blocking=False) as free:
        if free:
            yield
            return
    print(notice, file=sys.stderr, flush=True)
    with locked(path):
        yield


def is_at(path: Path, descriptor: int) -> bool:
    """Whether the open file is still the one of this path."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def start_lock(state: Path) -> Path:
    return state.with_name(state.name + ".lock")


def alive_lock(state: Path) -> Path:
    return state / "alive"


def is_alive(state: Path) -> bool:
    """Whether the supervisor of the cluster runs."""
    if not alive_lock(state).exists():
        return False
    try:
        # Shared: concurrent checks do not take each other for the supervisor.
        with locked(alive_lock(state), blocking=False, shared=True) as free:
            return not free
    except FileNotFoundError:
        return False  # it was removed just now


def sweep() -> None:
    """Remove remains of clusters whose supervisor was killed, of all checkouts."""
    for lock in root().glob("*.lock"):
        with locked(lock, blocking=False) as free:
            state = lock.with_suffix("")
            if free and not is_alive(state):
                shutil.rmtree(state, ignore_errors=True)
                lock.unlink(missing_ok=True)
