"""History of the applied versions of ManagedResources; see `gardener.managed_resource.history`.

A pass that has applied everything stores the revision before it reports success: the same write of the status lists the
revision. A revision that was not listed since the process ended is found again by its name and content. The metadata of
all revisions are watched from the first one on, so the steady state needs no requests, and the newest revision shows
whether a version is missing: also one that another process applied and did not store. The data of Secrets are read when
they are stored, and never remembered.
"""

import asyncio
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from agent.resource_manager.managed_resource.source import Source
from gardener import keys
from gardener.managed_resource.history import (
    REVISIONS,
    Contents,
    Listed,
    Revision,
    is_same,
    listed_in,
    packed,
    revision_secret,
    selector_of,
    surplus,
    trusted,
)
from gardener.managed_resource.history_limit import limit_of
from gardener.managed_resource.plan import Plan, data_of
from kube.errors import Conflict, KubeError, NotFound
from kube.objects import Key, Object, annotations, key, labels, resource_version, uid
from kube.repeats import Repeats
from kube.resources import SECRETS
from kube.runtime.cache import Caches, Store, View
from kube.runtime.client import Form
from kube.runtime.controller import ReconcileError
from kube.runtime.events import EventRecorder
from kube.runtime.threads import OBJECTS

HISTORY_FAILED, NOT_KEPT = "HistoryFailed", "VersionNotKept"
"""Reasons of Events."""
_SYNC_SECONDS = 20.0
_NAMES = 10
"""Number of names that are tried, one number after the other, before one that cannot have been taken on purpose."""
_NOT_STORED = (
    f"the CustomResourceDefinition of ManagedResources has no field status.{REVISIONS}, which distinguishes genuine "
    "versions from forged ones; apply the CustomResourceDefinition of this release"
)
_BY_NAME = "name"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Kept:
    revision: Revision
    selector: str


def _project(secret: Object) -> _Kept:
    return _Kept(Revision.of(secret), labels(secret).get(keys.HISTORY_OF) or "")


def _names(kept: _Kept) -> list[Key]:
    return [Key(kept.revision.secret.namespace, kept.selector)]


_VIEW = View(
    SECRETS,
    _project,
    form=Form.METADATA,
    label_selector=keys.HISTORY_OF,
    field_selector=f"type={keys.REVISION_TYPE}",
    indexes=((_BY_NAME, _names),),
    streams=True,
)


@dataclass(eq=False, kw_only=True, slots=True)
class History:
    source: Source
    caches: Caches
    """Caches of the source cluster."""
    recorder: EventRecorder
    limit: int
    """Number of revisions for ManagedResources that do not specify it."""
    _store: Store[_Kept] | None = field(default=None, init=False)
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    """Contents may be large."""
    _reported: Repeats[str] = field(default_factory=Repeats, init=False)
    """Failures that were reported lately."""
    _written: dict[Key, list[Listed]] = field(default_factory=dict, init=False)
    """Revisions last written to the status."""

    async def keep(self, managed_resource: Object, plan: Plan) -> Mapping[str, object]:
        """Store the version that was just applied, unless it is the newest revision, and prune obsolete ones.

        Returns: fields to write to the status.

        Raises:
            ReconcileError: that failed, and was reported.
        """
        limit, _ = limit_of(managed_resource, default=self.limit)
        if not limit:
            return {}
        listed = self._known(managed_resource)
        try:
            namesakes = await self._namesakes(managed_resource)
            revisions, kept = trusted(namesakes, managed_resource, listed), listed
            if not revisions or revisions[-1].digest != plan.checksum:
                number = max((each.number for each in listed), default=0) + 1
                for revision, secret in await self._add(managed_resource, plan, number):
                    revisions, kept = [*revisions, revision], [*kept, Listed.of(revision, secret)]
            for each in surplus(revisions, limit):
                await self._prune(each)
        except KubeError as error:
            text = f"the applied version could not be kept in the history: {error}"
            self._report(managed_resource, HISTORY_FAILED, text)
            raise ReconcileError(text) from error
        present = {each.secret.name for each in revisions[-limit:]}
        kept = [each for each in kept if each.secret in present]
        self._written[key(managed_resource)] = kept
        if kept == listed_in(managed_resource):
            self._reported.forget(key(managed_resource))
            return {}
        return {REVISIONS: [each.entry() for each in kept]}

    def _known(self, managed_resource: Object) -> list[Listed]:
        """Return the revisions that its status lists, or would list if the field was stored."""
        status = managed_resource.get("status") or {}
        written = self._written.get(key(managed_resource))
        if written and REVISIONS not in status and status.get("secretsDataChecksum") == written[-1].checksum:
            self._report(managed_resource, HISTORY_FAILED, _NOT_STORED)
            return written
        return listed_in(managed_resource)

    def forget(self, name: Key) -> None:
        """Forget a deleted ManagedResource; its revisions are deleted with their owner."""
        self._reported.forget(name)
        self._written.pop(name, None)

    async def close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            await self.caches.release(store.view)

    async def _namesakes(self, managed_resource: Object) -> list[Revision]:
        """Return all apparent revisions of ManagedResources of this name, whichever client created them."""
        if self._store is None:
            self._store = self.caches.acquire(_VIEW)
        if not self._store.synced.is_set():
            await self.caches.tried(_VIEW, timeout=_SYNC_SECONDS)
        if not self._store.synced.is_set():
            raise KubeError("the Secrets of the history have not been listed yet")
        own = key(managed_resource)
        found = self._store.values_by_index(_BY_NAME, Key(own.namespace, selector_of(own.name)))
        return [kept.revision for kept in found]

    async def _add(self, managed_resource: Object, plan: Plan, number: int) -> Sequence[tuple[Revision, Object]]:
        """Return the new revision and its Secret; empty if a newer version is about to be applied."""
        async with self._one_at_a_time:
            contents = await self._contents(key(managed_resource).namespace, plan)
            if contents is None:
                return ()
            names = [name for name, _ in contents]
            value = await OBJECTS.compute(packed, contents)
            del contents
        for attempt, mark in _attempts():
            secret = revision_secret(
                managed_resource, number=number + attempt, digest=plan.checksum, names=names, value=value, mark=mark
            )
            if (written := await self._create(secret)) is not None:
                break
        else:
            return ()
        revision = Revision.of(written)
        if self._store is not None:
            self._store.observe(written)
        if reason := annotations(written).get(keys.NOT_KEPT):
            self._report(managed_resource, NOT_KEPT, f"revision {revision.number} has no content: {reason}")
        log.info("Stored an applied version", revision=revision.number, secret=str(key(written)))
        return ((revision, written),)

    async def _create(self, secret: Object) -> Object | None:
        """Create the Secret; None if the name belongs to another Secret."""
        client, name = self.source.client, key(secret)
        if created := await client.create_if_missing(SECRETS, secret):
            return created
        found = await client.find(SECRETS, name)
        return found if found is not None and is_same(found, secret) else None

    async def _contents(self, namespace: str, plan: Plan) -> Contents | None:
        """Return the data that the plan was made from; None if they have been replaced meanwhile.

        Raises:
            KubeError: a Secret cannot be read.
        """
        contents = []
        for name, own_uid, version in dict.fromkeys(plan.basis.secrets):
            try:
                secret = await self.source.read_secret(Key(namespace, name))
            except NotFound:
                return None
            if (uid(secret), resource_version(secret)) != (own_uid, version):
                return None
            contents.append((name, data_of(secret)[1]))
        return contents

    async def _prune(self, revision: Revision) -> None:
        """Delete the Secret of a revision."""
        try:
            await self.source.client.delete_if_exists(
                SECRETS,
                revision.secret,
                uid=revision.uid,
                resource_version=str(revision.resource_version),
            )
        except Conflict:
            return  # it was labelled: the watch delivers its version, and the next pass prunes it

    def _report(self, managed_resource: Object, reason: str, text: str) -> None:
        if self._reported.news(key(managed_resource), [text]):
            log.warning("The history is not complete", error=text)
            self.recorder.event(managed_resource, "Warning", reason, text)


def _attempts() -> Iterator[tuple[int, str]]:
    """Yield suffixes of the number, and of the name, until a name is free."""
    yield from ((attempt, "") for attempt in range(_NAMES))
    yield _NAMES, secrets.token_hex(4)
