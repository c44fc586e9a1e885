"""Backups of an etcd: its initial data, and snapshots while it runs.

    has data           it runs with them
    has lost them      they are restored from the newest good snapshot; later writes are lost
    snapshots away     it does not run, with the reason in the status, until they are readable
    never had any      it begins empty

A snapshot is made at once, then each `deltaSnapshotPeriod`, by the schedule, and on request by an annotation, which is
removed when the snapshot exists. So a loss of the data costs at most the writes of the last period.

A restored etcd has revisions far beyond any that the lost one can have assigned. Clients that know older ones read
everything again.
"""

import asyncio
import contextlib
import errno
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

import structlog

from gardener.garden.cron import parse_cron
from kube.clock import format_duration, parse_duration
from kube.objects import Key, Object, key, mapping, mappings, spec, string_map, text
from kube.paths import at, mapping_at
from kube.runtime.events import EventRecorder
from localprocesses.components import ETCD
from localprocesses.confined import Confined, OutsideError
from localprocesses.etcdutl_program import ETCDUTL
from localprocesses.local import LocalProcessError
from localprovider.runner.etcd_client import EtcdClient, EtcdRefuses
from localprovider.runner.snapshots import (
    AsItIs,
    BucketAway,
    Directory,
    Empty,
    From,
    NotAtAll,
    Snapshot,
    Start,
    directory_of,
    is_due,
    start_of,
    unpacked,
)

ASKED = "local.provider/snapshot"
"""Annotation of an Etcd that requests a snapshot, removed when it exists."""
_DATABASE = "member/snap/db"
_BUMP = 1_000_000_000
_DEFAULT_PERIOD = "5m0s"
_RESTORE_SECONDS = 300.0
_MAIN = "main"
"""Role of the etcd whose data cannot be recreated."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Local place of an etcd.

    Attributes:
        files: files of all etcds.
        own: its directory among these.
        peers: URL of its server for members.
    """

    files: Confined
    own: str
    peers: str

    @property
    def data(self) -> str:
        return f"{self.own}/data"

    @property
    def has_data(self) -> bool:
        return self.files.is_file(f"{self.data}/{_DATABASE}")


@dataclass(eq=False, kw_only=True, slots=True)
class Backups:
    recorder: EventRecorder
    buckets: Confined
    clock: Callable[[], datetime]
    _looked: dict[Key, datetime] = field(default_factory=dict)
    """Time of the last look that found no changes for a snapshot."""

    # --- before it runs

    async def prepare(
        self, etcd: Object, place: Place, secret: Object | None, stop: Callable[[], Awaitable[None]]
    ) -> str:
        """Prepare the data of an etcd. Return the reason why it may not run; empty if it may.

        Args:
            etcd: the Etcd.
            place: its local place.
            secret: Secret with the location of its backups.
            stop: ends its process, awaited; an etcd without data must not continue.
        """
        start = await asyncio.to_thread(_start, etcd, place, partial(self._directory, etcd, secret))
        match start:
            case AsItIs():
                return ""
            case Empty(lost=lost):
                if lost:
                    reported = "its data are lost, and it starts empty, since its data are not backed up"
                    self.recorder.event(etcd, "Warning", "DataLost", reported)
                return ""
            case NotAtAll(reason=reason, lost=lost):
                await stop()
                if lost:
                    self.recorder.event(etcd, "Warning", "DataLost", reason)
                return reason
            case From(snapshots=snapshots):
                await stop()
                return await self._restore(etcd, place, list(snapshots))

    async def _restore(self, etcd: Object, place: Place, snapshots: list[Snapshot]) -> str:
        """Restore the first good snapshot. Return the reason of a failure; empty if it is done."""
        try:
            program = await asyncio.to_thread(ETCDUTL.find_or_build)
        except LocalProcessError as error:
            return f"its data are lost, and no snapshot can be unpacked: {error}"
        unusable = list[str]()
        for each in snapshots:
            try:
                problem = await _made_from(each, place, program)
            except OSError as error:
                return f"its data are lost, and come from {each} once they can be written: {error}"
            if not problem:
                reported = f"its data were lost, and come from {each}; what was written after that is lost"
                self.recorder.event(etcd, "Warning", "Restored", ". ".join([reported, *unusable]))
                log.warning("Data of an etcd were restored", etcd=str(key(etcd)), snapshot=str(each.path))
                return ""
            unusable.append(f"{each} can't be used: {problem}")
            log.warning("A snapshot can't be used", snapshot=str(each.path), error=problem)
        remedy = f"put a good one into {snapshots[0].path.parent}, or delete the Shoot"
        reason = f"its data are lost, and none of {len(snapshots)} snapshots can be used: {unusable[0]}; {remedy}"
        self.recorder.event(etcd, "Warning", "DataLost", reason)
        return reason

    # --- while it runs

    async def keep(self, etcd: Object, client: EtcdClient, secret: Object | None, *, is_asked: bool) -> str:
        """Make a snapshot if one is due, or requested. Return the problem; empty if there is none.

        An etcd without a store for backups needs no snapshot.
        """
        try:
            directory = self._directory(etcd, secret)
            if directory is not None:
                await self._keep(etcd, client, directory, is_asked=is_asked)
        except (BucketAway, EtcdRefuses, OSError, OutsideError, ValueError) as error:
            return f"no snapshot is made: {error}"
        return ""

    async def _keep(self, etcd: Object, client: EtcdClient, directory: Directory, *, is_asked: bool) -> None:
        now, name = self.clock(), key(etcd)
        found = await asyncio.to_thread(directory.snapshots)
        newest = found[0] if found else None
        last = max(newest.moment, self._looked.get(name, newest.moment)) if newest else None
        due = is_due(last=last, now=now, period=period_of(etcd), scheduled=_scheduled(etcd, last))
        if not due and not is_asked:
            return
        revision = await client.revision()
        if newest is not None and newest.revision == revision and not is_asked:
            self._looked[name] = now
            return
        made = await asyncio.to_thread(directory.place, now, revision)
        await client.snapshot(made)
        await asyncio.to_thread(directory.prune, now)

    def _directory(self, etcd: Object, secret: Object | None) -> Directory | None:
        """Return the directory of the backups; None if the Etcd has no store.

        Raises:
            BucketAway: the directory is not accessible, or unknown.
        """
        store = mapping_at(spec(etcd), "backup", "store")
        if not store:
            return None
        return directory_of(self.buckets, secret, secret_of(etcd), text(store.get("prefix")))


def has_store(etcd: Object) -> bool:
    return bool(mapping_at(spec(etcd), "backup", "store"))


def said_of(etcd: Object) -> str:
    """Return the message of a condition while there are backups."""
    return f"what is lost with its data is at most what was written in {format_duration(period_of(etcd))}"


def secret_of(etcd: Object) -> Key:
    """Return the name of the Secret with the location of the backups."""
    return Key(key(etcd).namespace, text(at(spec(etcd), "backup", "store", "secretRef", "name")))


def _start(etcd: Object, place: Place, directory: Callable[[], Directory | None]) -> Start:
    return start_of(
        has_data=place.has_data,
        has_run=bool(mappings(mapping(etcd.get("status")).get("members"))),
        is_needed=string_map(spec(etcd).get("labels")).get("role") == _MAIN,
        directory=directory,
    )


def period_of(etcd: Object) -> float:
    """Return the period in seconds."""
    return parse_duration(text(at(spec(etcd), "backup", "deltaSnapshotPeriod")) or _DEFAULT_PERIOD)


def _scheduled(etcd: Object, last: datetime | None) -> datetime | None:
    schedule = text(at(spec(etcd), "backup", "fullSnapshotSchedule"))
    return parse_cron(schedule).next(last) if schedule and last is not None else None


async def _made_from(snapshot: Snapshot, place: Place, program: Path) -> str:
    """Restore data from a snapshot. Return the problem; empty if they are restored completely.

    Raises:
        OSError: they cannot be written now. An older snapshot instead would lose the changes in the newer one.
    """
    files, scratch = place.files, f"{place.own}/restoring"
    await asyncio.to_thread(files.remove, scratch)
    files.make(scratch)
    try:
        if problem := await asyncio.to_thread(_unpack, snapshot, files, f"{scratch}/db"):
            return problem
        made = f"{scratch}/data"
        if problem := await _run(program, files.path(f"{scratch}/db"), files.path(made), place.peers):
            return problem
        # The rest of the former data is obsolete.
        await asyncio.to_thread(files.remove, place.data)
        files.rename(made, place.data)
    finally:
        await asyncio.to_thread(files.remove, scratch)
    return ""


def _unpack(snapshot: Snapshot, files: Confined, path: str) -> str:
    with snapshot.buckets.open(snapshot.file) as packed, files.replacing(path) as target:
        return unpacked(packed, target)


async def _run(program: Path, database: Path, made: Path, peers: str) -> str:
    process = await asyncio.create_subprocess_exec(
        str(program),
        *("snapshot", "restore", str(database), f"--data-dir={made}", f"--name={ETCD}"),
        *(f"--initial-cluster={ETCD}={peers}", f"--initial-advertise-peer-urls={peers}"),
        *(f"--bump-revision={_BUMP}", "--mark-compacted"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_RESTORE_SECONDS):
            _, reported = await process.communicate()
    except TimeoutError:
        return f"etcdutl takes longer than {format_duration(_RESTORE_SECONDS)}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    problem = reported.decode(errors="replace").strip()[-300:]
    if process.returncode and os.strerror(errno.ENOSPC).lower() in problem.lower():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(made))
    return f"etcdutl: {problem}" if process.returncode else ""
