"""Creation and update of one object of a ManagedResource: the rules for `kube.apply`.

Another holder of the object is checked before a write; if fields that would not be stored are errors, each write is
tried first as a dry run; an object that cannot be updated is deleted if that is permitted.
"""

import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Never

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
from gardener import keys
from gardener.managed_resource import jobs
from gardener.managed_resource.adoption import adoption_problem, is_unowned
from gardener.managed_resource.autoscaling import Scaled, is_scaled
from gardener.managed_resource.equivalences import Equivalences
from gardener.managed_resource.ignored_fields import IgnoredFields, digest_of
from gardener.managed_resource.merge import MergeError, Overwrite, merge, merge_ignored, merge_options
from gardener.managed_resource.merge.not_written import not_written
from gardener.managed_resource.messages import apply_error_text, held_text, strict_text, taken_back_text
from gardener.managed_resource.plan import PlannedObject
from gardener.managed_resource.remedies import with_remedy
from gardener.managed_resource.stamps import is_stamped
from gardener.managed_resource.warnings import (
    ObjectWarnings,
    basis,
    dropped_texts,
    object_warnings,
    with_not_written,
)
from kube.apply import application as base
from kube.apply.application import computed
from kube.apply.live_objects import LiveObjects
from kube.differences import dropped_fields, is_drifted, needs_update
from kube.errors import (
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


class ApplyError(Exception):
    """An object could not be applied; the message is for the condition."""


class HeldError(ApplyError):
    """Another ManagedResource holds the object."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Reason why an object could not be applied."""

    text: str
    """May quote the object."""
    may_pass: bool = False
    """Whether another attempt may succeed with the same manifest, object and rights."""


_MAY_PASS = (Conflict, HeldError, KindNotServed, KindUnavailable, ServerFailure, TooManyRequests, Unreachable)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyOptions:
    """Settings for all objects of one pass."""

    owner: Owner
    client: Client
    """Client for writes, according to the owner's identity."""
    overwrite: Overwrite
    equivalences: Equivalences
    scaled: Scaled
    adopt: str
    """Annotation of the ManagedResource; see `adoption`."""
    listed: Collection[str]
    """Object keys of desired objects that a complete pass has listed, so they are ours."""
    previous: Mapping[str, Object]
    """Old references by the object keys of the desired objects."""
    is_settled: bool
    """Whether the last complete pass, perhaps of an earlier process, applied these same manifests."""
    always_update: bool
    applied: dict[str, bytes]
    """Fingerprints of the objects that this process has applied, by object key."""
    warnings: dict[str, ObjectWarnings]
    """Warnings of the API server about the last writes, perhaps of an earlier process, by object key."""
    ignored_fields: IgnoredFields
    field_validation: FieldValidation
    reported: str = ""
    """Message of the condition ResourcesApplied."""

    @property
    def is_strict(self) -> bool:
        """Whether a field that would not be stored prevents the application of its object."""
        return self.field_validation is FieldValidation.STRICT


_dropped_fields = partial(dropped_fields, field_manager=keys.FIELD_MANAGER)


async def without_its_secrets(text: str, wanted: PlannedObject) -> str:
    """Return the text of an error, which may quote the object, without the object's secrets."""
    return await computed(wanted.size, lambda: without_secrets(text, wanted.object()))


class Application(base.Application):
    """Application of one object of a ManagedResource."""

    def __init__(
        self,
        wanted: PlannedObject,
        resource: Resource,
        options: ApplyOptions,
        *,
        live: LiveObjects,
        ownership: Ownership,
    ) -> None:
        self._wanted = wanted
        self._options = options
        self._ownership = ownership
        self._horizontally_scaled = self._is_scaled(options.scaled.horizontally)
        self._vertically_scaled = self._is_scaled(options.scaled.vertically)
        self._ignored = options.ignored_fields.pointers(wanted.reference)
        rules = (
            self._horizontally_scaled,
            self._vertically_scaled,
            options.overwrite.labels,
            options.overwrite.annotations,
            options.is_strict,
        )
        desired = base.Desired(
            resource=resource,
            key=wanted.key,
            name=wanted.name,
            size=wanted.size,
            fingerprint=wanted.digest + bytes(rules) + digest_of(self._ignored),
        )
        super().__init__(
            desired, live=live, client=options.client, applied=options.applied, always=options.always_update
        )
        self._changes: ChangeSet
        self._manifest: Object
        self._not_written: Sequence[str] = ()
        """Fields of the manifest for which the last merge kept the value of the live object."""
        self._same_manifest = False
        """Whether the manifest is the same as at the last successful write."""

    def _is_scaled(self, targets: frozenset[str]) -> bool:
        if not targets:
            return False
        key = self._wanted.key
        named = {**self._wanted.reference, "metadata": {"namespace": key.namespace, "name": key.name}}
        return is_scaled(named, targets, self._options.equivalences)

    def is_up_to_date(self) -> bool:
        if self._wanted.is_ignored or self._options.always_update:
            return False
        return (super().is_up_to_date() and self._is_schema_known()) or self._has_finished()

    def _is_schema_known(self) -> bool:
        """Whether no field was dropped that the API server might store by now, with a newer schema of the kind."""
        reported = self._options.warnings.get(self._wanted.name)
        return reported is None or not reported.dropped or self._live.discovery.known_schema(self._resource) is not None

    def _has_finished(self) -> bool:
        """Whether the Job of this manifest has finished; with another manifest it would run again."""
        last = self._options.applied.get(self._wanted.name, b"")
        return last.startswith(self._wanted.digest) and self._live.has_finished(self._resource, self._wanted.key)

    async def _is_taken_for_finished(self) -> bool:
        """Whether the Job is missing though a complete pass of an earlier process applied it.

        Only this shows it if the status has no `jobs`, with the original's CustomResourceDefinition.
        """
        options, wanted = self._options, self._wanted
        is_settled = options.is_settled and wanted.name in options.listed and wanted.name not in options.applied
        if not is_settled or not jobs.is_removed_job(wanted) or await self.read() is not None:
            return False
        self._live.presume_finished(self._resource, jobs.as_finished(wanted.object(), options.owner.origin))
        options.applied[wanted.name] = self._desired.fingerprint
        return True

    async def run(self, changes: ChangeSet) -> Failure | None:
        """Apply the object; return None on success."""
        return await self._reported(self._run_ignored(changes) if self._wanted.is_ignored else self._run(changes))

    async def take_over(self) -> Failure | None:
        """Stamp the object if its holder has given it up, and leave it unchanged otherwise.

        Necessary while nothing else may be applied yet, and the holder waits for that.
        """
        return await self._reported(self._stamp())

    async def _reported(self, step: Awaitable[None]) -> Failure | None:
        identity = self._options.owner.identity
        try:
            await step
        except (ApplyError, Conflict) as error:
            return Failure(str(error), isinstance(error, _MAY_PASS))
        except KindNotServed as error:
            self._live.discovery.invalidate(self._resource.group)
            return Failure(apply_error_text(self._wanted.text, with_remedy(str(error), error)), may_pass=True)
        except (KubeError, MergeError) as error:
            text = apply_error_text(self._wanted.text, with_remedy(identity.error_text(error), error))
            return Failure(text, isinstance(error, _MAY_PASS))
        return None

    async def _stamp(self) -> None:
        live, own = await self.read(), self._options.owner.origin
        if live is None or is_deleting(live):
            return
        await self._check_holder(live)
        notes = annotations(live)
        stamps = {
            keys.ORIGIN: own,
            keys.CLAIMED_BY: None if notes.get(keys.CLAIMED_BY) == own else notes.get(keys.CLAIMED_BY),
        }
        if notes.get(keys.ORIGIN) and any(notes.get(name) != text for name, text in stamps.items()):
            await self._live.annotate(self._resource, live, stamps, client=self._client)

    async def _run_ignored(self, changes: ChangeSet) -> None:
        live, untrue = await self.read(), list[str]()
        if live is not None:
            with contextlib.suppress(Conflict, HeldError):  # only mark it, for a later release
                await self._check_holder(live)
                untrue = [keys.DESCRIPTION, *self._marks_of_others(live)]
            if self._is_unowned(live):
                self._demand_adoption(self._wanted.object())
        body = await self.computed(lambda: merge_ignored(self._wanted.object(), live, untrue=untrue))
        if body is None:
            return
        if live is None:
            await self.send(self._client.create, body)
            changes.created += 1
            changes.note(Action.CREATED, self._wanted.reference)
        else:
            written = await self.send(self._client.replace, body)
            changes.updated += 1
            changes.note(Action.CHANGED, self._wanted.reference, before=live, after=written)

    async def _run(self, changes: ChangeSet) -> None:
        if self._has_finished() or await self._is_taken_for_finished():
            return
        self._changes = changes
        written = await self.write()
        await self._report_not_written()
        live = written.before
        if live is None:
            changes.created += 1
            changes.note(Action.MADE_AGAIN if self._same_manifest else Action.CREATED, self._wanted.reference)
            return
        if live is written.after:
            return
        former = annotations(live).get(keys.ORIGIN)
        if former and self._is_new() and self._ownership.is_unknown(former) and is_stamped(live):
            self._ownership.contests.begin(self._options.owner.name, self._wanted.name, former, now=time.monotonic())
        changes.updated += 1
        if written.differs:
            repaired = Action.REPAIRED if self._same_manifest else Action.CHANGED
            action = Action.TAKEN_OVER if self._is_unowned(live) else repaired
            changes.note(action, self._wanted.reference, before=live, after=written.after)

    async def prepare(self) -> None:
        await super().prepare()
        self._manifest = await self.computed(self._wanted.object)
        last = self._options.applied.get(self._wanted.name)
        self._same_manifest = self._options.is_settled if last is None else last.startswith(self._wanted.digest)
        if not await self._has_same_basis():
            self._options.warnings.pop(self._wanted.name)
            self._same_manifest = False

    def is_absent(self) -> bool:
        return self._options.owner.identity.account is None and super().is_absent()

    async def read(self, *, again: bool = False) -> Object | None:
        """Read the live object; for a ServiceAccount, with the account's own rights if it is not ours yet.

        So an attempt to take an object over reveals neither its content, nor its holder, nor its existence.
        """
        resource, key, owner = self._resource, self._key, self._options.owner
        if owner.identity.account is None:
            return await super().read(again=again)
        observed = self._live.observed(resource, key)
        if not again and observed is not None and observed.origin == owner.origin:
            return await self._live.read(resource, key)
        return await self._live.read_live(resource, key, client=self._client)

    def _is_unowned(self, live: Object) -> bool:
        """Whether it is not ours yet, and has no other owner."""
        return is_unowned(live) and self._is_new()

    def _is_new(self) -> bool:
        """Whether it is not ours according to the list of any complete pass, or was taken back since."""
        lost = self._ownership.contests.is_known(self._options.owner.name, self._wanted.name)
        return lost or self._wanted.name not in self._options.listed

    def _demand_adoption(self, manifest: Object) -> None:
        """Check that an existing object without an owner may be taken over.

        Raises:
            ApplyError: it may not.
        """
        text, of_managed_resource = self._wanted.text, self._options.adopt
        if problem := adoption_problem(manifest, resource=text, of_managed_resource=of_managed_resource):
            raise ApplyError(problem)

    async def _check_holder(self, live: Object) -> None:
        """Check that no other ManagedResource holds the object; claim it from one of another agent.

        Raises:
            HeldError: another one holds it.
        """
        owner, origin = self._options.owner, annotations(live).get(keys.ORIGIN)
        if not origin or origin == owner.origin:
            return
        holder = await self._ownership.holder_by_now(owner.name, origin, self._wanted.name)
        if holder is None:
            self._check_contest(live)
            return
        if holder.is_elsewhere:
            await self._claim(live)
        raise HeldError(held_text(self._wanted.text, holder.name, is_certain=holder.is_certain))

    def _check_contest(self, live: Object) -> None:
        """Check that no agent that is unknown here has taken the object back.

        Raises:
            HeldError: one has.
        """
        origin = annotations(live).get(keys.ORIGIN) or ""
        own, name, contests, now = (
            self._options.owner.name,
            self._wanted.name,
            self._ownership.contests,
            time.monotonic(),
        )
        if not (self._ownership.is_unknown(origin) and is_stamped(live)):
            return
        text = taken_back_text(self._wanted.text, origin)
        if not contests.is_known(own, name) and text in self._options.reported:
            contests.begin(own, name, origin, now=now)  # the previous process has seen it
        if contests.is_lost(own, name, origin, now=now):
            raise HeldError(text)

    def _marks_of_others(self, live: Object) -> list[str]:
        """Annotations of an ignored object that are obsolete, since its holder has given it up."""
        own, notes = self._options.owner.origin, annotations(live)
        origin, claimant = notes.get(keys.ORIGIN), notes.get(keys.CLAIMED_BY)
        if claimant == own:
            return [keys.CLAIMED_BY, *([keys.ORIGIN] if origin == own else [])]
        return [keys.ORIGIN] if origin and origin != own and not self._ownership.is_unknown(origin) else []

    async def _claim(self, live: Object) -> None:
        """Mark the object, so that its holder's agent leaves it to us when giving it up; see `ownership`."""
        owner, claimant = self._options.owner, annotations(live).get(keys.CLAIMED_BY)
        if claimant == owner.origin or is_deleting(live):
            return
        name, text = self._wanted.name, self._wanted.text
        if claimant and await self._ownership.is_claimed(owner.name, claimant, name, resource=text):
            return
        note = {keys.CLAIMED_BY: owner.origin}
        await self._live.annotate(self._resource, live, note, client=self._client)

    async def check(self, live: Object) -> None:
        """Check that the object may be written.

        Raises:
            ApplyError: another ManagedResource holds it, or it may not be taken over.
        """
        await self._check_holder(live)
        if self._is_unowned(live):
            self._demand_adoption(self._manifest)

    def differs(self, merged: Object, live: Object) -> bool:
        notes, own = annotations(live), self._options.owner.origin
        # Another agent with the same field manager may have written it.
        is_of_other = notes.get(keys.ORIGIN) != own or notes.get(keys.CLAIMED_BY) == own
        if not self._same_manifest or is_of_other:
            return needs_update(merged, live)
        reported = self._options.warnings.get(self._wanted.name)
        if reported is None or self._options.is_strict:
            is_refused = reported is not None and reported.is_refused_if_strict
            return is_refused or is_drifted(merged, live, field_manager=keys.FIELD_MANAGER)
        return is_drifted(merged, live, field_manager=keys.FIELD_MANAGER, dropped=reported.dropped)

    async def _has_same_basis(self) -> bool:
        """Whether the stored warnings, if any, are about this manifest and the current fields of its kind."""
        reported = self._options.warnings.get(self._wanted.name)
        return reported is None or reported.basis == await self._basis(is_dropped=bool(reported.dropped))

    async def _basis(self, *, is_dropped: bool) -> str:
        schema = await self._live.discovery.schema(self._resource) if is_dropped else ""
        return basis(self._wanted.digest, schema)

    async def send(self, write: Callable[..., Awaitable[Object]], body: Object) -> Object:
        """Write the object; keep the warnings of the API server and the fields that it does not store.

        Raises:
            ApplyError: a field would not be stored, and that is an error.
        """
        name, warned = self._wanted.name, list[str]()
        mode = WriteMode(self._options.field_validation)
        if self._options.is_strict:
            would_be = await write(self._resource, body, mode=WriteMode(self._options.field_validation, dry_run=True))
            dropped = await self.computed(_dropped_fields, body, would_be)
            if texts := dropped_texts(self._wanted.reference, (), dropped):
                raise ApplyError(apply_error_text(self._wanted.text, strict_text(texts)))
        answer = await write(self._resource, body, mode=mode, warnings=warned)
        dropped = await self.computed(_dropped_fields, body, answer)
        warned = [without_values(await without_its_secrets(text, self._wanted)) for text in warned]
        is_dropped = bool(dropped)
        reported = object_warnings(
            self._wanted.reference, warned, dropped, basis=await self._basis(is_dropped=is_dropped)
        )
        self._options.warnings.pop(name, None)
        if reported is not None:
            self._options.warnings[name] = reported
        return answer

    async def _report_not_written(self) -> None:
        """Report fields that were not written as a warning, even if there was no write."""
        known = self._options.warnings.pop(self._wanted.name, None)
        if known is None and not self._not_written:
            return
        manifest = await self._basis(is_dropped=False)
        found = with_not_written(known, self._wanted.reference, self._not_written, basis=manifest)
        if found is not None:
            self._options.warnings[self._wanted.name] = found

    def merged(self, live: Object | None) -> Object:
        merged = self._merged(self._manifest, live)
        options = merge_options(
            self._manifest,
            horizontally_scaled=self._horizontally_scaled,
            vertically_scaled=self._vertically_scaled,
        )
        self._not_written = (
            not_written(self._manifest, merged, live, options, ignored=self._ignored) if live is not None else []
        )
        return merged

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

    async def refused(self, live: Object, merged: Object, error: Invalid) -> Never:
        """Delete an object that cannot be updated, if that is permitted; the next pass creates it.

        Raises:
            ApplyError: always, with the result.
        """
        text, error_text = self._wanted.text, self._options.owner.identity.error_text
        if not may_be_replaced(merged, error):
            raise error
        try:
            policy = propagation_policy(merged, resource=text)
            await self._try_to_create(live, error)
            await self._client.delete(
                self._resource,
                self._key,
                propagation=policy or "",
                uid=uid(live),
                resource_version=metadata(live)["resourceVersion"],
            )
        except PropagationPolicyError as invalid:
            raise ApplyError(str(invalid)) from invalid
        except NotFound:
            pass
        except Conflict:
            raise  # the object has changed: start again
        except KubeError as failure:
            raise ApplyError(not_deleted_text(text, error_text(failure))) from failure
        self._changes.note(Action.DELETED, self._wanted.reference)
        raise ApplyError(deleted_text(text, error_text(error)))

    async def _try_to_create(self, live: Object, refused: Invalid) -> None:
        """Keep an object that the API server would not create again either.

        The live object is in the way, but that is only detected after validation and admission.

        Raises:
            ApplyError: it would not be created.
        """
        new = self._merged(as_if_gone(self._manifest, live), None)
        try:
            await self._client.create_if_missing(self._resource, new, mode=WriteMode(dry_run=True))
        except KubeError as error:
            error_text = self._options.owner.identity.error_text
            raise ApplyError(not_creatable_text(self._wanted.text, error_text(refused), error_text(error))) from error
