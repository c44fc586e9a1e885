"""Snapshots of an etcd: files in a directory of the bucket, and operations on them.

    20260131T120000Z-0000000000001234.db.gz      time of the snapshot, and its revision

Each is complete: the output of etcd for a snapshot, with a checksum at its end, which reveals changed contents before
use.

A directory is created with its first snapshot. So an empty one has lost its snapshots, and a missing directory of an
entry means that the bucket is unavailable.
"""

import base64
import binascii
import contextlib
import gzip
import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from kube.objects import Key, Object, mapping, string_map
from localprocesses.confined import Confined, OutsideError, names_of

_NAME = re.compile(r"(\d{8}T\d{6}Z)-(\d{16})\.db\.gz")
_TIME = "%Y%m%dT%H%M%SZ"
_CHECKSUM = hashlib.sha256().digest_size
_BLOCK = 1 << 20
_ENTRY_LEVELS = 2
"""Levels of the directory of an entry: its bucket, and its own name."""
_LARGEST = 8 << 30
"""Maximum size in bytes of an unpacked snapshot."""
_KEPT = (
    (timedelta(hours=1), timedelta(minutes=1)),
    (timedelta(days=1), timedelta(hours=1)),
    (timedelta(days=7), timedelta(days=1)),
)
"""Up to each age, one snapshot is kept per span of time, however often an Etcd requests one."""


class BucketAway(Exception):
    """Snapshots can neither be read nor written; the text has the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot.

    Attributes:
        file: path below the buckets.
    """

    buckets: Confined
    file: str
    moment: datetime
    revision: int

    @property
    def path(self) -> Path:
        return self.buckets.path(self.file)

    def __str__(self) -> str:
        return f"the snapshot of {self.moment:%Y-%m-%d %H:%M:%S} UTC (revision {self.revision})"


@dataclass(frozen=True, slots=True)
class Directory:
    """Snapshots of an etcd.

    Args:
        buckets: directory of all buckets.
        entry: directory of the backup entry below it, which its extension has created.
        name: name of the etcd.
    """

    buckets: Confined
    entry: str
    name: str

    @property
    def path(self) -> Path:
        return self.buckets.path(self._below)

    @property
    def _below(self) -> str:
        return f"{self.entry}/{self.name}"

    def exists(self) -> bool:
        """Whether there ever was a snapshot.

        Raises:
            BucketAway: the directory is not accessible.
        """
        with self._reached():
            self.buckets.names(self.entry)
            return self.buckets.has(self._below)

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots, newest first.

        Raises:
            BucketAway: the directory is not accessible.
        """
        if not self.exists():
            return []
        with self._reached():
            found = map(self._snapshot, self.buckets.names(self._below))
            return sorted((each for each in found if each), key=lambda one: (one.moment, one.revision), reverse=True)

    def _snapshot(self, name: str) -> Snapshot | None:
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        moment = datetime.strptime(match[1], _TIME).replace(tzinfo=UTC)
        return Snapshot(self.buckets, f"{self._below}/{name}", moment, int(match[2]))

    def place(self, moment: datetime, revision: int) -> Snapshot:
        """Return a new snapshot, which is not written yet, and create its directory.

        Raises:
            BucketAway: the directory is not accessible.
        """
        with self._reached():
            self.buckets.names(self.entry)
            self.buckets.make(self._below)
        file = f"{self._below}/{moment:{_TIME}}-{revision:016}.db.gz"
        return Snapshot(self.buckets, file, moment.replace(microsecond=0), revision)

    def prune(self, now: datetime) -> None:
        """Remove superfluous snapshots.

        Raises:
            BucketAway: the directory is not accessible.
        """
        for each in superfluous(self.snapshots(), now):
            with self._reached():
                self.buckets.remove(each.file)

    @contextlib.contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except (OSError, OutsideError) as error:
            problem = error.strerror if isinstance(error, OSError) else str(error)
            raise BucketAway(
                f"the backup bucket is unavailable: {self.path}: {problem}; it is required; restore it"
            ) from error


def directory_of(buckets: Confined, secret: Object | None, name: Key, prefix: str) -> Directory:
    """Return the directory of an etcd's snapshots.

    Args:
        buckets: directory of all buckets.
        secret: Secret with the location of the entry.
        name: name of the Secret.
        prefix: prefix of the store.

    Raises:
        BucketAway: the Secret has no valid location.
    """
    encoded = string_map(mapping((secret or {}).get("data"))).get("hostPath", "")
    try:
        path = base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        path = ""
    if not path:
        reported = f"the backup bucket is unavailable: Secret {name} does not exist, or lacks hostPath"
        raise BucketAway(f"{reported}; the extension object BackupEntry creates it")
    entry, etcd = path.removeprefix(f"{buckets.root}/"), prefix.rpartition("/")[2]
    try:
        is_entry = entry != path and len(names_of(entry)) == _ENTRY_LEVELS and bool(names_of(etcd))
    except OutsideError:
        is_entry = False
    if not is_entry:
        raise BucketAway(
            f"the backup bucket is unavailable: hostPath of Secret {name} is not an entry of a bucket in "
            f"{buckets.root}; the extension object BackupEntry creates it"
        )
    return Directory(buckets, entry, etcd)


def superfluous(snapshots: Iterable[Snapshot], now: datetime) -> list[Snapshot]:
    """Snapshots to remove: the older they are, the fewer are kept. The newest one always stays."""
    kept, gone = set[tuple[timedelta, int]](), list[Snapshot]()
    for number, each in enumerate(sorted(snapshots, key=lambda one: one.moment, reverse=True)):
        age = now - each.moment
        span = next((span for until, span in _KEPT if age <= until), None)
        if number == 0:
            continue
        slot = (span, int(each.moment.timestamp() // span.total_seconds())) if span else None
        if slot is None or slot in kept:
            gone.append(each)
        else:
            kept.add(slot)
    return gone


def unpacked(packed: BinaryIO, target: BinaryIO) -> str:
    """Unpack a snapshot into a file. Return the problem of the snapshot; empty if there is none.

    Raises:
        OSError: the file cannot be written, with no conclusion about the snapshot.
    """
    digest, end, size = hashlib.sha256(), b"", 0
    with gzip.GzipFile(fileobj=packed) as content:
        while True:
            try:
                block = content.read(_BLOCK)
            except (OSError, EOFError, zlib.error) as error:
                return str(error) or type(error).__name__
            if not block:
                break
            size += len(block)
            if size > _LARGEST:
                return f"it is larger than {_LARGEST >> 30} GiB"
            target.write(block)
            whole = end + block
            digest.update(whole[:-_CHECKSUM])
            end = whole[-_CHECKSUM:]
    return "" if len(end) == _CHECKSUM and digest.digest() == end else "its checksum is wrong"


# --- initial data of an etcd


@dataclass(frozen=True, slots=True)
class AsItIs:
    """Begin with the existing data."""


@dataclass(frozen=True, slots=True)
class Empty:
    """Begin empty.

    Attributes:
        lost: whether it had data once, which are dispensable.
    """

    lost: bool = False


@dataclass(frozen=True, slots=True)
class From:
    """Begin with a snapshot.

    Attributes:
        snapshots: newest first; the first good one is used.
    """

    snapshots: Sequence[Snapshot]


@dataclass(frozen=True, slots=True)
class NotAtAll:
    """Do not begin.

    Attributes:
        lost: whether it had data once.
    """

    reason: str
    lost: bool = True


Start = AsItIs | Empty | From | NotAtAll


def start_of(*, has_data: bool, has_run: bool, is_needed: bool, directory: Callable[[], Directory | None]) -> Start:
    """Return the initial data of an etcd. An etcd that had data never begins empty, unless they are dispensable.

    Args:
        has_data: whether its data exist.
        has_run: whether it had data once.
        is_needed: whether its data cannot be recreated from elsewhere.
        directory: returns the directory of its snapshots, None without backups; may raise BucketAway.
    """
    if has_data:
        return AsItIs()
    try:
        backups = directory()
        if backups is None:
            return _without_backups(has_run=has_run, is_needed=is_needed)
        found, had_some = backups.snapshots(), backups.exists()
    except BucketAway as error:
        return NotAtAll(f"{'its data are lost' if has_run else 'it has no data yet'}, and {error}", lost=has_run)
    if found:
        return From(found)
    if has_run or had_some:
        return NotAtAll(
            f"its data are lost, and there is no snapshot in {backups.path}; put one there from elsewhere, or delete "
            "the Shoot"
        )
    return Empty()


def _without_backups(*, has_run: bool, is_needed: bool) -> Start:
    if has_run and is_needed:
        return NotAtAll("its data are lost, and it has no backups; bring them back, or delete the Shoot")
    return Empty(lost=has_run)


# --- schedule


def is_due(*, last: datetime | None, now: datetime, period: float, scheduled: datetime | None) -> bool:
    """Whether a snapshot is due.

    Args:
        last: time of the newest snapshot; None if there is none.
        now: the time.
        period: seconds of changes that may be lost.
        scheduled: first time of the schedule after `last`.
    """
    if last is None or now - last >= timedelta(seconds=period):
        return True
    return scheduled is not None and scheduled <= now
