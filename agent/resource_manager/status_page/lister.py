"""Data of the status page, all from existing memory of the agent.

Every replica knows the ManagedResources and the existing Secrets. Only the leader knows, from its control loops, the
health of objects, the Secrets that they come from, and recent changes.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from agent.resource_manager.common.recent_changes import RecentChanges
from agent.resource_manager.health.objects import NotKnown
from gardener.conditions import RESOURCES_HEALTHY
from gardener.health.findings import Finding, Reference, missing
from gardener.managed_resource.references import key_of_reference, listed_in
from gardener.overview.objects import FINISHED, Health, HealthStatus, waiting_for_others
from gardener.responsibility import belongs_to_class
from kube.objects import Key, Object, condition, key
from kube.runtime.cache import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderState:
    """State of the control loops; the functions send no request."""

    secrets_of_objects: Callable[[Key], Mapping[str, str]]
    manifest_of: Callable[[Key, str], Object | None]
    is_being_deleted: Callable[[Object], bool]
    has_finished: Callable[[Object], bool]
    """Whether it is a Job that has finished and was therefore removed."""
    unhealthy: Callable[[Reference], Finding | None]
    progressing: Callable[[Reference], Finding | None]
    manual: Callable[[Reference], str]
    """Manual step that the roll-out of an object requires."""
    pods_of: Callable[[Reference], int | None]


@dataclass(frozen=True, slots=True)
class SeenObject:
    reference: Object
    secret: str
    """Name of the Secret that it comes from; empty if none or unknown."""
    status: HealthStatus | None
    """None if unknown here."""
    pods: int | None = None


@dataclass(eq=False, kw_only=True, slots=True)
class Lister:
    managed_resources: Store[Object]
    secrets: Store[Any]
    changes: RecentChanges
    resource_class: str
    lease: str
    """Name of the leader's Lease for users; empty without leader election."""
    _leader: LeaderState | None = field(default=None, init=False)

    def lead(self, leading: LeaderState) -> None:
        """Note that the control loops are available from now on."""
        self._leader = leading

    @property
    def leads(self) -> bool:
        return self._leader is not None

    @property
    def is_complete(self) -> bool:
        """Whether all ManagedResources were listed."""
        return self.managed_resources.synced.is_set()

    def is_ours(self, managed_resource: Object) -> bool:
        return belongs_to_class(managed_resource, resource_class=self.resource_class)

    def has_secret(self, secret: Key) -> bool:
        return self.secrets.get(secret) is not None or not self.secrets.synced.is_set()

    def knows_secrets(self, managed_resource: Object) -> bool:
        """Whether the Secrets that its objects come from are known."""
        return self._leader is not None and bool(self._leader.secrets_of_objects(key(managed_resource)))

    def objects_of(self, managed_resource: Object, *, limit: int) -> Sequence[SeenObject]:
        """Return the first of its listed objects."""
        leading = self._leader if self.is_ours(managed_resource) else None
        secrets = leading.secrets_of_objects(key(managed_resource)) if leading is not None else {}
        return [
            SeenObject(
                reference,
                secrets.get(key_of_reference(reference), ""),
                self.health_of(managed_resource, reference),
                _pods(reference, leading) if leading is not None else None,
            )
            for reference in listed_in(managed_resource)[:limit]
        ]

    def health_of(self, managed_resource: Object, reference: Object) -> HealthStatus | None:
        """Return the health of a listed object; None if unknown here."""
        leading = self._leader if self.is_ours(managed_resource) else None
        return _health_status(managed_resource, reference, leading) if leading is not None else None

    def manifest_of(self, managed_resource: Object, reference: Object) -> Object | None:
        """Return the manifest of a listed object; None if unknown here."""
        if self._leader is None:
            return None
        return self._leader.manifest_of(key(managed_resource), key_of_reference(reference))


def _health_status(managed_resource: Object, reference: Object, leading: LeaderState) -> HealthStatus:
    named = Reference.of(reference)
    if leading.is_being_deleted(reference):
        return HealthStatus(Health.DELETING)
    if kept := waiting_for_others(managed_resource, reference):
        return kept
    if leading.has_finished(reference):
        return _finished(named, leading)
    message = (condition(managed_resource, RESOURCES_HEALTHY) or {}).get("message") or ""
    if message.startswith(missing(named).message):
        return HealthStatus(Health.MISSING)
    try:
        if finding := leading.unhealthy(named):
            return HealthStatus(Health.UNHEALTHY, _what(finding))
        if finding := leading.progressing(named):
            return HealthStatus(Health.PROGRESSING, _what(finding))
    except NotKnown:
        return HealthStatus(
            Health.UNKNOWN, "not seen by watches: it is missing, not processed yet, or lacks the label of the agent"
        )
    return HealthStatus(Health.HEALTHY, leading.manual(named).removeprefix(f"{named.kind} {named}: "))


def _finished(named: Reference, leading: LeaderState) -> HealthStatus:
    """Return the health of a Job that is gone: it may have failed."""
    with suppress(NotKnown):
        if finding := leading.unhealthy(named):
            return HealthStatus(Health.UNHEALTHY, _what(finding))
    return FINISHED


def _what(finding: Finding) -> str:
    """Return the message without the name of the object, which is shown next to it."""
    name = f"{finding.reference.kind} {finding.reference}"
    return finding.message.removeprefix(f"{name} is unhealthy: ").removeprefix(f"{name} is progressing: ")


def _pods(reference: Object, leading: LeaderState) -> int | None:
    try:
        return leading.pods_of(Reference.of(reference))
    except NotKnown:
        return None
