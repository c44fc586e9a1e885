"""What the status page can show, all of it from memory that the agent holds anyway.

Every replica knows the ManagedResources, and which Secrets there are. How objects fare, which Secret they come from and
what was done to them only the leader knows, from its control loops.
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
    """What the control loops know; the functions send no request."""

    secrets_of_objects: Callable[[Key], Mapping[str, str]]
    manifest_of: Callable[[Key, str], Object | None]
    is_being_deleted: Callable[[Object], bool]
    has_finished: Callable[[Object], bool]
    """Whether it is a Job that has finished and was removed for that."""
    unhealthy: Callable[[Reference], Finding | None]
    progressing: Callable[[Reference], Finding | None]
    manual: Callable[[Reference], str]
    """What the roll-out of an object leaves to a person."""
    pods_of: Callable[[Reference], int | None]


@dataclass(frozen=True, slots=True)
class SeenObject:
    reference: Object
    secret: str
    """The name of the Secret that it comes from; empty: none, or it is not known."""
    status: HealthStatus | None
    """None: nothing is known here."""
    pods: int | None = None


@dataclass(eq=False, kw_only=True, slots=True)
class Lister:
    managed_resources: Store[Object]
    secrets: Store[Any]
    changes: RecentChanges
    resource_class: str
    lease: str
    """Of the leader, as people name it; empty: there is no election."""
    _leader: LeaderState | None = field(default=None, init=False)

    def lead(self, leading: LeaderState) -> None:
        """From now on the control loops can be asked."""
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
        """Whether it is known which objects come from which Secret."""
        return self._leader is not None and bool(self._leader.secrets_of_objects(key(managed_resource)))

    def objects_of(self, managed_resource: Object, *, limit: int) -> Sequence[SeenObject]:
        """The first of those that it lists."""
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
        """Of an object that it lists; None: nothing is known here."""
        leading = self._leader if self.is_ours(managed_resource) else None
        return _health_status(managed_resource, reference, leading) if leading is not None else None

    def manifest_of(self, managed_resource: Object, reference: Object) -> Object | None:
        """None: it is not known here."""
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
        return HealthStatus(Health.UNKNOWN, "no watch shows it: it is missing, not looked at yet, or without our label")
    return HealthStatus(Health.HEALTHY, leading.manual(named).removeprefix(f"{named.kind} {named}: "))


def _finished(named: Reference, leading: LeaderState) -> HealthStatus:
    """Of a Job that is gone: it may have failed."""
    with suppress(NotKnown):
        if finding := leading.unhealthy(named):
            return HealthStatus(Health.UNHEALTHY, _what(finding))
    return FINISHED


def _what(finding: Finding) -> str:
    """Without the name of the object, which stands beside it."""
    name = f"{finding.reference.kind} {finding.reference}"
    return finding.message.removeprefix(f"{name} is unhealthy: ").removeprefix(f"{name} is progressing: ")


def _pods(reference: Object, leading: LeaderState) -> int | None:
    try:
        return leading.pods_of(Reference.of(reference))
    except NotKnown:
        return None
