"""Creating and updating one object of a ManagedResource.

An object costs nothing if it is as it was after the last pass and its manifest is still the same, one call if it is
new or has to be changed, and a read before that only if nothing is known of it. If fields that are not stored are
errors, each write is tried before as a dry run.
"""

import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from agent.resource_manager.common.recent_changes import Action
from agent.resource_manager.managed_resource.ownership import Ownership
from agent.resource_manager.managed_resource.rules.change_set import ChangeSet
from agent.resource_manager.managed_resource.rules.invalid_update import (
    PropagationPolicyError,
    as_if_gone,
    deleted_text,
    may_be_replaced,
    not_creatable_text,
    not_deleted_text,
    propagation_policy,
)
from agent.resource_manager.managed_resource.rules.permissions import Owner
from agent.resource_manager.managed_resource.rules.redaction import without_secrets, without_values
from agent.resource_manager.managed_resource.target import Target
from agent.resource_manager.managed_resource.threads import OBJECTS
from gardener import keys
from gardener.managed_resource.adoption import adoption_problem, is_unowned
from gardener.managed_resource.autoscaling import Scaled, is_scaled
from gardener.managed_resource.difference import content_hash, dropped_fields, is_drifted, needs_update
from gardener.managed_resource.equivalences import Equivalences
from gardener.managed_resource.ignored_fields import IgnoredFields, digest_of
from gardener.managed_resource.merge import MergeError, Overwrite, merge, merge_ignored
from gardener.managed_resource.messages import apply_error_text, held_text, strict_text, taken_back_text
from gardener.managed_resource.plan import LARGE, Wanted
from gardener.managed_resource.remedies import with_remedy
from gardener.managed_resource.warnings import ObjectWarnings, basis, dropped_texts, object_warnings
from kube.errors import (
    AlreadyExists,
    Conflict,
    Invalid,
    KindNotServed,
    KindUnavailable,
    KubeError,
    NotFound,
    ServerFailure,
    TooManyRequests,
    Unreachable,
)
from kube.objects import Object, annotations, is_deleting, metadata, uid
from kube.resources import Resource
from kube.runtime.client import Client
from kube.write_mode import FieldValidation, WriteMode

_ATTEMPTS = 4
_OFF_THE_LOOP = 256 << 10
"""Bytes of a manifest from which on what is computed from it may take long enough that others would feel it."""
_COPIES = 6
"""How many times its size a large object takes while it is written: parsed, merged, as JSON, encrypted, the answer."""

P = ParamSpec("P")
T = TypeVar("T")


class ApplyError(Exception):
    """An object could not be applied; the message is for the condition."""


class HeldError(ApplyError):
    """Another ManagedResource has it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an object could not be applied."""

    text: str
    """May quote the object."""
    may_pass: bool = False
    """Another attempt may succeed with the same manifest, object and rights."""


_MAY_PASS = (Conflict, HeldError, KindNotServed, KindUnavailable, ServerFailure, TooManyRequests, Unreachable)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyOptions:
    """What holds for all objects of one pass."""

    owner: Owner
    client: Client
    """By which is written, as the owner's identity says."""
    overwrite: Overwrite
    equivalences: Equivalences
    scaled: Scaled
    adopt: str
    """The annotation of the ManagedResource; see `adoption`."""
    listed: Collection[str]
    """Object keys of the wanted ones that a complete pass has listed, so they are ours."""
    previous: Mapping[str, Object]
    """The old references by the object keys of the wanted ones."""
    is_settled: bool
    """The last complete pass, perhaps of an earlier process, applied these same manifests."""
    always_update: bool
    applied: dict[str, bytes]
    """Fingerprints of what this process has applied, by object key."""
    warnings: dict[str, ObjectWarnings]
    """What the API server said when objects were written last, perhaps by an earlier process, by object key."""
    ignored_fields: IgnoredFields
    field_validation: FieldValidation
    told: str = ""
    """The message of the condition ResourcesApplied."""

    @property
    def is_strict(self) -> bool:
        """Whether a field that would not be stored keeps its object from being applied."""
        return self.field_validation is FieldValidation.STRICT


async def without_its_secrets(text: str, wanted: Wanted) -> str:
    """The text of an error, which may quote the object."""
    return await _computed(wanted, lambda: without_secrets(text, wanted.object()))


async def _computed(wanted: Wanted, compute: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The value of a pure function of a manifest, in a thread if it is large."""
    if len(wanted.manifest) < _OFF_THE_LOOP:
        return compute(*args, **kwargs)
    return await OBJECTS.compute(compute, *args, **kwargs)


class Application:
    """One object that is to be as it is wanted."""

    def __init__(
        self, wanted: Wanted, resource: Resource, options: ApplyOptions, *, target: Target, ownership: Ownership
    ) -> None:
        self._wanted = wanted
        self._resource = resource
        self._options = options
        self._target = target
        self._ownership = ownership
        self._horizontally_scaled = self._is_scaled(options.scaled.horizontally)
        self._vertically_scaled = self._is_scaled(options.scaled.vertically)
        self._fingerprint = wanted.digest + bytes(
            (
                self._horizontally_scaled,
                self._vertically_scaled,
                options.overwrite.labels,
                options.overwrite.annotations,
                options.is_strict,
            )
        )
        self._ignored = options.ignored_fields.pointers(wanted.reference)
        self._fingerprint += digest_of(self._ignored)

    def _is_scaled(self, targets: frozenset[str]) -> bool:
        if not targets:
            return False
        key = self._wanted.key
        named = {**self._wanted.reference, "metadata": {"namespace": key.namespace, "name": key.name}}
        return is_scaled(named, targets, self._options.equivalences)

    def is_up_to_date(self) -> bool:
        """Whether it is known, without asking anybody, that there is nothing to do."""
        if self._wanted.is_ignored or self._options.always_update:
            return False
        is_same = self._options.applied.get(self._wanted.name) == self._fingerprint and self._is_schema_known()
        return (is_same and self._target.is_accepted(self._resource, self._wanted.key)) or self._has_finished()

    def _is_schema_known(self) -> bool:
        """Whether nothing was dropped that the API server might store by now, since the kind has got other fields."""
        said = self._options.warnings.get(self._wanted.name)
        return said is None or not said.dropped or self._target.discovery.known_schema(self._resource) is not None

    def _has_finished(self) -> bool:
        """Whether just this has run and is over; under another manifest it would run again."""
        last = self._options.applied.get(self._wanted.name, b"")
        return last.startswith(self._wanted.digest) and self._target.has_finished(self._resource, self._wanted.key)

    async def run(self, changes: ChangeSet) -> Failure | None:
        """None: it is applied."""
        return await self._told(self._run_ignored(changes) if self._wanted.is_ignored else self._run(changes))

    async def take_over(self) -> Failure | None:
        """Stamp the object, if its holder has given it up, and leave it as it is otherwise.

        For when nothing else may be applied yet, and its holder waits for that.
        """
        return await self._told(self._stamp())

    async def _told(self, step: Awaitable[None]) -> Failure | None:
        identity = self._options.owner.identity
        try:
            await step
        except (ApplyError, Conflict) as error:
            return Failure(str(error), isinstance(error, _MAY_PASS))
        except KindNotServed as error:
            self._target.discovery.invalidate(self._resource.group)
            return Failure(apply_error_text(self._wanted.text, with_remedy(str(error), error)), may_pass=True)
        except (KubeError, MergeError) as error:
            text = apply_error_text(self._wanted.text, with_remedy(identity.error_text(error), error))
            return Failure(text, isinstance(error, _MAY_PASS))
        return None

    async def _stamp(self) -> None:
        live, own = await self._read(), self._options.owner.origin
        if live is None or is_deleting(live):
            return
        await self._check_holder(live)
        notes = annotations(live)
        stamps = {
            keys.ORIGIN: own,
            keys.CLAIMED_BY: None if notes.get(keys.CLAIMED_BY) == own else notes.get(keys.CLAIMED_BY),
        }
        if notes.get(keys.ORIGIN) and any(notes.get(name) != text for name, text in stamps.items()):
            await self._target.annotate(self._resource, live, stamps, client=self._options.client)

    async def _run_ignored(self, changes: ChangeSet) -> None:
        live, untrue = await self._read(), list[str]()
        if live is not None:
            with contextlib.suppress(Conflict, HeldError):  # it is only marked, for when it is given up
                await self._check_holder(live)
                untrue = [keys.DESCRIPTION, *self._marks_of_others(live)]
            if self._is_unowned(live):
                self._demand_adoption(self._wanted.object())
        body = await _computed(self._wanted, lambda: merge_ignored(self._wanted.object(), live, untrue=untrue))
        if body is None:
            return
        if live is None:
            await self._send(self._options.client.create, body)
            changes.created += 1
            changes.note(Action.CREATED, self._wanted.reference)
        else:
            written = await self._send(self._options.client.replace, body)
            changes.updated += 1
            changes.note(Action.CHANGED, self._wanted.reference, before=live, after=written)

    async def _run(self, changes: ChangeSet) -> None:
        if self._has_finished():
            return
        size = len(self._wanted.manifest)
        if size < _OFF_THE_LOOP:
            await self._apply(changes)
            return
        async with self._target.memory.hold(_COPIES * size):
            await self._apply(changes)

    async def _apply(self, changes: ChangeSet) -> None:
        await self._turn()
        manifest = await _computed(self._wanted, self._wanted.object)
        last = self._options.applied.get(self._wanted.name)
        same_manifest = self._options.is_settled if last is None else last.startswith(self._wanted.digest)
        if not await self._has_same_basis():
            self._options.warnings.pop(self._wanted.name)
            same_manifest = False
        live = None if self._is_absent() else await self._read()
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._write(manifest, live, changes, same_manifest=same_manifest)
            except AlreadyExists:
                live = await self._read(again=True)
            except (Conflict, NotFound):
                if live is None:
                    raise
                live = await self._read(again=True)
        return await self._write(manifest, live, changes, same_manifest=same_manifest)

    def _is_absent(self) -> bool:
        """Whether it is not there as far as is known: then it is created without asking first."""
        key, account = self._wanted.key, self._options.owner.identity.account
        is_unknown = self._target.observed(self._resource, key) is None and self._target.sees(self._resource, key)
        return is_unknown and account is None

    async def _read(self, *, again: bool = False) -> Object | None:
        """The live object; for a ServiceAccount what is not ours yet is only read as what the account itself may see.

        So nobody learns by an attempt to take an object over what is in it, who has it, or whether it exists.
        """
        target, resource, key, owner = self._target, self._resource, self._wanted.key, self._options.owner
        if owner.identity.account is None:
            return await (target.read_live if again else target.read)(resource, key)
        observed = target.observed(resource, key)
        if not again and observed is not None and observed.origin == owner.origin:
            return await target.read(resource, key)
        return await target.read_live(resource, key, client=self._options.client)

    def _is_unowned(self, live: Object) -> bool:
        """Whether it is not ours yet, and nobody else's."""
        return is_unowned(live) and self._is_new()

    def _is_new(self) -> bool:
        """Whether it is not ours as far as any complete pass has listed, or was taken back since."""
        lost = self._ownership.contests.is_known(self._options.owner.name, self._wanted.name)
        return lost or self._wanted.name not in self._options.listed

    def _demand_adoption(self, manifest: Object) -> None:
        """Raises ApplyError: what exists without an owner is not to be taken over."""
        text, of_managed_resource = self._wanted.text, self._options.adopt
        if problem := adoption_problem(manifest, resource=text, of_managed_resource=of_managed_resource):
            raise ApplyError(problem)

    async def _check_holder(self, live: Object) -> None:
        """Raises HeldError."""
        owner, origin = self._options.owner, annotations(live).get(keys.ORIGIN)
        if not origin or origin == owner.origin:
            return
        holder = await self._ownership.holder_by_now(owner.name, origin, self._wanted.name)
        if holder is None:
            self._check_contest(origin)
            return
        if holder.is_elsewhere:
            await self._claim(live)
        raise HeldError(held_text(self._wanted.text, holder.name, is_certain=holder.is_certain))

    def _check_contest(self, origin: str) -> None:
        """Raises HeldError: who is not known here has taken the object back."""
        own, name, contests, now = (
            self._options.owner.name,
            self._wanted.name,
            self._ownership.contests,
            time.monotonic(),
        )
        if not self._ownership.is_unknown(origin):
            return
        text = taken_back_text(self._wanted.text, origin)
        if not contests.is_known(own, name) and text in self._options.told:
            contests.begin(own, name, origin, now=now)  # the process before has seen it
        if contests.is_lost(own, name, origin, now=now):
            raise HeldError(text)

    def _marks_of_others(self, live: Object) -> list[str]:
        """Annotations that are not true any more of an ignored object, which its holder has given up."""
        own, notes = self._options.owner.origin, annotations(live)
        origin, claimant = notes.get(keys.ORIGIN), notes.get(keys.CLAIMED_BY)
        if claimant == own:
            return [keys.CLAIMED_BY, *([keys.ORIGIN] if origin == own else [])]
        return [keys.ORIGIN] if origin and origin != own and not self._ownership.is_unknown(origin) else []

    async def _claim(self, live: Object) -> None:
        """Mark the object, so that its holder's agent leaves it to us when it is given up; see `ownership`."""
        owner, claimant = self._options.owner, annotations(live).get(keys.CLAIMED_BY)
        if claimant == owner.origin or is_deleting(live):
            return
        name, text = self._wanted.name, self._wanted.text
        if claimant and await self._ownership.is_claimed(owner.name, claimant, name, resource=text):
            return
        note = {keys.CLAIMED_BY: owner.origin}
        await self._target.annotate(self._resource, live, note, client=self._options.client)

    async def _write(self, manifest: Object, live: Object | None, changes: ChangeSet, *, same_manifest: bool) -> None:
        if live is not None:
            await self._check_holder(live)
        is_new = live is not None and self._is_unowned(live)
        if is_new:
            self._demand_adoption(manifest)
        merged = await _computed(self._wanted, self._merged, manifest, live)
        if live is None:
            await self._accept(await self._send(self._options.client.create, merged))
            changes.created += 1
            changes.note(Action.MADE_AGAIN if same_manifest else Action.CREATED, self._wanted.reference)
            return
        differs = await _computed(self._wanted, self._differs, merged, live, same_manifest=same_manifest)
        if not differs and not self._options.always_update:
            await self._accept(live)
            return
        try:
            written = await self._send(self._options.client.replace, merged)
        except Invalid as error:
            await self._replace(manifest, live, merged, error, changes)
            return
        former = annotations(live).get(keys.ORIGIN)
        if former and self._is_new() and self._ownership.is_unknown(former):
            self._ownership.contests.begin(self._options.owner.name, self._wanted.name, former, now=time.monotonic())
        await self._accept(written)
        changes.updated += 1
        if differs:
            action = Action.TAKEN_OVER if is_new else Action.REPAIRED if same_manifest else Action.CHANGED
            changes.note(action, self._wanted.reference, before=live, after=written)

    def _differs(self, merged: Object, live: Object, *, same_manifest: bool) -> bool:
        notes, own = annotations(live), self._options.owner.origin
        # Another agent may have written it; its field manager is the same.
        is_of_other = notes.get(keys.ORIGIN) != own or notes.get(keys.CLAIMED_BY) == own
        if not same_manifest or is_of_other:
            return needs_update(merged, live)
        said = self._options.warnings.get(self._wanted.name)
        if said is None:
            return is_drifted(merged, live)
        if self._options.is_strict:
            return said.is_refused_if_strict or is_drifted(merged, live)
        return is_drifted(merged, live, said.dropped)

    async def _has_same_basis(self) -> bool:
        """Whether what the API server said of the last write, if it did, was of this manifest and these fields."""
        said = self._options.warnings.get(self._wanted.name)
        return said is None or said.basis == await self._basis(is_dropped=bool(said.dropped))

    async def _basis(self, *, is_dropped: bool) -> str:
        schema = await self._target.discovery.schema(self._resource) if is_dropped else ""
        return basis(self._wanted.digest, schema)

    async def _send(self, write: Callable[..., Awaitable[Object]], body: Object) -> Object:
        """The answer to a write; what the API server warns of, and does not store, is kept. Raises ApplyError."""
        name, warned = self._wanted.name, list[str]()
        mode = WriteMode(self._options.field_validation)
        if self._options.is_strict:
            would_be = await write(self._resource, body, mode=WriteMode(self._options.field_validation, dry_run=True))
            dropped = await _computed(self._wanted, dropped_fields, body, would_be)
            if texts := dropped_texts(self._wanted.reference, (), dropped):
                raise ApplyError(apply_error_text(self._wanted.text, strict_text(texts)))
        answer = await write(self._resource, body, mode=mode, warnings=warned)
        dropped = await _computed(self._wanted, dropped_fields, body, answer)
        warned = [without_values(await without_its_secrets(text, self._wanted)) for text in warned]
        is_dropped = bool(dropped)
        said = object_warnings(self._wanted.reference, warned, dropped, basis=await self._basis(is_dropped=is_dropped))
        self._options.warnings.pop(name, None)
        if said is not None:
            self._options.warnings[name] = said
        return answer

    def _merged(self, manifest: Object, live: Object | None) -> Object:
        return merge(
            manifest,
            live,
            origin=self._options.owner.origin,
            previous=self._options.previous.get(self._wanted.name),
            overwrite=self._options.overwrite,
            horizontally_scaled=self._horizontally_scaled,
            vertically_scaled=self._vertically_scaled,
            ignored=self._ignored,
        )

    async def _turn(self) -> None:
        if len(self._wanted.manifest) >= LARGE:
            await self._target.turn()

    async def _accept(self, live: Object) -> None:
        await self._turn()
        content = await _computed(self._wanted, content_hash, live)
        self._target.accept(self._resource, live, content)
        self._options.applied[self._wanted.name] = self._fingerprint

    async def _replace(
        self, manifest: Object, live: Object, merged: Object, refused: Invalid, changes: ChangeSet
    ) -> None:
        """Delete what can't be updated, if that is allowed; the next pass creates it. Raises ApplyError."""
        text, error_text = self._wanted.text, self._options.owner.identity.error_text
        if not may_be_replaced(merged, refused.causes):
            raise refused
        try:
            policy = propagation_policy(merged, resource=text)
            await self._try_to_create(manifest, live, refused)
            await self._options.client.delete(
                self._resource,
                self._wanted.key.name,
                namespace=self._wanted.key.namespace,
                propagation=policy or "",
                uid=uid(live),
                resource_version=metadata(live)["resourceVersion"],
            )
        except PropagationPolicyError as error:
            raise ApplyError(str(error)) from error
        except NotFound:
            pass
        except Conflict:
            raise  # it has changed: all is looked at anew
        except KubeError as error:
            raise ApplyError(not_deleted_text(text, error_text(error))) from error
        changes.note(Action.DELETED, self._wanted.reference)
        raise ApplyError(deleted_text(text, error_text(refused)))

    async def _try_to_create(self, manifest: Object, live: Object, refused: Invalid) -> None:
        """What the API server would not take anew either stays as it is. Raises ApplyError.

        The live object is in the way, but that is found out last, after validation and admission.
        """
        new = self._merged(as_if_gone(manifest, live), None)
        try:
            await self._options.client.create(self._resource, new, mode=WriteMode(dry_run=True))
        except AlreadyExists:
            return
        except KubeError as error:
            error_text = self._options.owner.identity.error_text
            raise ApplyError(not_creatable_text(self._wanted.text, error_text(refused), error_text(error))) from error
