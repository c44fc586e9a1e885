"""Files below a directory of ours: no name leads out of it, and no symbolic link below it is followed.

Names come from objects that others write. Every one is checked by `names_of`, and every access walks from the root by
directory descriptors, so a link that is made between check and use is refused as well. The root is trusted, and may be
reached by links.
"""

import contextlib
import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")
_DEEPEST = 24
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
_PRIVATE, _PRIVATE_DIRECTORY = 0o600, 0o700


class OutsideError(Exception):
    """A name or a link would lead out of its directory; the text names it."""


def names_of(path: str) -> tuple[str, ...]:
    """Names of a relative path; at least one.

    Raises:
        OutsideError: a name is no plain one, such as `..`.
    """
    names = tuple(path.split("/"))
    for each in names:
        if not _NAME.fullmatch(each) or not each.strip("."):
            raise OutsideError(
                f"{path!r} is not accepted as a path: use letters, digits, '.', '_' and '-' in names of at most 200 "
                "characters, none of which is '.' or '..'"
            )
    if len(names) > _DEEPEST:
        raise OutsideError(f"{path!r} is not accepted as a path: at most {_DEEPEST} levels are")
    return names


def one_name(text: str) -> str:
    """Return the text, if it is one name.

    Raises:
        OutsideError: it is not.
    """
    (name, *more) = names_of(text)
    if more:
        raise OutsideError(f"{text!r} is not a valid name: it has a '/'")
    return name


@dataclass(frozen=True, slots=True)
class Confined:
    """Files below a root. All paths are relative; see `names_of`. Methods raise OutsideError, OSError.

    A failed write, as on a full disk, leaves nothing behind, and the error has the whole path.
    """

    root: Path

    def path(self, path: str) -> Path:
        """Whole path for other programs and messages."""
        return self.root.joinpath(*names_of(path))

    def make(self, path: str) -> Path:
        """Create a directory, readable for its owner alone."""
        with self._located(path), self._opened(names_of(path), make=True):
            return self.path(path)

    def has(self, path: str) -> bool:
        """Whether the directory exists."""
        try:
            with self._opened(names_of(path)):
                return True
        except (FileNotFoundError, NotADirectoryError):
            return False

    def names(self, path: str = "") -> list[str]:
        """Names in a directory, or in the root; sorted."""
        with self._opened(names_of(path) if path else ()) as directory:
            return sorted(os.listdir(directory))  # noqa: PTH208 - of a descriptor

    def is_file(self, path: str) -> bool:
        try:
            self.open(path).close()
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def open(self, path: str) -> BinaryIO:
        """Open a regular file for reading."""
        *above, name = names_of(path)
        with self._opened(tuple(above)) as directory:
            return _open(directory, name, path)

    def read(self, path: str, *, most: int) -> bytes:
        """Read a file.

        Raises:
            ValueError: the file is larger than `most` bytes.
        """
        with self.open(path) as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise ValueError(f"{path} is larger than {most} bytes")
        return content

    def create(self, path: str, content: bytes) -> None:
        """Create a file that is complete from the first moment on.

        Raises:
            FileExistsError: it exists already.
        """
        with self._made_beside(path) as (directory, name, new):
            with _created(directory, new) as file:
                file.write(content)
            os.link(new, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)

    def write(self, path: str, content: bytes) -> None:
        """Write a file as a whole, if it differs, readable for its owner alone."""
        with contextlib.suppress(FileNotFoundError, ValueError):
            if self.read(path, most=len(content)) == content:
                return
        with self.replacing(path) as file:
            file.write(content)

    @contextlib.contextmanager
    def replacing(self, path: str) -> Iterator[BinaryIO]:
        """Write a new file, which replaces the previous one at the end, unless there is an error."""
        with self._made_beside(path) as (directory, name, new):
            with _created(directory, new) as file:
                yield file
            os.rename(new, name, src_dir_fd=directory, dst_dir_fd=directory)

    def rename(self, old: str, new: str) -> None:
        """Move a file or directory into another existing directory."""
        (*old_above, old_name), (*new_above, new_name) = names_of(old), names_of(new)
        with self._opened(tuple(old_above)) as source, self._opened(tuple(new_above)) as target:
            os.rename(old_name, new_name, src_dir_fd=source, dst_dir_fd=target)

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with its content, if it exists."""
        *above, name = names_of(path)
        with contextlib.suppress(FileNotFoundError), self._opened(tuple(above)) as directory:
            if stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
                shutil.rmtree(name, ignore_errors=True, dir_fd=directory)
            else:
                os.unlink(name, dir_fd=directory)

    @contextlib.contextmanager
    def _made_beside(self, path: str) -> Iterator[tuple[int, str, str]]:
        """A directory, a name in it, and a temporary name for the new file, which is removed at the end."""
        *above, name = names_of(path)
        new = f".{name}.new"
        with self._located(path), self._opened(tuple(above), make=True) as directory:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new, dir_fd=directory)
            try:
                yield directory, name, new
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(new, dir_fd=directory)

    @contextlib.contextmanager
    def _located(self, path: str) -> Iterator[None]:
        """Add the path of the file to errors of the disk."""
        try:
            yield
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            raise OSError(error.errno, error.strerror, str(self.path(path))) from error

    @contextlib.contextmanager
    def _opened(self, names: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
        if make:
            self.root.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        directory = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for depth, name in enumerate(names):
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, mode=_PRIVATE_DIRECTORY, dir_fd=directory)
                inner = _entered(directory, name, self.root.joinpath(*names[: depth + 1]))
                os.close(directory)
                directory = inner
            yield directory
        finally:
            os.close(directory)


def _entered(directory: int, name: str, path: Path) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=directory)
    except OSError:
        _refuse_link(directory, name, path)
        raise


def _open(directory: int, name: str, path: str) -> BinaryIO:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        _refuse_link(directory, name, Path(path))
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OutsideError(f"{path} is not a regular file; remove it")
    return os.fdopen(descriptor, "rb")


def _created(directory: int, name: str) -> BinaryIO:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(name, flags, _PRIVATE, dir_fd=directory), "w+b")


def _refuse_link(directory: int, name: str, path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            raise OutsideError(
                f"{path} is a symbolic link, which is not supported; replace it by a directory or a file"
            )
