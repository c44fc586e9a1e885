"""Settings of a pass that removes objects, and the progress of the removals."""

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
    """Progress of the removals of a ManagedResource in earlier passes of this process."""

    unwanted_since: dict[str, float] = field(default_factory=dict)
    """Monotonic time since when an object has been obsolete, by object key."""
    deleted: set[str] = field(default_factory=set)
    """Object keys with an accepted DELETE."""
    unserved: set[str] = field(default_factory=set)
    """Groups with kinds that were not served, and are not gone."""
    claimed_since: dict[str, float] = field(default_factory=dict)
    """Monotonic time at which an object was first left to another ManagedResource, by object key."""
    never_read: set[str] = field(default_factory=set)
    """Object keys of announced objects that could not be created since they may not be read."""
    left: dict[str, str] = field(default_factory=dict)
    """Reason why an obsolete object was left, by object key."""
    kept_at: dict[str, float] = field(default_factory=dict)
    """Monotonic time at which an object was last kept for the removal of others, by object key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """Settings for all removals of one pass."""

    owner: Owner
    client: Client
    """Client for writes, according to the owner's identity."""
    live: LiveObjects
    ownership: Ownership
    wanted: frozenset[str]
    """Object keys of the desired objects of this ManagedResource; empty if all objects are removed."""
    announced: frozenset[str]
    """Object keys of objects that were announced before their creation, but not listed by a complete pass since."""
    adopt: str
    """Annotation of the ManagedResource; see `adoption`."""
    delete_volume_claims: bool
    garbage_collector: bool
    """Whether this process has one."""
    progress: Progress
    now: datetime
    service_warnings: Callable[[Key], Awaitable[str]]
    note_claims: Callable[[str, VolumeClaims], Awaitable[None]]
    """Records the claims in the reference of this object key; see `volume_claims`."""
    related: Callable[[], Related]
    """Computed on demand: there may be thousands."""
