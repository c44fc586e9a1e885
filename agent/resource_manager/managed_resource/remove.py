"""Removing the objects that a ManagedResource lists and no longer wants, and releasing those in mode Ignore."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from agent.resource_manager.managed_resource.change_set import ChangeSet, Pending
from agent.resource_manager.managed_resource.ownership import Look, Ownership
from agent.resource_manager.managed_resource.permissions import Owner
from agent.resource_manager.managed_resource.record import Record
from agent.resource_manager.managed_resource.removal import (
    HAND_OVER_SECONDS,
    DeleteOptions,
    Progress,
    Removal,
    key_of_live,
)
from agent.resource_manager.managed_resource.target import Target
from gardener import keys
from gardener.managed_resource.inventory import InventoryDiff, only_announced
from gardener.managed_resource.messages import pending_text
from gardener.managed_resource.references import key_of_reference, resource_string_of_reference
from kube.errors import KindNotServed, KubeError, NotFound
from kube.objects import Key, Object, annotations, group_of
from kube.resources import Resource


class ReleaseError(Exception):
    """An object could not be released; the message is for the condition."""


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
    utcnow: Callable[[], datetime] = lambda: datetime.now(UTC)
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
            wanted=wanted,
            announced=only_announced(managed_resource),
            delete_volume_claims=bool((managed_resource.get("spec") or {}).get("deletePersistentVolumeClaims")),
            garbage_collector=self.garbage_collector,
            progress=self._progress.setdefault(owner.name, Progress()),
            now=self.utcnow(),
            service_warnings=self.service_warnings,
            note_claims=partial(self.record.note_claims, managed_resource),
        )

    async def restricted(
        self, diff: InventoryDiff, options: DeleteOptions, at_once: asyncio.Semaphore
    ) -> dict[str, str]:
        """What would have to be removed or released, is there and ours, and may not be touched. Only reads.

        Restrictions may be newer than objects. Nothing of that is forgotten silently, nor tried time and again: it
        stays listed, and the condition tells why.

        Returns: object keys with the texts of the errors, in order.
        """
        if not options.owner.is_restricted:
            return {}
        unwanted = [each for each in diff.unwanted if await self._is_restricted(each, options.owner)]
        released = [each for each in diff.released if await self._is_restricted(each, options.owner)]
        if not unwanted and not released:
            return {}
        # Another ManagedResource that wants an object gets it.
        await self.ownership.look_at_all()
        now = time.monotonic()
        look = Look(now, at=now, next_look=now)
        found: dict[str, str] = {}

        async def look_at_unwanted(reference: Object) -> None:
            async with at_once:
                pending = await self._attempt(reference, options, look, Removal.restricted)
            if pending is not None and pending.is_restricted:
                found[pending.name] = pending.text

        async def look_at_released(reference: Object) -> None:
            try:
                async with at_once:
                    await self._to_release(reference, options.owner)
            except ReleaseError as error:
                found[key_of_reference(reference)] = str(error)

        await asyncio.gather(*map(look_at_unwanted, unwanted), *map(look_at_released, released))
        return dict(sorted(found.items()))

    async def _is_restricted(self, reference: Object, owner: Owner) -> bool:
        try:
            resource = await self.target.resource_of(reference)
        except KubeError:
            return False
        return bool(owner.problem(resource, key_of_live(resource, reference)))

    async def remove(
        self, references: Sequence[Object], options: DeleteOptions, changes: ChangeSet, at_once: asyncio.Semaphore
    ) -> None:
        """One step for each; what is not gone yet is noted. Raises KubeError: it is not known who wants what."""
        await self.ownership.look_at_all()
        try:
            look = await self.ownership.look(_due(references, options.progress))
        except KubeError as error:
            changes.pending += [_failed(reference, error) for reference in references]
            return

        async def remove_one(reference: Object) -> None:
            async with at_once:
                pending = await self._attempt(reference, options, look, lambda removal: removal.run(changes))
            if pending is None:
                changes.removed += 1
            else:
                changes.pending.append(pending)

        await asyncio.gather(*map(remove_one, references))

    async def _attempt(
        self,
        reference: Object,
        options: DeleteOptions,
        look: Look,
        attempt: Callable[[Removal], Awaitable[Pending | None]],
    ) -> Pending | None:
        if not reference.get("name"):
            return None  # it was never applied

        def removal(resource: Resource) -> Removal:
            return Removal(resource, reference, options, look, target=self.target, ownership=self.ownership)

        try:
            resource = await self.target.resource_of(reference)
            try:
                return await attempt(removal(resource))
            except KindNotServed as error:
                # What is known of the kind was out of date: an object is gone with its kind only if all versions are.
                self.target.discovery.invalidate(group_of(error.api_version))
                return await attempt(removal(await self.target.resource_of(reference)))
        except KindNotServed:
            self.target.forget(key_of_reference(reference))
            return None
        except (KubeError, ValueError) as error:
            return _failed(reference, error)

    async def release(
        self, references: Sequence[Object], options: DeleteOptions, changes: ChangeSet, at_once: asyncio.Semaphore
    ) -> None:
        """Take our stamps off objects that are to be left alone."""

        async def release_one(reference: Object) -> None:
            try:
                async with at_once:
                    await self._release(reference, options)
            except ReleaseError as error:
                changes.release_errors.append(str(error))

        await asyncio.gather(*map(release_one, references))

    async def _release(self, reference: Object, options: DeleteOptions) -> None:
        found = await self._to_release(reference, options.owner)
        if found is None:
            return
        resource, key = found
        stamps = {"metadata": {"annotations": {keys.ORIGIN: None, keys.DESCRIPTION: None}}}
        try:
            await options.client.patch(resource, key.name, stamps, namespace=key.namespace)
        except (KindNotServed, NotFound):
            return
        except KubeError as error:
            raise _release_error("patching", reference, options.owner.identity.error_text(error)) from error
        self.target.forget(key_of_reference(reference))

    async def _to_release(self, reference: Object, owner: Owner) -> tuple[Resource, Key] | None:
        """How an object that is ours is reached. Raises ReleaseError: it may not be released, or can't be read."""
        try:
            resource = await self.target.resource_of(reference)
            key = key_of_live(resource, reference)
            live = await self.target.read(resource, key)
        except (KindNotServed, NotFound):
            return None
        except KubeError as error:
            raise _release_error("getting", reference, owner.identity.error_text(error)) from error
        if live is None or annotations(live).get(keys.ORIGIN) != owner.origin:
            return None
        if problem := owner.problem(resource, key):
            raise _release_error("patching", reference, problem)
        return resource, key


def _due(references: Iterable[Object], progress: Progress) -> list[float]:
    """From when on a look at other ManagedResources counts for these objects, as far as it is known; monotonic."""
    names = {key_of_reference(reference) for reference in references} - progress.deleted
    return [progress.unwanted_since[name] + HAND_OVER_SECONDS for name in names & progress.unwanted_since.keys()]


def _failed(reference: Object, error: Exception) -> Pending:
    text = pending_text(resource_string_of_reference(reference), error=str(error))
    return Pending(key_of_reference(reference), text, failed=True)


def _release_error(doing: str, reference: Object, error: str) -> ReleaseError:
    return ReleaseError(f'error {doing} object "{resource_string_of_reference(reference)}": {error}')
