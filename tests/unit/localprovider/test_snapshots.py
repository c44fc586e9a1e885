"""Snapshots of an etcd: what it begins with, when one is made, which are kept, and whether one is good."""

import base64
import gzip
import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import FileIO
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from kit.disks import files_of_at_most
from kube.objects import Object
from kube.runtime.events import EventRecorder
from localprocesses.confined import Confined
from localprovider.runner.backups import Backups, Place
from localprovider.runner.snapshots import (
    AsItIs,
    BucketAway,
    Directory,
    Empty,
    From,
    NotAtAll,
    Snapshot,
    is_due,
    start_of,
    superfluous,
    unpacked,
)

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
DATA = b"database" * 100_000


def directory_in(buckets: Path) -> Directory:
    """Of the etcd of an entry that is there if the buckets are."""
    if buckets.is_dir():
        (buckets / "bucket" / "entry").mkdir(parents=True, exist_ok=True)
    return Directory(Confined(buckets), "bucket/entry", "etcd-main")


def unpack(path: Path, target: Path) -> str:
    with path.open("rb") as packed, target.open("wb") as file:
        return unpacked(packed, file)


def packed(directory: Path, *, minutes: int, data: bytes = DATA) -> Snapshot:
    """A good one. Args: minutes: its age."""
    made = directory_in(directory).place(NOW - timedelta(minutes=minutes), 1000 - minutes)
    made.path.write_bytes(gzip.compress(data + hashlib.sha256(data).digest(), 1))
    return made


# --- what an etcd begins with


def start(directory: Path | None, *, has_data: bool = False, has_run: bool = False, is_needed: bool = True) -> object:
    found = None if directory is None else directory_in(directory)
    return start_of(has_data=has_data, has_run=has_run, is_needed=is_needed, directory=lambda: found)


def test_what_has_data_requests_no_snapshot() -> None:
    def away() -> Directory:
        raise BucketAway

    assert start_of(has_data=True, has_run=True, is_needed=True, directory=away) == AsItIs()


@pytest.mark.parametrize("has_run", [False, True])
def test_what_has_no_data_begins_with_its_snapshots(tmp_path: Path, has_run: bool) -> None:
    """A new one, too: it is that of a Shoot that has moved here."""
    older, newer = packed(tmp_path, minutes=2), packed(tmp_path, minutes=1)
    assert start(tmp_path, has_run=has_run) == From([newer, older])


def test_a_new_one_begins_empty(tmp_path: Path) -> None:
    assert start(tmp_path) == Empty()
    assert start(None) == Empty()


def test_what_has_lost_its_data_never_begins_empty(tmp_path: Path) -> None:
    found = start(tmp_path, has_run=True)
    assert isinstance(found, NotAtAll)
    assert str(tmp_path) in found.reason
    assert isinstance(start(None, has_run=True), NotAtAll)


def test_it_does_not_where_there_were_snapshots_once(tmp_path: Path) -> None:
    packed(tmp_path, minutes=1).path.unlink()
    assert isinstance(start(tmp_path), NotAtAll)


@pytest.mark.parametrize("has_run", [False, True])
def test_it_does_not_while_snapshots_are_away(tmp_path: Path, has_run: bool) -> None:
    found = start(tmp_path / "away", has_run=has_run)
    assert isinstance(found, NotAtAll)
    assert (found.lost, "the backup bucket is unavailable" in found.reason) == (has_run, True)
    assert not (tmp_path / "away").exists()


def test_what_can_be_missed_begins_empty() -> None:
    assert start(None, has_run=True, is_needed=False) == Empty(lost=True)


# --- files


def test_a_bucket_that_is_away_is_not_made(tmp_path: Path) -> None:
    directory = directory_in(tmp_path / "away")
    calls: list[Callable[[], object]] = [directory.snapshots, directory.exists, lambda: directory.place(NOW, 1)]
    for call in calls:
        with pytest.raises(BucketAway, match="No such file"):
            call()
    assert list(tmp_path.iterdir()) == []


def test_other_files_are_no_snapshots(tmp_path: Path) -> None:
    made = packed(tmp_path, minutes=1)
    (made.path.parent / f".{made.path.name}.new").touch()
    (made.path.parent / "notes.txt").touch()
    assert directory_in(tmp_path).snapshots() == [made]


def test_a_good_snapshot_is_unpacked(tmp_path: Path) -> None:
    target = tmp_path / "db"
    assert unpack(packed(tmp_path, minutes=1).path, target) == ""
    assert target.read_bytes()[: len(DATA)] == DATA


def test_another_byte_is_noticed(tmp_path: Path) -> None:
    made = packed(tmp_path, minutes=1)
    whole = bytearray(gzip.decompress(made.path.read_bytes()))
    whole[1000] ^= 1
    made.path.write_bytes(gzip.compress(bytes(whole)))
    assert unpack(made.path, tmp_path / "db") == "its checksum is wrong"


@pytest.mark.parametrize(
    "content",
    [b"", b"not packed", gzip.compress(b"short", mtime=0), gzip.compress(DATA, mtime=0)[:-100]],
    ids=["empty", "not packed", "short", "cut off"],
)
def test_what_is_no_snapshot_is_noticed(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.db.gz"
    path.write_bytes(content)
    assert unpack(path, tmp_path / "db")


def test_a_full_disk_reports_nothing_of_a_snapshot(tmp_path: Path) -> None:
    made = packed(tmp_path, minutes=1)
    full = FileIO("/dev/full", "w")
    with made.path.open("rb") as source, full, pytest.raises(OSError, match="No space left"):
        unpacked(source, cast("BinaryIO", full))


class Events:
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def event(self, _obj: Object, _type: str, reason: str, _reported: str) -> None:
        self.reasons.append(reason)


async def no_stop() -> None:
    pass


async def test_what_does_not_fit_on_the_disk_is_not_made_from_an_older_snapshot(tmp_path: Path) -> None:
    buckets, files, recorder = tmp_path / "buckets", Confined(tmp_path / "shoots"), Events()
    buckets.mkdir()
    newest = packed(buckets, minutes=1, data=DATA)
    packed(buckets, minutes=2, data=DATA[:50])
    etcd: Object = {
        "metadata": {"namespace": "n", "name": "etcd-main"},
        "spec": {"backup": {"store": {"prefix": "etcd-main"}}},
        "status": {"members": [{}]},
    }
    path = base64.b64encode(str(buckets / "bucket" / "entry").encode()).decode()
    backups = Backups(recorder=cast("EventRecorder", recorder), buckets=Confined(buckets), clock=lambda: NOW)
    place = Place(files=files, own="n/etcd-main", peers="http://127.0.0.1:1")
    with files_of_at_most(1000):
        reported = await backups.prepare(etcd, place, {"data": {"hostPath": path}}, no_stop)
    assert str(newest) in reported
    assert f"File too large: '{files.root}/n/etcd-main/restoring/db'" in reported
    assert recorder.reasons == []
    assert not files.has("n/etcd-main/data")


# --- when, and how long


@pytest.mark.parametrize(
    ("age", "scheduled", "due"),
    [(None, None, True), (299, None, False), (300, None, True), (1, -1, True), (1, 0, True), (1, 1, False)],
)
def test_when_one_is_due(age: int | None, scheduled: int | None, due: bool) -> None:
    last = None if age is None else NOW - timedelta(seconds=age)
    moment = None if scheduled is None else NOW + timedelta(seconds=scheduled)
    assert is_due(last=last, now=NOW, period=300.0, scheduled=moment) is due


def test_how_many_are_kept() -> None:
    """Of a month of one each 5 minutes: all of an hour, one an hour of a day, one a day of a week."""
    made = [
        Snapshot(Confined(Path("x")), "x", NOW - timedelta(minutes=5 * number), 0) for number in range(12 * 24 * 30)
    ]
    gone = superfluous(made, NOW)
    ages = [NOW - each.moment for each in made if each not in gone]
    assert len([age for age in ages if age <= timedelta(hours=1)]) == 13
    assert len([age for age in ages if timedelta(hours=1) < age <= timedelta(days=1)]) in {23, 24}
    assert len([age for age in ages if age > timedelta(days=1)]) in {6, 7}


def test_the_newest_is_kept_whatever_its_age() -> None:
    made = [Snapshot(Confined(Path("x")), "x", NOW - timedelta(days=days), 0) for days in (30, 31)]
    assert superfluous(made, NOW) == made[1:]


def test_so_many_are_kept_however_often_one_is_requested() -> None:
    made = [Snapshot(Confined(Path("x")), "x", NOW - timedelta(seconds=each), 0) for each in range(3600)]
    assert len(made) - len(superfluous(made, NOW)) in {60, 61, 62}
