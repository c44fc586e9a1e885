"""What a pass knows of the objects that it removes, and of what becomes of them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

from agent.resource_manager.managed_resource.ownership import Ownership
from agent.resource_manager.managed_resource.rules.permissions import Owner
from agent.resource_manager.managed_resource.rules.volume_claims import VolumeClaims
from gardener.managed_resource.dependencies import Related
from kube.apply.live_objects import LiveObjects
from kube.objects import Key
from kube.runtime.client import Client


@dataclass(frozen=True, slots=True)
class Progress:
    """What is known of the removals of a ManagedResource from earlier passes of this process."""

    unwanted_since: dict[str, float] = field(default_factory=dict)
    """Object keys, and when it was first seen that they are not wanted, monotonic."""
    deleted: set[str] = field(default_factory=set)
    """Object keys for which a DELETE was accepted."""
    unserved: set[str] = field(default_factory=set)
    """Groups with kinds that were not served, and are not gone."""
    claimed_since: dict[str, float] = field(default_factory=dict)
    """Object keys, and when they were first left to another ManagedResource, monotonic."""
    never_read: set[str] = field(default_factory=set)
    """Object keys of what was about to be created, and could not be since it may not be read."""
    left: dict[str, str] = field(default_factory=dict)
    """Object keys of what was left though it was to go, and why."""
    kept_at: dict[str, float] = field(default_factory=dict)
    """Object keys, and when they were last kept for the removal of others, monotonic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """What holds for all removals of one pass."""

    owner: Owner
    client: Client
    """By which is written, as the owner's identity says."""
    live: LiveObjects
    ownership: Ownership
    wanted: frozenset[str]
    """Object keys of what this ManagedResource itself asks for; none if all of it goes."""
    announced: frozenset[str]
    """Object keys of what was listed as about to be created, and by no complete pass since."""
    adopt: str
    """The annotation of the ManagedResource; see `adoption`."""
    delete_volume_claims: bool
    garbage_collector: bool
    """Whether there is one in this process."""
    progress: Progress
    now: datetime
    service_warnings: Callable[[Key], Awaitable[str]]
    note_claims: Callable[[str, VolumeClaims], Awaitable[None]]
    """Notes the claims in the reference of this object key; see `volume_claims`."""
    related: Callable[[], Related]
    """Found when it is needed: there may be thousands."""
