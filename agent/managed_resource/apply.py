"""Creating and updating the objects of a ManagedResource, each on its own.

An object costs nothing if it is as it was after the last pass and its manifest is still the same, one call if it is
new or has to be changed, and a read before that only if nothing is known of it.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from agent.changes import Action, Note
from agent.managed_resource import keys
from agent.managed_resource.autoscaling import Scaled, is_scaled
from agent.managed_resource.difference import is_drifted, needs_update
from agent.managed_resource.equivalences import Equivalences
from agent.managed_resource.invalid_update import (
    PropagationPolicyError,
    deleted_text,
    may_be_replaced,
    not_deleted_text,
    propagation_policy,
)
from agent.managed_resource.merge import MergeError, Overwrite, merge, merge_ignored
from agent.managed_resource.messages import apply_error_text
from agent.managed_resource.plan import LARGE, Wanted
from agent.managed_resource.restrictions import Mandate
from agent.managed_resource.target import Target
from agent.managed_resource.unquoted import without_secrets
from kube.client import Client
from kube.errors import AlreadyExists, Conflict, Invalid, KubeError, NotFound
from kube.objects import Key, Object, annotations
from kube.resources import Resource

_ATTEMPTS = 4


class ApplyError(Exception):
    """An object could not be applied; the message is for the condition."""


class Outcome(Enum):
    UNCHANGED = auto()
    CREATED = auto()
    UPDATED = auto()


@dataclass(frozen=True, slots=True)
class Work:
    """What holds for all objects of one pass."""

    origin: str
    mandate: Mandate
    client: Client
    """By which is written, as the mandate says."""
    overwrite: Overwrite
    equivalences: Equivalences
    scaled: Scaled
    previous: Mapping[str, Object]
    """The old references by the object keys of the wanted ones."""
    is_settled: bool
    """The last complete pass, perhaps of an earlier process, applied these same manifests."""
    always_update: bool
    applied: dict[str, bytes]
    """Fingerprints of what this process has applied, by object key; kept up to date here."""
    holder: Callable[[str, str], Awaitable[Key | None]]
    """From an origin and an object key to the other ManagedResource that has the object and wants to keep it."""
    note: Note
    """Remembers what was done."""


def is_up_to_date(target: Target, wanted: Wanted, work: Work) -> bool:
    """Whether it is known, without asking anybody, that there is nothing to do."""
    if wanted.problem or wanted.resource is None or wanted.is_ignored or work.always_update:
        return False
    return _Application(target, wanted, wanted.resource, work).is_up_to_date()


async def apply(target: Target, wanted: Wanted, work: Work) -> Outcome:
    """Make one object as it is wanted.

    Raises:
        ApplyError: it could not be done. The text holds nothing that is secret.
    """
    try:
        return await _apply(target, wanted, work)
    except ApplyError as error:
        raise ApplyError(without_secrets(str(error), wanted.object())) from None


async def _apply(target: Target, wanted: Wanted, work: Work) -> Outcome:
    if wanted.problem or wanted.resource is None:
        raise ApplyError(wanted.problem)
    try:
        if wanted.is_ignored:
            return await _apply_ignored(target, wanted, wanted.resource, work)
        return await _Application(target, wanted, wanted.resource, work).run()
    except Conflict as error:
        raise ApplyError(str(error)) from error
    except NotFound as error:
        if (error.details.get("kind") or "") != "namespaces":
            # The kind itself may be gone.
            target.discovery.invalidate(wanted.resource.group)
        raise ApplyError(apply_error_text(wanted.text, str(error))) from error
    except (KubeError, MergeError) as error:
        raise ApplyError(apply_error_text(wanted.text, work.mandate.told(error))) from error


async def _apply_ignored(target: Target, wanted: Wanted, resource: Resource, work: Work) -> Outcome:
    live = await _read(target, resource, wanted.key, work)
    body = merge_ignored(wanted.object(), live)
    if body is None:
        return Outcome.UNCHANGED
    if live is None:
        await work.client.create(resource, body)
        work.note(Action.CREATED, wanted.reference)
        return Outcome.CREATED
    work.note(Action.CHANGED, wanted.reference, before=live, after=await work.client.replace(resource, body))
    return Outcome.UPDATED


async def _read(target: Target, resource: Resource, key: Key, work: Work, *, again: bool = False) -> Object | None:
    """The live object; for a ServiceAccount what is not ours yet is only read as what the account itself may see.

    So nobody learns by an attempt to take an object over what is in it, who has it, or whether it exists.
    """
    if work.mandate.account is None:
        return await (target.read_live if again else target.read)(resource, key)
    observed = target.observed(resource, key)
    if not again and observed is not None and observed.origin == work.origin:
        return await target.read(resource, key)
    return await target.read_live(resource, key, client=work.client)


class _Application:
    """One object on its way."""

    def __init__(self, target: Target, wanted: Wanted, resource: Resource, work: Work) -> None:
        self._target = target
        self._wanted = wanted
        self._resource = resource
        self._work = work
        reference = wanted.reference
        self._horizontally_scaled = self._is_scaled(reference, work.scaled.horizontally)
        self._vertically_scaled = self._is_scaled(reference, work.scaled.vertically)
        self._fingerprint = wanted.digest + bytes(
            (
                self._horizontally_scaled,
                self._vertically_scaled,
                work.overwrite.labels,
                work.overwrite.annotations,
            )
        )

    def _is_scaled(self, reference: Object, targets: frozenset[str]) -> bool:
        if not targets:
            return False
        named = {**reference, "metadata": {"namespace": self._wanted.key.namespace, "name": self._wanted.key.name}}
        return is_scaled(named, targets, self._work.equivalences)

    def is_up_to_date(self) -> bool:
        return (self._is_known() and self._target.is_accepted(self._resource, self._wanted.key)) or self._has_finished()

    def _has_finished(self) -> bool:
        """Whether just this has run and is over; under another manifest it would run again."""
        last = self._work.applied.get(self._wanted.name, b"")
        return last.startswith(self._wanted.digest) and self._target.has_finished(self._resource, self._wanted.key)

    def _is_known(self) -> bool:
        """Whether this process has applied just this."""
        return self._work.applied.get(self._wanted.name) == self._fingerprint

    async def run(self) -> Outcome:
        target, resource, key = self._target, self._resource, self._wanted.key
        if self._has_finished():
            return Outcome.UNCHANGED
        await self._turn()
        manifest = self._wanted.object()
        last = self._work.applied.get(self._wanted.name)
        same_manifest = self._work.is_settled if last is None else last.startswith(self._wanted.digest)
        # What would be known if it were there is created without asking first.
        absent = target.observed(resource, key) is None and target.sees(resource, key)
        absent = absent and self._work.mandate.account is None
        live = None if absent else await _read(target, resource, key, self._work)
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._write(manifest, live, same_manifest=same_manifest)
            except AlreadyExists:
                live = await _read(target, resource, key, self._work, again=True)
            except (Conflict, NotFound):
                if live is None:
                    raise
                live = await _read(target, resource, key, self._work, again=True)
        return await self._write(manifest, live, same_manifest=same_manifest)

    async def _write(self, manifest: Object, live: Object | None, *, same_manifest: bool) -> Outcome:
        if live is not None:
            await self._check_holder(live)
        merged = merge(
            manifest,
            live,
            origin=self._work.origin,
            previous=self._work.previous.get(self._wanted.name),
            overwrite=self._work.overwrite,
            horizontally_scaled=self._horizontally_scaled,
            vertically_scaled=self._vertically_scaled,
        )
        if live is None:
            await self._done(await self._work.client.create(self._resource, merged))
            self._work.note(Action.MADE_AGAIN if same_manifest else Action.CREATED, self._wanted.reference)
            return Outcome.CREATED
        differs = is_drifted(merged, live) if same_manifest else needs_update(merged, live)
        if not differs and not self._work.always_update:
            await self._done(live)
            return Outcome.UNCHANGED
        try:
            written = await self._work.client.replace(self._resource, merged)
        except Invalid as error:
            await self._replace(merged, error)
        else:
            await self._done(written)
            if differs:
                action = Action.PUT_RIGHT if same_manifest else Action.CHANGED
                self._work.note(action, self._wanted.reference, before=live, after=written)
        return Outcome.UPDATED

    async def _turn(self) -> None:
        if len(self._wanted.manifest) >= LARGE:
            await self._target.turn()

    async def _done(self, live: Object) -> None:
        await self._turn()
        self._target.accept(self._resource, live)
        self._work.applied[self._wanted.name] = self._fingerprint

    async def _check_holder(self, live: Object) -> None:
        origin = annotations(live).get(keys.ORIGIN)
        if not origin or origin == self._work.origin:
            return
        holder = await self._work.holder(origin, self._wanted.name)
        if holder is not None:
            raise ApplyError(
                f'object "{self._wanted.text}" is held by ManagedResource {holder}; remove it from one of the two'
            )

    async def _replace(self, merged: Object, refused: Invalid) -> None:
        """Delete what can't be updated, if that is allowed; the next pass creates it."""
        text = self._wanted.text
        if not may_be_replaced(merged, refused.causes):
            raise refused
        try:
            policy = propagation_policy(merged, resource=text)
            await self._work.client.delete(
                self._resource, self._wanted.key.name, namespace=self._wanted.key.namespace, propagation=policy or ""
            )
        except PropagationPolicyError as error:
            raise ApplyError(str(error)) from error
        except NotFound:
            pass
        except KubeError as error:
            raise ApplyError(not_deleted_text(text, self._work.mandate.told(error))) from error
        self._work.note(Action.DELETED, self._wanted.reference)
        raise ApplyError(deleted_text(text, self._work.mandate.told(refused)))
