"""Removing the objects that a ManagedResource lists and no longer wants, and releasing those in mode Ignore.

To release an object is to take our stamps off it, as far as they are not true any more, and to leave it alone. What may
not be touched by the configuration is sorted out before anything is written: restrictions may be newer than objects. It
stays listed, and the condition says why.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

from agent.resource_manager.managed_resource.delete_options import DeleteOptions, Progress, Users
from agent.resource_manager.managed_resource.ownership import Look, Ownership
from agent.resource_manager.managed_resource.record import Record
from agent.resource_manager.managed_resource.removal import HAND_OVER_SECONDS, Removal, attempt, failed
from agent.resource_manager.managed_resource.rules.change_set import ChangeSet
from agent.resource_manager.managed_resource.rules.permissions import Owner
from gardener import keys
from gardener.managed_resource.inventory import InventoryDiff, only_announced
from gardener.managed_resource.messages import in_use_text
from gardener.managed_resource.order import place_of_use, runs_pods
from gardener.managed_resource.references import key_of_reference, resource_string_of_reference
from kube.apply.live_objects import LiveObjects, key_of_live
from kube.clock import format_duration, parse_time
from kube.errors import KindGone, KubeError, NotFound
from kube.objects import Key, Object, annotations
from kube.objects import key as key_of
from kube.resources import Resource


@dataclass(frozen=True, slots=True)
class _Leaving:
    """A workload that is to go and is not gone yet."""

    reference: Object
    failed: bool
    left: timedelta
    """For which it is waited for."""


_KEEP_SECONDS = 5.0
"""Objects are often kept because their cluster is gone; nothing is to wait for it."""


STAMPS = frozenset({keys.ORIGIN, keys.DESCRIPTION})


@dataclass(eq=False, kw_only=True, slots=True)
class Remover:
    """Each object is removed on its own; what is known of its removal is remembered until the next complete pass."""

    live: LiveObjects
    ownership: Ownership
    record: Record
    garbage_collector: bool
    """Whether there is one in this process."""
    service_warnings: Callable[[Key], Awaitable[str]]
    """The text of the Events about a Service."""
    workload_timeout: float
    """Seconds for which objects wait until pods that may need them are gone."""
    _progress: dict[Key, Progress] = field(default_factory=dict, init=False)

    def is_removing(self, name: Key) -> bool:
        """Whether a ManagedResource still has objects that it does not want."""
        return name in self._progress and bool(self._progress[name].unwanted_since)

    def waiting_for(self, group: str) -> list[Key]:
        """The ManagedResources that want to remove objects of kinds of this group that could not be reached."""
        return [name for name, progress in self._progress.items() if group in progress.unserved]

    def forget(self, name: Key) -> None:
        self._progress.pop(name, None)

    def finish(self, name: Key, *, restricted: Collection[str]) -> None:
        """All is removed but what may not be, by object key."""
        progress = self._progress.pop(name, Progress())
        kept = {key: since for key, since in progress.unwanted_since.items() if key in restricted}
        if kept:
            self._progress[name] = Progress(unwanted_since=kept)

    def options(self, owner: Owner, managed_resource: Object, *, wanted: frozenset[str] = frozenset()) -> DeleteOptions:
        """Args: wanted: object keys of what it asks for; none if all of it goes."""
        return DeleteOptions(
            owner=owner,
            client=self.live.client_of(owner.identity.user),
            live=self.live,
            ownership=self.ownership,
            wanted=wanted,
            announced=only_announced(managed_resource),
            adopt=annotations(managed_resource).get(keys.ADOPT) or "",
            delete_volume_claims=bool((managed_resource.get("spec") or {}).get("deletePersistentVolumeClaims")),
            garbage_collector=self.garbage_collector,
            progress=self._progress.setdefault(owner.name, Progress()),
            now=datetime.now(UTC),
            service_warnings=self.service_warnings,
            note_claims=partial(self.record.note_claims, managed_resource),
        )

    async def remove(
        self, references: Sequence[Object], options: DeleteOptions, changes: ChangeSet, at_once: asyncio.Semaphore
    ) -> None:
        """One step for each; what is not gone yet is noted. Raises KubeError: it is not known who wants what.

        What pods may need comes after the workloads, and only if these are gone.
        """
        await self.ownership.look_at_all()
        try:
            look = await self.ownership.look(_due(references, options.progress))
        except KubeError as error:
            changes.pending += [failed(reference, error) for reference in references]
            return

        leaving: list[_Leaving] = []

        async def remove_one(reference: Object, users: Users | None = None) -> None:
            async with at_once:
                pending = await attempt(reference, options, look, lambda removal: removal.run(changes, users=users))
            if pending is None:
                changes.removed += 1
                return
            changes.pending.append(pending)
            if runs_pods(reference) and not pending.is_restricted:
                leaving.append(_Leaving(reference, pending.failed, self._left(reference, options, look)))

        places = [(reference, place_of_use(reference)) for reference in references]
        await asyncio.gather(*(remove_one(reference) for reference, place in places if place is None))
        users = self._users(leaving)
        used = ((reference, place) for reference, place in places if place is not None)
        await asyncio.gather(*(remove_one(reference, users.get(place)) for reference, place in used))

    async def hand_over(self, references: Sequence[Object], options: DeleteOptions, at_once: asyncio.Semaphore) -> None:
        """Give away those of these objects that other agents' ManagedResources have claimed; the rest stays."""
        now = time.monotonic()
        look = Look(now, at=now, next_look=now)

        async def hand_over_one(reference: Object) -> None:
            async with at_once:
                await attempt(reference, options, look, Removal.hand_over)

        await asyncio.gather(*map(hand_over_one, references))

    def _left(self, reference: Object, options: DeleteOptions, look: Look) -> timedelta:
        """For which a workload is waited for, from its deletion; a process that starts anew does not begin anew."""
        observed = self.live.observed_as(reference)
        since = options.progress.unwanted_since.get(key_of_reference(reference), look.now)
        passed = timedelta(seconds=look.now - since)
        if observed is not None and observed.deleting:
            passed = max(passed, options.now - parse_time(observed.deletion_timestamp))
        return timedelta(seconds=self.workload_timeout) - passed

    def _users(self, leaving: Sequence[_Leaving]) -> dict[str, Users]:
        """Workloads that are still waited for by the namespace in which they may use something."""
        found: dict[str, list[_Leaving]] = {}
        for each in leaving:
            if each.left > timedelta(0):
                for place in {each.reference.get("namespace") or "", ""}:
                    found.setdefault(place, []).append(each)
        limit = format_duration(self.workload_timeout)
        return {
            place: Users(
                text=in_use_text([resource_string_of_reference(one.reference) for one in some], timeout=limit),
                left=max(one.left for one in some),
                failed=all(one.failed for one in some),
            )
            for place, some in found.items()
        }

    async def keep(self, references: Sequence[Object], options: DeleteOptions, at_once: asyncio.Semaphore) -> None:
        """Take off objects that stay the note that changes are undone, if the target is there to do so."""

        async def keep_one(reference: Object) -> None:
            with contextlib.suppress(ReleaseError):
                async with at_once:
                    await release(reference, options, stamps={keys.DESCRIPTION})

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_KEEP_SECONDS):
                await asyncio.gather(*map(keep_one, references))

    async def release(
        self, references: Sequence[Object], options: DeleteOptions, changes: ChangeSet, at_once: asyncio.Semaphore
    ) -> None:
        """Take our stamps off objects that are to be left alone."""

        async def release_one(reference: Object) -> None:
            try:
                async with at_once:
                    await release(reference, options)
            except ReleaseError as error:
                changes.release_errors.append(str(error))

        await asyncio.gather(*map(release_one, references))


def _due(references: Iterable[Object], progress: Progress) -> list[float]:
    """From when on a look at other ManagedResources counts for these objects, as far as it is known; monotonic."""
    names = {key_of_reference(reference) for reference in references} - progress.deleted
    return [progress.unwanted_since[name] + HAND_OVER_SECONDS for name in names & progress.unwanted_since.keys()]


# --- releasing


class ReleaseError(Exception):
    """An object could not be released; the message is for the condition."""

    def __init__(self, doing: str, reference: Object, error: str) -> None:
        super().__init__(f'error {doing} object "{resource_string_of_reference(reference)}": {error}')


async def release(reference: Object, options: DeleteOptions, *, stamps: AbstractSet[str] = STAMPS) -> None:
    """Args: stamps: the annotations to take off. Raises ReleaseError."""
    found = await find_releasable(reference, options)
    if found is None:
        return
    resource, live = found
    key, present = key_of(live), stamps & annotations(live).keys()
    if not present:
        return
    patch = {"metadata": {"annotations": dict.fromkeys(sorted(present))}}
    try:
        await options.client.patch(resource, key.name, patch, namespace=key.namespace)
    except NotFound:
        return
    except KubeError as error:
        raise ReleaseError("patching", reference, options.owner.identity.error_text(error)) from error
    options.live.forget(key_of_reference(reference))


async def find_releasable(reference: Object, options: DeleteOptions) -> tuple[Resource, Object] | None:
    """An object that is ours, and its kind. Raises ReleaseError: it may not be released, or can't be read."""
    owner, target = options.owner, options.live
    try:
        resource = await target.resource_of(reference)
        key = key_of_live(resource, reference)
        live = await target.read(resource, key)
    except (KindGone, NotFound):
        return None
    except KubeError as error:
        raise ReleaseError("getting", reference, owner.identity.error_text(error)) from error
    if live is None or annotations(live).get(keys.ORIGIN) != owner.origin:
        return None
    if problem := owner.problem(resource, key):
        raise ReleaseError("patching", reference, problem)
    return resource, live


# --- restrictions


async def restricted_objects(diff: InventoryDiff, options: DeleteOptions, at_once: asyncio.Semaphore) -> dict[str, str]:
    """Those that are there and ours; only reads. Returns object keys with the texts of the errors, in order."""
    if not options.owner.is_restricted:
        return {}
    unwanted = [each for each in diff.unwanted if await _is_restricted(each, options)]
    released = [each for each in diff.released if await _is_restricted(each, options)]
    if not unwanted and not released:
        return {}
    # Another ManagedResource that wants an object gets it.
    await options.ownership.look_at_all()
    now = time.monotonic()
    look = Look(now, at=now, next_look=now)
    found: dict[str, str] = {}

    async def check_unwanted(reference: Object) -> None:
        async with at_once:
            pending = await attempt(reference, options, look, Removal.restricted)
        if pending is not None and pending.is_restricted:
            found[pending.name] = pending.text

    async def check_released(reference: Object) -> None:
        try:
            async with at_once:
                await find_releasable(reference, options)
        except ReleaseError as error:
            found[key_of_reference(reference)] = str(error)

    await asyncio.gather(*map(check_unwanted, unwanted), *map(check_released, released))
    return dict(sorted(found.items()))


async def _is_restricted(reference: Object, options: DeleteOptions) -> bool:
    try:
        resource = await options.live.resource_of(reference)
    except KubeError:
        return False
    return bool(options.owner.problem(resource, key_of_live(resource, reference)))
