"""Removal of one object that a ManagedResource lists and no longer wants.

An object is removed by any served version of its kind. It is pending until it is gone, according to the watch of its
kind; a DELETE is sent once, with uid and resourceVersion as preconditions, so it only hits the checked object.

A user who moves an object to another ManagedResource writes two Secrets, one after the other, and the first one to be
seen may be the one that drops the object. So nothing is deleted before the other change had a moment to arrive, and
other ManagedResources have been checked (see `ownership`). An object that another one claims is left to it if it takes
it within two minutes, and deleted otherwise: a claimant that cannot or may not write the object must not keep it
forever.
"""

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import timedelta

from agent.resource_manager.common.recent_changes import Action
from agent.resource_manager.managed_resource.delete_options import DeleteOptions
from agent.resource_manager.managed_resource.ownership import Look
from agent.resource_manager.managed_resource.rules.change_set import ChangeSet, Pending
from agent.resource_manager.managed_resource.rules.permissions import RestrictedError
from agent.resource_manager.managed_resource.rules.removal_holds import Hold
from agent.resource_manager.managed_resource.rules.volume_claims import VolumeClaims
from gardener import keys
from gardener.managed_resource.messages import (
    about_to_take_text,
    handed_over_text,
    kept_by_live_text,
    left_to_unknown_text,
    not_removed_text,
    pending_text,
)
from gardener.managed_resource.order import runs_pods
from gardener.managed_resource.references import key_of_reference, resource_string_of_reference
from gardener.managed_resource.remedies import with_remedy
from gardener.managed_resource.removal_rules import (
    Disposition,
    disposition,
    is_namespace,
    must_be_finalized,
    propagation_policy,
    without_finalizers,
)
from kube.apply.live_objects import Observed, key_of_live
from kube.clock import format_duration, parse_duration, parse_time
from kube.errors import Conflict, Forbidden, KindGone, KindNotServed, KindUnavailable, KubeError, NotFound
from kube.objects import (
    Key,
    Object,
    annotations,
    finalizers,
    group_of,
    held_by,
    is_deleting,
    is_truthy,
    metadata,
    object_key,
    uid,
)
from kube.resources import VOLUME_CLAIMS, Resource
from kube.runtime.client import Selection

_ATTEMPTS = 3
_CLAIM_SECONDS = 120.0
"""Maximum seconds until an agent has restarted, or got the lead, and takes the objects of its ManagedResources."""
_UNSEEN_SECONDS = 10.0
"""The same if no agent has ever handled the ManagedResource."""
_NO_NEWS = timedelta(seconds=3)
"""Usual time that an object waits for its finalizers; reporting them earlier would cost a write each time."""
_CLAIMS_AGAIN = timedelta(seconds=1)
ClaimText = Callable[..., str]


class Removal:
    """Removal of one object; `look` is a snapshot of other ManagedResources, see `ownership`."""

    def __init__(self, resource: Resource, reference: Object, options: DeleteOptions, look: Look) -> None:
        self._resource = resource
        self._reference = reference
        self._options = options
        self._look = look
        self._live = options.live
        self._ownership = options.ownership
        self._name = key_of_reference(reference)
        self._text = resource_string_of_reference(reference)
        self._awaited_by = look.awaits(self._name, self._text)
        self._key = key_of_live(resource, reference)
        self._claims = VolumeClaims.noted(reference)
        self._is_ignored = is_truthy((reference.get("annotations") or {}).get(keys.IGNORE))
        # Ignored objects get no stamp; but an existing one without it may have been left alone on purpose.
        may_be_ours = self._is_ignored and not (options.adopt or (reference.get("annotations") or {}).get(keys.ADOPT))
        self._is_ours_unstamped = may_be_ours or self._name not in options.announced
        self._hold: Hold | None = None
        self._not_held = ""
        """Origin whose ManagedResource does not want the object."""

    async def restricted(self) -> Pending | None:
        """Return the report about an object that would be removed now, and may not be; only reads."""
        problem = self._options.owner.problem(self._resource, self._key)
        if not problem or self._is_wanted() or self._too_early() is not None or self._claimed() is not None:
            return None
        return await self._not_permitted(problem, is_restricted=True)

    async def run(self, changes: ChangeSet, *, hold: Hold | None = None) -> Pending | None:
        """Make one step towards the removal; None if it is gone, or not ours any more.

        Args: hold: reason why it is not deleted yet.

        Raises:
            KubeError, ValueError: the step failed.
        """
        self._hold = hold
        owner = self._options.owner
        if self._is_wanted():
            return None
        if pending := self._too_early():
            return pending
        try:
            self._demand(self._resource, self._key)
            return await self._remove(changes)
        except RestrictedError as error:
            return self._claimed() or await self._not_permitted(str(error), is_restricted=True)
        except Forbidden as error:
            if owner.identity.account is None:
                raise
            return await self._not_permitted(with_remedy(owner.identity.error_text(error), error))

    async def hand_over(self) -> Pending | None:
        """Give the object away if the ManagedResource of another agent has claimed it."""
        if self._is_wanted() or self._options.owner.problem(self._resource, self._key):
            return None
        live = await self._live.read(self._resource, self._key)
        if live is not None and not is_deleting(live) and self._disposition(live) is Disposition.DELETE:
            return await self._handed_over(live)
        return None

    def _is_wanted(self) -> bool:
        # Its kind may not have been served when it was listed, and its namespace was a guess.
        name = object_key(self._resource.group, self._resource.kind, self._key.namespace, self._key.name)
        return name in self._options.wanted

    def _too_early(self) -> Pending | None:
        """Return a pending removal while the object may just be moving to another ManagedResource."""
        left = self._look.left(self._unwanted_since())
        return Pending(self._name, pending_text(self._text), due=timedelta(seconds=left)) if left > 0 else None

    async def _remove(self, changes: ChangeSet) -> Pending | None:
        observed = self._live.observed(self._resource, self._key)
        if observed is not None and self._is_simple(observed):
            if observed.deleting:
                return await self._pending(since=observed.deletion_timestamp, held_by=observed.held_by)
            if not self._is_ours(observed.origin) or self._is_taken(observed.origin):
                return None
            if waiting := self._waiting():
                return waiting
            try:
                await self._delete(observed.uid, str(observed.version), changes)
            except Conflict:
                return await self._look_closer(changes)
            except NotFound:
                self._forget()
                return None
            return await self._pending()
        seen_to_go = self._live.sees(self._resource, self._key) and self._name in self._options.progress.deleted
        if observed is None and seen_to_go:
            return await self._gone()
        return await self._look_closer(changes)

    def _demand(self, resource: Resource, key: Key) -> None:
        """Check that the object may be deleted.

        Raises:
            RestrictedError: it may not.
        """
        if problem := self._options.owner.problem(resource, key):
            raise RestrictedError(problem)

    async def _not_permitted(self, reason: str, *, is_restricted: bool = False) -> Pending | None:
        """Report an object that may not be deleted, unless it is not ours: an attempt to write it may have failed."""
        live = await self._live.read(self._resource, self._key)
        stamped = live is not None and annotations(live).get(keys.ORIGIN) == self._options.owner.origin
        if live is None or not (self._is_ignored or stamped) or self._disposition(live) is not Disposition.DELETE:
            self._forget()
            return None
        return Pending(self._name, not_removed_text(self._text, reason), failed=True, is_restricted=is_restricted)

    def _unwanted_since(self) -> float:
        return self._options.progress.unwanted_since.setdefault(self._name, self._look.now)

    def _is_simple(self, observed: Observed) -> bool:
        """Whether its removal depends on the origin only."""
        owner = self._options.owner
        is_foreign = observed.origin != owner.origin
        if is_foreign and (owner.identity.account is not None or self._ownership.is_out_of_sight(observed.origin)):
            return False
        return not (observed.has_marks or self._awaited_by) and not (
            self._options.delete_volume_claims and self._resource.kind == "StatefulSet"
        )

    def _is_ours(self, origin: str) -> bool:
        if not origin:
            return self._is_ours_unstamped
        owner = self._options.owner
        return origin == owner.origin or self._ownership.holder(owner.name, origin, self._name) is None

    def _is_taken(self, origin: str) -> bool:
        """Whether another ManagedResource has it without a stamp, as ignored objects have none."""
        return not origin and self._ownership.is_applied_by_other(self._options.owner.name, self._name)

    async def _look_closer(self, changes: ChangeSet) -> Pending | None:
        """Make the step with the whole live object."""
        live: Object | None = None
        for attempt in range(_ATTEMPTS):
            # The state from the watch suffices at first: the DELETE has preconditions.
            read = self._live.read_live if attempt else self._live.read
            live = await read(self._resource, self._key)
            if live is None:
                return await self._gone()
            try:
                await self._look_for_holder(live)
                if await self._is_left(live):
                    return None
                if not is_deleting(live) and (waiting := await self._handed_over(live) or self._waiting()):
                    return waiting
                await self._delete_claims(live)
                if not is_deleting(live) or self._name not in self._options.progress.deleted:
                    await self._delete(uid(live), metadata(live)["resourceVersion"], changes, live)
            except NotFound:
                return await self._gone()
            except Conflict:
                if attempt == _ATTEMPTS - 1:
                    raise
                continue
            break
        if live is not None and must_be_finalized(live, now=self._options.now):
            await self._finalize(live)
        if live is None or not is_deleting(live):
            return await self._pending(due=self._due(live))
        since = metadata(live)["deletionTimestamp"]
        return await self._pending(since=since, held_by=held_by(live), due=self._due(live))

    async def _look_for_holder(self, live: Object) -> None:
        """Look for an invisible ManagedResource that the object names as its origin."""
        origin = annotations(live).get(keys.ORIGIN) or ""
        if not self._ownership.is_out_of_sight(origin) or self._disposition(live) is not Disposition.HANDED_OVER:
            return
        if not await self._ownership.may_be_held_out_of_sight(origin, self._name):
            self._not_held = origin
        elif self._ownership.is_of_other_cluster(origin):
            self._options.progress.left[self._name] = left_to_unknown_text(self._text, origin)

    async def _is_left(self, live: Object) -> bool:
        """Whether the object stays; if so, remove our obsolete annotations."""
        if (found := self._disposition(live)) is Disposition.DELETE:
            return not is_deleting(live) and self._is_taken(annotations(live).get(keys.ORIGIN) or "")
        if (mark := self._mark_of_others(found)) and annotations(live).get(keys.ORIGIN) == self._options.owner.origin:
            self._options.progress.left[self._name] = kept_by_live_text(self._text, mark)
        notes, origin = annotations(live), self._options.owner.origin
        if notes.get(keys.CLAIMED_BY) == origin:
            await self._annotate(live, {keys.CLAIMED_BY: None})
        elif found is Disposition.KEEP and notes.get(keys.ORIGIN) == origin and keys.DESCRIPTION in notes:
            with contextlib.suppress(Forbidden):
                await self._annotate(live, {keys.DESCRIPTION: None})
        self._forget()
        return True

    def _mark_of_others(self, found: Disposition) -> str:
        """Return the mark that keeps the object, and was not in the manifest; empty if there is none."""
        if found is Disposition.KEEP and keys.KEEP_OBJECT not in (self._reference.get("annotations") or {}):
            return f"the annotation {keys.KEEP_OBJECT}"
        if found is Disposition.COLLECTED and keys.GARBAGE_COLLECTABLE not in (self._reference.get("labels") or {}):
            return f"the label {keys.GARBAGE_COLLECTABLE}"
        return ""

    async def _handed_over(self, live: Object) -> Pending | None:
        """Return a pending removal while a ManagedResource of another agent has to take the object; see `ownership`."""
        claimant = annotations(live).get(keys.CLAIMED_BY)
        if not claimant:
            return None
        if not self._is_given_away(live):
            own, name = self._options.owner.name, self._name
            if not await self._ownership.is_claimed(own, claimant, name, resource=self._text):
                return None
            if self._claimed_for() >= _CLAIM_SECONDS:
                return None
            await self._annotate(live, {keys.ORIGIN: claimant})
            self._forget()
        return self._left_to(claimant, handed_over_text)

    def _is_given_away(self, live: Object) -> bool:
        """Whether its holder has stamped it with the claimant, which has not written to it since."""
        claimant, origin = annotations(live).get(keys.CLAIMED_BY), annotations(live).get(keys.ORIGIN)
        return bool(claimant) and claimant == origin != self._options.owner.origin

    async def _annotate(self, live: Object, notes: Mapping[str, str | None]) -> None:
        await self._live.annotate(self._resource, live, notes, client=self._options.client)

    def _disposition(self, live: Object) -> Disposition:
        owner = self._options.owner
        return disposition(
            live,
            origin=owner.origin,
            held_by_other=lambda origin: (
                origin != self._not_held
                and not self._is_given_away(live)
                and self._ownership.is_held(owner.name, live, self._name)
            ),
            garbage_collector=self._options.garbage_collector,
            is_ours_unstamped=self._is_ours_unstamped,
        )

    def _forget(self) -> None:
        self._live.forget(self._name)

    async def _delete(self, uid_: str, version: str, changes: ChangeSet, live: Object | None = None) -> None:
        subject = live or self._resource.type_meta
        await self._options.client.delete(
            self._resource,
            self._key,
            propagation=propagation_policy(subject) or "",
            uid=uid_,
            resource_version=version,
        )
        if self._name not in self._options.progress.deleted:
            changes.note(Action.DELETED, self._reference)
        self._options.progress.deleted.add(self._name)

    async def _gone(self) -> Pending | None:
        """Handle the absence of the object; its volume claims may still exist."""
        self._forget()
        if self._options.delete_volume_claims and self._claims is not None:
            # Some may have been recreated meanwhile.
            self._demand(VOLUME_CLAIMS, Key(self._key.namespace, ""))
            if await self._delete_all(self._claims):
                return await self._pending(due=_CLAIMS_AGAIN)
        return None

    async def _delete_claims(self, live: Object) -> None:
        claims = VolumeClaims.of(live) if self._options.delete_volume_claims else None
        if claims is None:
            return
        self._demand(VOLUME_CLAIMS, Key(self._key.namespace, ""))
        if claims != self._claims:
            await self._options.note_claims(self._name, claims)
            self._claims = claims
        await self._delete_all(claims)

    async def _delete_all(self, claims: VolumeClaims) -> bool:
        """Delete the claims of this StatefulSet; return whether there were any."""
        selection = Selection(namespace=self._key.namespace, label_selector=claims.selector)
        found = [
            metadata(claim)["name"]
            for claim in await self._live.client.list(VOLUME_CLAIMS, selection)
            if not is_deleting(claim) and claims.has(metadata(claim)["name"], stateful_set=self._key.name)
        ]
        for name in found:
            # One by one, with only the right to delete collections.
            only = replace(selection, field_selector=f"metadata.name={name}")
            await self._options.client.delete_collection(VOLUME_CLAIMS, only)
        return bool(found)

    async def _finalize(self, live: Object) -> None:
        """Remove the finalizers of an object that has waited for them long enough."""
        with contextlib.suppress(NotFound):
            if finalizers(live):
                version = {"uid": uid(live)}
                live = await self._options.client.patch(
                    self._resource,
                    self._key,
                    {"metadata": {"finalizers": None, **version}},
                )
            if is_namespace(live):
                await self._options.client.replace(self._resource, without_finalizers(live), subresource="finalize")

    def _due(self, live: Object | None) -> timedelta | None:
        """Return the time until the finalizers may be removed; None if they may never be."""
        after = annotations(live or {}).get(keys.FINALIZE_DELETION_AFTER)
        if not after:
            return None
        since = metadata(live or {}).get("deletionTimestamp")
        begun = parse_time(since) if since else self._options.now
        return max(begun + timedelta(seconds=parse_duration(after)) - self._options.now, timedelta(seconds=1))

    def _waiting(self) -> Pending | None:
        """Return a pending removal that waits for others before the deletion."""
        return self._claimed() or (self._kept(self._hold) if self._hold is not None else None)

    def _claimed(self) -> Pending | None:
        """Return a pending removal of an object that another ManagedResource may be about to take over."""
        if claimant := self._ownership.claimant(self._options.owner.name, self._name):
            return self._left_to(claimant, about_to_take_text)
        if self._awaited_by is None:
            return None
        limit = _UNSEEN_SECONDS if self._look.is_unseen(self._awaited_by) else _CLAIM_SECONDS
        return self._left_to(self._awaited_by, about_to_take_text, limit=limit)

    def _left_to(self, claimant: object, text: ClaimText, *, limit: float = _CLAIM_SECONDS) -> Pending | None:
        """Return the pending removal of an object that is left to a claimant; None once the limit has passed."""
        waited = self._claimed_for()
        if waited >= limit:
            return None
        reason = pending_text(self._text, reason=text(str(claimant), timeout=format_duration(limit)))
        return Pending(self._name, reason, due=_CLAIMS_AGAIN, is_held_back=waited >= _NO_NEWS.total_seconds())

    def _claimed_for(self) -> float:
        """Seconds since the first claim."""
        return self._look.now - self._options.progress.claimed_since.setdefault(self._name, self._look.now)

    def _kept(self, hold: Hold) -> Pending:
        """Return a pending removal that waits for others; it has failed if they have."""
        progress, now = self._options.progress, self._look.now
        lasts = now - progress.unwanted_since.get(self._name, now) >= _NO_NEWS.total_seconds()
        progress.kept_at[self._name] = now
        is_workload = runs_pods(self._reference)
        reason = "; ".join(filter(None, (hold.text, hold.details if is_workload else "")))
        is_news = is_workload and lasts and bool(hold.details)
        text = pending_text(self._text, reason=reason)
        return Pending(self._name, text, failed=hold.failed, due=hold.left, is_held_back=is_news)

    async def _pending(self, *, since: str = "", held_by: str = "", due: timedelta | None = None) -> Pending:
        """Return the pending removal.

        Args: since: its deletionTimestamp; empty if it has none. held_by: its remaining finalizers or conditions.
        """
        reason = events = ""
        if since and self._options.now - parse_time(since) >= _NO_NEWS:
            reason = held_by
        if since and self._resource.kind == "Service" and not self._resource.group:
            events = await self._options.service_warnings(self._key)
        return Pending(self._name, pending_text(self._text, reason=reason, events=events), due=due)


async def attempt(
    reference: Object, options: DeleteOptions, look: Look, step: Callable[[Removal], Awaitable[Pending | None]]
) -> Pending | None:
    """Make a step of the removal of an object, if its kind still exists."""
    if not reference.get("name"):
        return None  # it was never applied
    target = options.live
    try:
        resource = await target.resource_of(reference)
        if resource.namespaced and not reference.get("namespace"):
            # Its kind had no namespaces. To change that, its definition was deleted, and all objects with it.
            target.forget(key_of_reference(reference))
            return None
        try:
            return await step(Removal(resource, reference, options, look))
        except KindNotServed as error:
            # The known kind was out of date; it may have another version, or none any more.
            target.discovery.invalidate(group_of(error.api_version))
            return await step(Removal(await target.resource_of(reference), reference, options, look))
    except KindGone:
        target.forget(key_of_reference(reference))
        return None
    except (KubeError, ValueError) as error:
        if isinstance(error, Forbidden) and await _was_never_created(reference, options):
            target.forget(key_of_reference(reference))
            return None
        if isinstance(error, KindUnavailable | KindNotServed):
            options.progress.unserved.add(group_of(reference.get("apiVersion") or ""))
        return failed(reference, error)


async def _was_never_created(reference: Object, options: DeleteOptions) -> bool:
    """Whether the object may not be read, which has to happen before its creation."""
    if key_of_reference(reference) not in options.progress.never_read:
        return False
    try:
        resource = await options.live.resource_of(reference)
        await options.live.read_live(resource, key_of_live(resource, reference))
    except Forbidden:
        return True
    return False


def failed(reference: Object, error: Exception) -> Pending:
    text = pending_text(resource_string_of_reference(reference), reason=with_remedy(str(error), error))
    return Pending(key_of_reference(reference), text, failed=True)
