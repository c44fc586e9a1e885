"""Removal of the objects that a ManagedResource lists and no longer wants, and release of those in mode Ignore.

To release an object is to remove our obsolete stamps, and to leave it alone. Objects that the configuration excludes
are found before any write: restrictions may be newer than objects. They stay listed, and the condition reports the
reason.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from agent.resource_manager.managed_resource.delete_options import DeleteOptions, Progress
from agent.resource_manager.managed_resource.ownership import HAND_OVER_SECONDS, Look, Ownership
from agent.resource_manager.managed_resource.record import Record
from agent.resource_manager.managed_resource.removal import Removal, attempt
from agent.resource_manager.managed_resource.rules.change_set import ChangeSet, Pending
from agent.resource_manager.managed_resource.rules.permissions import Owner
from agent.resource_manager.managed_resource.rules.removal_holds import Awaited, RemovalHolds
from gardener import keys
from gardener.managed_resource import conditions
from gardener.managed_resource.dependencies import Related
from gardener.managed_resource.inventory import PENDING, InventoryDiff, only_announced
from gardener.managed_resource.messages import held_by_text
from gardener.managed_resource.order import Stage, has_finalizers_of_others, removal_stage
from gardener.managed_resource.references import key_of_reference, resource_string_of_reference
from kube.apply.live_objects import LiveObjects, Observed, key_of_live
from kube.clock import parse_time
from kube.errors import KindGone, KubeError, NotFound
from kube.objects import Key, Object, annotations
from kube.objects import key as key_of
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from kube.runtime.client import Selection

_KEEP_SECONDS = 5.0
"""Seconds for kept objects. They are often kept because their cluster is gone; nothing may wait for it."""


STAMPS = frozenset({keys.ORIGIN, keys.DESCRIPTION})


@dataclass(eq=False, kw_only=True, slots=True)
class Remover:
    """Removes each object on its own, and remembers the progress until the next complete pass."""

    live: LiveObjects
    ownership: Ownership
    record: Record
    garbage_collector: bool
    """Whether this process has one."""
    service_warnings: Callable[[Key], Awaitable[str]]
    """Returns the Events about a Service as text."""
    workload_timeout: float
    """Seconds that objects wait until others that may need them are gone."""
    related: Callable[[Object], Related]
    """Returns the ManagedResources in the same removal."""
    clock: Callable[[], datetime]
    """See `Cluster.deletion_clock`; of the target."""
    _progress: dict[Key, Progress] = field(default_factory=dict, init=False)

    def is_removing(self, name: Key) -> bool:
        """Whether a ManagedResource still has obsolete objects."""
        return name in self._progress and bool(self._progress[name].unwanted_since)

    def waiting_for(self, group: str) -> list[Key]:
        """ManagedResources that want to remove objects of kinds of this group that could not be reached."""
        return [name for name, progress in self._progress.items() if group in progress.unserved]

    def forget(self, name: Key) -> None:
        self._progress.pop(name, None)

    def finish(self, name: Key, *, restricted: Collection[str], wanted: Collection[str]) -> None:
        """Forget the progress after all objects were removed, except restricted ones, by object key."""
        progress = self._progress.pop(name, Progress())
        kept = {key: since for key, since in progress.unwanted_since.items() if key in restricted}
        left = {key: text for key, text in progress.left.items() if key not in wanted}
        if kept or left:
            self._progress[name] = Progress(unwanted_since=kept, left=left)

    def options(self, owner: Owner, managed_resource: Object, *, wanted: frozenset[str] = frozenset()) -> DeleteOptions:
        """Return the settings of a pass.

        Args: wanted: object keys of the desired objects; empty if all are removed.
        """
        announced = only_announced(managed_resource)
        progress = self._progress.setdefault(owner.name, Progress())
        progress.never_read.update(
            name
            for reference in (managed_resource.get("status") or {}).get(PENDING) or []
            if (name := key_of_reference(reference)) in announced
            and conditions.has_not_been_read(managed_resource, resource_string_of_reference(reference))
        )
        return DeleteOptions(
            owner=owner,
            client=self.live.client_of(owner.identity.user),
            live=self.live,
            ownership=self.ownership,
            wanted=wanted,
            announced=announced,
            adopt=annotations(managed_resource).get(keys.ADOPT) or "",
            delete_volume_claims=bool((managed_resource.get("spec") or {}).get("deletePersistentVolumeClaims")),
            garbage_collector=self.garbage_collector,
            progress=progress,
            now=self.clock(),
            service_warnings=self.service_warnings,
            note_claims=partial(self.record.note_claims, managed_resource),
            related=partial(self.related, managed_resource),
        )

    async def remove(
        self, references: Sequence[Object], options: DeleteOptions, changes: ChangeSet, at_once: asyncio.Semaphore
    ) -> None:
        """Make one step for each object, stage by stage; pending ones are noted, and hold back later stages."""
        look = self.ownership.look(options.owner.name, _due(references, options.progress))
        stages = self._stages(references)
        has_workloads = not stages.keys().isdisjoint({Stage.FINALIZED_WORKLOADS, Stage.WORKLOADS})
        related = options.related() if has_workloads or Stage.CUSTOM_RESOURCES in stages else Related()
        holds = RemovalHolds(
            timeout=timedelta(seconds=self.workload_timeout), has_workloads=has_workloads, defined=related.defined
        )

        async def remove_one(reference: Object, stage: Stage) -> Awaited | None:
            hold = holds.hold_of(reference, stage)
            async with at_once:
                pending = await attempt(reference, options, look, lambda removal: removal.run(changes, hold=hold))
            if pending is None:
                changes.removed += 1
                return None
            changes.pending.append(pending)
            return self._awaited(reference, options, look, pending) if not pending.is_restricted else None

        if has_workloads:
            holds.add(Stage.CUSTOM_RESOURCES, self._awaited_of_others(related, options))
        for stage in Stage:
            if stage is Stage.DEFINITIONS_IN_USE and has_workloads:
                await self._find_definitions_in_use(stages, options, holds)
            found = await asyncio.gather(*(remove_one(reference, stage) for reference in stages.get(stage, ())))
            holds.add(stage, filter(None, found))

    async def _find_definitions_in_use(
        self, stages: dict[Stage, list[Object]], options: DeleteOptions, holds: RemovalHolds
    ) -> None:
        """Move CustomResourceDefinitions to this stage if a controller among the workloads handles their objects."""
        workloads = [*stages.get(Stage.FINALIZED_WORKLOADS, ()), *stages.get(Stage.WORKLOADS, ())]
        if options.progress.deleted.issuperset(map(key_of_reference, workloads)):
            return
        for reference in stages.get(Stage.DEFINITIONS, [])[:]:
            if holds.hold_of(reference, Stage.DEFINITIONS_IN_USE) is None and await self._is_in_use(reference, options):
                stages[Stage.DEFINITIONS].remove(reference)
                stages.setdefault(Stage.DEFINITIONS_IN_USE, []).append(reference)

    async def _is_in_use(self, reference: Object, options: DeleteOptions) -> bool:
        """Whether objects of the kind of a CustomResourceDefinition exist, as far as they are visible."""
        observed = self.live.observed_as(reference)
        if observed is not None and observed.deleting:
            return True
        try:
            found = await self.live.read(CUSTOM_RESOURCE_DEFINITIONS, Key("", reference.get("name") or ""))
            if found is None or annotations(found).get(keys.ORIGIN) != options.owner.origin:
                return False
            return bool((await options.client.list_page(_defined_by(found), Selection(), limit=1))["items"])
        except KubeError:
            return False

    def _stages(self, references: Iterable[Object]) -> dict[Stage, list[Object]]:
        stages: dict[Stage, list[Object]] = {}
        for reference in references:
            observed = self.live.observed_as(reference)
            stage = removal_stage(reference, observed.finalizers if observed is not None else ())
            stages.setdefault(stage, []).append(reference)
        return stages

    def _awaited(self, reference: Object, options: DeleteOptions, look: Look, pending: Pending) -> Awaited:
        """Return a pending object with the time since its deletion, which survives a restart of the process."""
        progress, name = options.progress, key_of_reference(reference)
        since = max(progress.unwanted_since.get(name, look.now), progress.kept_at.get(name, 0.0))
        passed, held_by = timedelta(seconds=look.now - since), ""
        observed = self.live.observed_as(reference)
        if observed is not None and observed.deleting:
            passed = max(passed, options.now - parse_time(observed.deletion_timestamp))
            held_by = _held_by(observed)
        return Awaited(reference, pending.failed, passed, held_by)

    def _awaited_of_others(self, related: Related, options: DeleteOptions) -> Iterator[Awaited]:
        """Custom resources of other ManagedResources in the same removal."""
        for owner, references in related.awaited.items():
            origin = self.ownership.origin(owner)
            for reference in references:
                observed = self.live.observed_as(reference)
                if observed is None or observed.origin != origin:
                    continue
                if observed.deleting:
                    passed = options.now - parse_time(observed.deletion_timestamp)
                    yield Awaited(reference, False, passed, _held_by(observed), owner=str(owner))
                elif not observed.has_marks:  # one with marks may stay
                    yield Awaited(reference, False, timedelta(0), owner=str(owner))

    async def hand_over(self, references: Sequence[Object], options: DeleteOptions, at_once: asyncio.Semaphore) -> None:
        """Give away those of these objects that other agents' ManagedResources have claimed; the rest stays."""
        look = Look(now=time.monotonic(), elsewhere=self.ownership.elsewhere)

        async def hand_over_one(reference: Object) -> None:
            async with at_once:
                await attempt(reference, options, look, Removal.hand_over)

        await asyncio.gather(*map(hand_over_one, references))

    async def keep(self, references: Sequence[Object], options: DeleteOptions, at_once: asyncio.Semaphore) -> None:
        """Remove from kept objects the note that changes are undone, if the target is available."""

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
        """Remove our stamps from objects that are released."""

        async def release_one(reference: Object) -> None:
            try:
                async with at_once:
                    await release(reference, options)
            except ReleaseError as error:
                changes.release_errors.append(str(error))

        await asyncio.gather(*map(release_one, references))


def _defined_by(definition: Object) -> Resource:
    spec = definition["spec"]
    version = next((each["name"] for each in spec["versions"] if each.get("served")), "")
    names = spec["names"]
    return Resource(spec["group"], version, names["kind"], names["plural"], namespaced=spec["scope"] == "Namespaced")


def _held_by(observed: Observed) -> str:
    if has_finalizers_of_others(observed.finalizers):
        return held_by_text(observed.held_by)
    return observed.held_by


def _due(references: Iterable[Object], progress: Progress) -> list[float]:
    """Return monotonic times from which on a snapshot of other ManagedResources counts for these objects."""
    names = {key_of_reference(reference) for reference in references} - progress.deleted
    return [progress.unwanted_since[name] + HAND_OVER_SECONDS for name in names & progress.unwanted_since.keys()]


# --- releasing


class ReleaseError(Exception):
    """An object could not be released; the message is for the condition."""

    def __init__(self, doing: str, reference: Object, error: str) -> None:
        super().__init__(f'error {doing} object "{resource_string_of_reference(reference)}": {error}')


async def release(reference: Object, options: DeleteOptions, *, stamps: AbstractSet[str] = STAMPS) -> None:
    """Remove our stamps from an object.

    Args: stamps: annotations to remove.

    Raises:
        ReleaseError: it may not be released, or that failed.
    """
    found = await find_releasable(reference, options)
    if found is None:
        return
    resource, live = found
    key, present = key_of(live), stamps & annotations(live).keys()
    if not present:
        return
    patch = {"metadata": {"annotations": dict.fromkeys(sorted(present))}}
    try:
        await options.client.patch_if_exists(resource, key, patch)
    except KubeError as error:
        raise ReleaseError("patching", reference, options.owner.identity.error_text(error)) from error
    options.live.forget(key_of_reference(reference))


async def find_releasable(reference: Object, options: DeleteOptions) -> tuple[Resource, Object] | None:
    """Return an object of ours, and its kind.

    Raises:
        ReleaseError: it may not be released, or cannot be read.
    """
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
    """Return error texts of existing objects of ours that are restricted, by object key, in order; only reads."""
    if not options.owner.is_restricted:
        return {}
    unwanted = [each for each in diff.unwanted if await _is_restricted(each, options)]
    released = [each for each in diff.released if await _is_restricted(each, options)]
    if not unwanted and not released:
        return {}
    # Another ManagedResource that wants an object gets it.
    look = Look(now=time.monotonic(), elsewhere=options.ownership.elsewhere)
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
