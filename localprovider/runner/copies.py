"""One pass over an EtcdCopyBackupsTask: copy snapshots of an etcd from one bucket into another, once.

Each copy gets its name only when it is complete, so an interrupted pass continues with the missing ones.
"""

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kube.clock import format_time
from kube.errors import KubeError
from kube.objects import Key, Object, integer, is_deleting, key, mapping, metadata, spec, text
from kube.objects import condition as found_condition
from kube.paths import mapping_at
from kube.resources import SECRETS
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, RequeueAfter, Result
from kube.runtime.status import StatusWriter
from localprocesses.confined import Confined, OutsideError
from localprovider.runner import conditions
from localprovider.runner.snapshots import BucketAway, Directory, Snapshot, directory_of

_SOON = 2.0
_BLOCK = 1 << 20
_SUCCEEDED = "Succeeded"


@dataclass(eq=False, kw_only=True, slots=True)
class CopyReconciler:
    client: Client
    buckets: Confined
    is_of_shoot: Callable[[str], bool]
    """Whether a namespace belongs to a Shoot."""
    clock: Callable[[], datetime]
    tasks: Store[Object] = field(init=False)
    statuses: StatusWriter = field(init=False)

    def begin(self, tasks: Store[Object]) -> None:
        """Begin before the first pass, once the kind is served."""
        self.tasks, self.statuses = tasks, StatusWriter(self.client, tasks)

    async def reconcile(self, name: Key) -> Result:
        task = self.tasks.get(name)
        if task is None or is_deleting(task) or not self.is_of_shoot(name.namespace) or _is_done(task):
            return Done()
        try:
            source, target = [await self._directory(task, each) for each in ("sourceStore", "targetStore")]
            copied = await asyncio.to_thread(copy, source, target, spec(task), self.clock())
        except (BucketAway, KubeError, OSError, OutsideError) as error:
            await self._report(task, reported=str(error))
            return RequeueAfter(_SOON)
        reported = "" if copied else f"there is no snapshot in {source.path} to start with"
        await self._report(task, reported=reported)
        return RequeueAfter(_SOON) if reported else Done()

    async def _directory(self, task: Object, store: str) -> Directory:
        """Return the directory of a store.

        Raises:
            BucketAway: it is not accessible, or unknown.
        """
        of = mapping_at(spec(task), store)
        where = Key(key(task).namespace, text(mapping(of.get("secretRef")).get("name")))
        secret = await self.client.find(SECRETS, where)
        return directory_of(self.buckets, secret, where, text(of.get("prefix")))

    async def _report(self, task: Object, *, reported: str) -> None:
        now = format_time(self.clock())
        done = conditions.condition(
            task,
            _SUCCEEDED,
            is_true=not reported,
            reported=reported,
            now=now,
            reason="NotCopied" if reported else "Copied",
            good=_GOOD,
        )
        generation = metadata(task)["generation"]
        await self.statuses.write(
            task, {"observedGeneration": generation, "conditions": [done], "lastError": reported or None}
        )


_GOOD = "all snapshots were copied"


def _is_done(task: Object) -> bool:
    is_observed = integer(mapping(task.get("status")).get("observedGeneration")) == metadata(task)["generation"]
    return is_observed and (found_condition(task, _SUCCEEDED) or {}).get("status") == "True"


def copy(source: Directory, target: Directory, wanted: Object, now: datetime) -> int:
    """Copy the snapshots of the source into the target. Return their number.

    `wanted` limits their number and age.

    Raises:
        BucketAway: a directory is not accessible.
        OSError: a copy failed.
    """
    found = source.snapshots()
    if days := integer(wanted.get("maxBackupAge")):
        found = [each for each in found if now - each.moment <= timedelta(days=days)]
    if most := integer(wanted.get("maxBackups")):
        found = found[:most]
    for each in found:
        _copy_one(each, target.place(each.moment, each.revision))
    return len(found)


def _copy_one(source: Snapshot, target: Snapshot) -> None:
    if _is_same(source, target):
        return
    with source.buckets.open(source.file) as old, target.buckets.replacing(target.file) as new:
        shutil.copyfileobj(old, new)
    if not _is_same(source, target):
        raise OSError(f"{target.path} differs from {source.path}")


def _is_same(source: Snapshot, target: Snapshot) -> bool:
    try:
        with source.buckets.open(source.file) as one, target.buckets.open(target.file) as other:
            while (block := one.read(_BLOCK)) == other.read(_BLOCK):
                if not block:
                    return True
    except FileNotFoundError:
        pass
    return False
