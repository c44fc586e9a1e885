"""Removing the objects that a ManagedResource lists and no longer wants, and releasing those in mode Ignore."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from agent.resource_manager.managed_resource.change_set import ChangeSet
from agent.resource_manager.managed_resource.ownership import Ownership
from agent.resource_manager.managed_resource.permissions import Owner
from agent.resource_manager.managed_resource.record import Record
from agent.resource_manager.managed_resource.release import ReleaseError, release
from agent.resource_manager.managed_resource.removal import HAND_OVER_SECONDS, DeleteOptions, Progress, attempt, failed
from agent.resource_manager.managed_resource.target import Target
from gardener.managed_resource.inventory import only_announced
from gardener.managed_resource.references import key_of_reference
from kube.errors import KubeError
from kube.objects import Key, Object


@dataclass(eq=False, kw_only=True, slots=True)
class Remover:
    """Each object is removed on its own; what is known of its removal is remembered until the next complete pass."""

    target: Target
    ownership: Ownership
    record: Record
    garbage_collector: bool
    """Whether there is one in this process."""
    service_warnings: Callable[[Key], Awaitable[str]]
    """The text of the Events about a Service."""
    _progress: dict[Key, Progress] = field(default_factory=dict, init=False)

    def is_removing(self, name: Key) -> bool:
        """Whether a ManagedResource still has objects that it does not want."""
        return name in self._progress and bool(self._progress[name].unwanted_since)

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
            client=self.target.client_of(owner.identity.user),
            target=self.target,
            ownership=self.ownership,
            wanted=wanted,
            announced=only_announced(managed_resource),
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
        """One step for each; what is not gone yet is noted. Raises KubeError: it is not known who wants what."""
        await self.ownership.look_at_all()
        try:
            look = await self.ownership.look(_due(references, options.progress))
        except KubeError as error:
            changes.pending += [failed(reference, error) for reference in references]
            return

        async def remove_one(reference: Object) -> None:
            async with at_once:
                pending = await attempt(reference, options, look, lambda removal: removal.run(changes))
            if pending is None:
                changes.removed += 1
            else:
                changes.pending.append(pending)

        await asyncio.gather(*map(remove_one, references))

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
