"""Removing the objects that a ManagedResource lists and no longer wants, and releasing those in mode Ignore.

Each object is removed on its own. It is pending until it is gone, which the watch of its kind tells; a DELETE is sent
once, with uid and resourceVersion as preconditions, so it hits exactly the object that was judged.

Who moves an object to another ManagedResource writes two Secrets, one after the other, and the first one to be seen may
be the one that drops the object. So nothing is deleted before the other change had a moment to arrive.
"""

import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from agent.changes import Action, Note
from agent.managed_resource import keys
from agent.managed_resource.messages import not_removed_text, pending_text
from agent.managed_resource.references import key_of_reference, resource_string_of_reference
from agent.managed_resource.removal import (
    Verdict,
    is_namespace,
    must_be_finalized,
    propagation_policy,
    verdict,
    without_finalizers,
)
from agent.managed_resource.restrictions import Mandate, Refusal, RestrictedError
from agent.managed_resource.target import Observed, Target
from agent.managed_resource.volume_claims import VolumeClaims
from kube.client import Client, Selection
from kube.errors import Conflict, Forbidden, KindNotServed, KubeError, NotFound
from kube.objects import (
    Key,
    Object,
    annotations,
    finalizers,
    is_deleting,
    is_truthy,
    metadata,
    parse_duration,
    parse_time,
    uid,
)
from kube.resources import Resource

_ATTEMPTS = 3
_HAND_OVER_SECONDS = 0.5
_CLAIMS_AGAIN = timedelta(seconds=1)
_VOLUME_CLAIMS = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True)


@dataclass(frozen=True, slots=True)
class Leaving:
    """What holds for all removals of one pass."""

    origin: str
    mandate: Mandate
    client: Client
    """By which is written, as the mandate says."""
    refusal: Refusal
    delete_volume_claims: bool
    garbage_collector: bool
    announced: frozenset[str]
    """Object keys of what was listed as about to be created, and by no complete pass since."""
    held_by_other: Callable[[str, str], bool]
    """Whether the origin is that of another ManagedResource that has the object of this key and wants to keep it."""
    wanted_by_other: Callable[[str], bool]
    """Whether another ManagedResource asks for the object of this key."""
    unwanted_since: dict[str, float]
    """Object keys, and when it was first seen that they are not wanted, monotonic; kept up to date here."""
    deleted: set[str]
    """Object keys for which this process has sent a DELETE; kept up to date here."""
    now: datetime
    service_warnings: Callable[[Key], Awaitable[str]]
    note: Note
    """Remembers what was done."""
    note_claims: Callable[[str, VolumeClaims], Awaitable[None]]
    """Notes the claims in the reference of this object key; see `volume_claims`."""


@dataclass(frozen=True, slots=True)
class Pending:
    """An object that is not gone yet."""

    name: str
    text: str
    failed: bool = False
    """The last attempt to remove it ended in an error."""
    due: timedelta | None = None
    """When to look again, if time alone will change something."""
    is_refused: bool = False
    """By a restriction: nothing changes until the configuration or the ManagedResource does."""


async def remove(target: Target, reference: Object, leaving: Leaving) -> Pending | None:
    """One step towards the removal of an object; None if it is gone, or not ours any more."""
    name = key_of_reference(reference)
    text = resource_string_of_reference(reference)
    if not reference.get("name"):
        return None  # it was never applied
    try:
        resource = await target.discovery.find(reference.get("apiVersion") or "", reference.get("kind") or "")
        return await _Removal(target, resource, reference, leaving).run()
    except KindNotServed:
        target.forget(name)
        return None
    except (KubeError, ValueError) as error:
        return Pending(name, pending_text(text, error=str(error)), failed=True)


class _Removal:
    def __init__(self, target: Target, resource: Resource, reference: Object, leaving: Leaving) -> None:
        self._target = target
        self._resource = resource
        self._reference = reference
        self._leaving = leaving
        self._name = key_of_reference(reference)
        self._text = resource_string_of_reference(reference)
        namespace = reference.get("namespace") or "" if resource.namespaced else ""
        self._key = Key(namespace, reference.get("name") or "")
        self._claims = VolumeClaims.noted(reference)
        self._is_ignored = is_truthy((reference.get("annotations") or {}).get(keys.IGNORE))
        self._is_ours_unstamped = self._is_ignored or self._name not in leaving.announced

    async def run(self) -> Pending | None:
        try:
            return await self._step()
        except RestrictedError as error:
            return await self._not_permitted(str(error), is_refused=True)
        except Forbidden as error:
            if self._leaving.mandate.account is None:
                raise
            return await self._not_permitted(self._leaving.mandate.told(error))

    async def _step(self) -> Pending | None:
        if self._leaving.wanted_by_other(self._name):
            return None
        if (left := self._until_removal()) > 0:
            return Pending(self._name, pending_text(self._text), due=timedelta(seconds=left))
        self._demand(self._resource, self._key)
        observed = self._target.observed(self._resource, self._key)
        if observed is not None and self._is_simple(observed):
            if observed.deleting:
                return await self._pending(waiting=True)
            if not self._is_ours(observed.origin):
                return None
            try:
                await self._delete(observed.uid, str(observed.version))
            except Conflict:
                return await self._look_closer()
            except NotFound:
                self._forget()
                return None
            return await self._pending()
        seen_to_go = self._target.sees(self._resource, self._key) and self._name in self._leaving.deleted
        if observed is None and seen_to_go:
            return await self._gone()
        return await self._look_closer()

    def _demand(self, resource: Resource, key: Key) -> None:
        """Raises RestrictedError for what may not be deleted."""
        if refusal := self._leaving.refusal(resource, key):
            raise RestrictedError(refusal)

    async def _not_permitted(self, reason: str, *, is_refused: bool = False) -> Pending | None:
        """What we may not delete and did not write is none of our business: an attempt to write it may have failed."""
        live = await self._target.read(self._resource, self._key)
        stamped = live is not None and annotations(live).get(keys.ORIGIN) == self._leaving.origin
        if live is None or not (self._is_ignored or stamped) or self._verdict(live) is not Verdict.DELETE:
            self._forget()
            return None
        return Pending(self._name, not_removed_text(self._text, reason), failed=True, is_refused=is_refused)

    def _until_removal(self) -> float:
        """Seconds in which another ManagedResource may still ask for the object."""
        now = time.monotonic()
        return self._leaving.unwanted_since.setdefault(self._name, now) + _HAND_OVER_SECONDS - now

    def _is_simple(self, observed: Observed) -> bool:
        """Nothing but its origin has a say in its removal."""
        if self._leaving.mandate.account is not None and observed.origin != self._leaving.origin:
            return False
        return not observed.has_marks and not (
            self._leaving.delete_volume_claims and self._resource.kind == "StatefulSet"
        )

    def _is_ours(self, origin: str) -> bool:
        if not origin:
            return self._is_ours_unstamped
        return origin == self._leaving.origin or not self._leaving.held_by_other(origin, self._name)

    async def _look_closer(self) -> Pending | None:
        """With the whole live object at hand."""
        leaving = self._leaving
        live: Object | None = None
        for attempt in range(_ATTEMPTS):
            # What the watch told is good enough to begin with: the preconditions of the DELETE see to the rest.
            read = self._target.read_live if attempt else self._target.read
            live = await read(self._resource, self._key)
            if live is None:
                return await self._gone()
            if self._verdict(live) is not Verdict.DELETE:
                self._forget()
                return None
            try:
                await self._delete_claims(live)
                if not is_deleting(live) or self._name not in leaving.deleted:
                    await self._delete(uid(live), metadata(live)["resourceVersion"], live)
            except NotFound:
                return await self._gone()
            except Conflict:
                if attempt == _ATTEMPTS - 1:
                    raise
                continue
            break
        if live is not None and must_be_finalized(live, now=leaving.now):
            await self._finalize(live)
        return await self._pending(waiting=live is not None and is_deleting(live), due=self._due(live))

    def _verdict(self, live: Object) -> Verdict:
        return verdict(
            live,
            origin=self._leaving.origin,
            held_by_other=lambda origin: self._leaving.held_by_other(origin, self._name),
            garbage_collector=self._leaving.garbage_collector,
            is_ours_unstamped=self._is_ours_unstamped,
        )

    def _forget(self) -> None:
        self._target.forget(self._name)

    async def _delete(self, uid_: str, version: str, live: Object | None = None) -> None:
        subject = live or {"apiVersion": self._resource.api_version, "kind": self._resource.kind}
        await self._leaving.client.delete(
            self._resource,
            self._key.name,
            namespace=self._key.namespace,
            propagation=propagation_policy(subject) or "",
            uid=uid_,
            resource_version=version,
        )
        if self._name not in self._leaving.deleted:
            self._leaving.note(Action.DELETED, self._reference)
        self._leaving.deleted.add(self._name)

    async def _gone(self) -> Pending | None:
        """The object is; its volume claims may not be."""
        self._forget()
        if self._leaving.delete_volume_claims and await self._delete_leftover_claims():
            return await self._pending(due=_CLAIMS_AGAIN)
        return None

    async def _delete_claims(self, live: Object) -> None:
        claims = VolumeClaims.of(live) if self._leaving.delete_volume_claims else None
        if claims is None:
            return
        self._demand(_VOLUME_CLAIMS, Key(self._key.namespace, ""))
        if claims != self._claims:
            await self._leaving.note_claims(self._name, claims)
            self._claims = claims
        selection = Selection(namespace=self._key.namespace, label_selector=claims.selector)
        if await self._target.client.list(_VOLUME_CLAIMS, selection):
            await self._leaving.client.delete_collection(_VOLUME_CLAIMS, selection)

    async def _delete_leftover_claims(self) -> bool:
        """What was made anew meanwhile; whether there was any."""
        if self._claims is None:
            return False
        self._demand(_VOLUME_CLAIMS, Key(self._key.namespace, ""))
        selection = Selection(namespace=self._key.namespace, label_selector=self._claims.selector)
        leftover = [
            metadata(claim)["name"]
            for claim in await self._target.client.list(_VOLUME_CLAIMS, selection)
            if not is_deleting(claim) and self._claims.has(metadata(claim)["name"], stateful_set=self._key.name)
        ]
        for name in leftover:
            # One by one, with no right but that to delete collections.
            only = replace(selection, field_selector=f"metadata.name={name}")
            await self._leaving.client.delete_collection(_VOLUME_CLAIMS, only)
        return bool(leftover)

    async def _finalize(self, live: Object) -> None:
        """Take the finalizers away from what has waited for them long enough."""
        with contextlib.suppress(NotFound):
            if finalizers(live):
                version = {"uid": uid(live)}
                live = await self._leaving.client.patch(
                    self._resource,
                    self._key.name,
                    {"metadata": {"finalizers": None, **version}},
                    namespace=self._key.namespace,
                )
            if is_namespace(live):
                await self._leaving.client.replace(self._resource, without_finalizers(live), subresource="finalize")

    def _due(self, live: Object | None) -> timedelta | None:
        """Until the finalizers may be taken away."""
        after = annotations(live or {}).get(keys.FINALIZE_DELETION_AFTER)
        if not after:
            return None
        since = metadata(live or {}).get("deletionTimestamp")
        begun = parse_time(since) if since else self._leaving.now
        return max(begun + timedelta(seconds=parse_duration(after)) - self._leaving.now, timedelta(seconds=1))

    async def _pending(self, *, waiting: bool = False, due: timedelta | None = None) -> Pending:
        events = ""
        if waiting and self._resource.kind == "Service" and not self._resource.group:
            events = await self._leaving.service_warnings(self._key)
        return Pending(self._name, pending_text(self._text, events=events), due=due)


async def release(target: Target, reference: Object, leaving: Leaving) -> str | None:
    """Take our stamps off an object that is to be left alone; the text of an error if that failed."""
    text = resource_string_of_reference(reference)
    doing = "getting"
    try:
        resource = await target.discovery.find(reference.get("apiVersion") or "", reference.get("kind") or "")
        key = Key(reference.get("namespace") or "" if resource.namespaced else "", reference.get("name") or "")
        live = await target.read(resource, key)
        if live is None or annotations(live).get(keys.ORIGIN) != leaving.origin:
            return None
        doing = "patching"
        if refusal := leaving.refusal(resource, key):
            raise RestrictedError(refusal)
        stamps = {"metadata": {"annotations": {keys.ORIGIN: None, keys.DESCRIPTION: None}}}
        await leaving.client.patch(resource, key.name, stamps, namespace=key.namespace)
        target.forget(key_of_reference(reference))
    except (KindNotServed, NotFound):
        return None
    except (KubeError, RestrictedError) as error:
        return f'error {doing} object "{text}": {leaving.mandate.told(error)}'
    return None
