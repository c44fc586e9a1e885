"""What a pass did to the objects of a ManagedResource, and what it could not do.

This is the only result of applying and removing: the Applier and the Remover add to it, and conditions, Events, log
entries and the page of recent changes are derived from it.
"""

import time
from dataclasses import dataclass, field
from datetime import timedelta

from agent.resource_manager.changes import Action, ObjectChange, object_change
from gardener.managed_resource import conditions
from gardener.managed_resource.messages import apply_message, pending_message, release_message
from kube.conditions import Condition
from kube.objects import Key, Object


@dataclass(frozen=True, slots=True)
class Pending:
    """An object that is not gone yet."""

    name: str
    """Its object key."""
    text: str
    failed: bool = False
    """The last attempt to remove it ended in an error."""
    due: timedelta | None = None
    """When to look again, if time alone will change something."""
    is_restricted: bool = False
    """Nothing changes until the configuration or the ManagedResource does."""


@dataclass(slots=True, kw_only=True)
class ChangeSet:
    owner: Key
    """The ManagedResource."""
    lists_objects: bool = True
    """Whether `objects` is filled; where nobody looks at it, comparing objects would be wasted."""
    objects: list[ObjectChange] = field(default_factory=list)
    created: int = 0
    updated: int = 0
    removed: int = 0
    is_repair: bool = False
    """Nothing else was asked for than before: somebody else changed the objects."""
    errors: list[str] = field(default_factory=list)
    """Of what could not be applied."""
    restricted: list[str] = field(default_factory=list)
    """Errors of what may not be written or removed, which lasts; all else may have been done."""
    release_errors: list[str] = field(default_factory=list)
    pending: list[Pending] = field(default_factory=list)
    """What is not removed yet."""

    def note(
        self, action: Action, reference: Object, *, before: Object | None = None, after: Object | None = None
    ) -> None:
        """Args: before, after: the live object, if it was changed."""
        if self.lists_objects:
            change = object_change(self.owner, action, reference, at=time.time(), before=before, after=after)
            self.objects.append(change)

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to do but what could not be decoded and what is restricted."""
        return not (self.errors or self.release_errors or self.pending)

    @property
    def is_restricted(self) -> bool:
        """Whether all that is not gone yet may not be removed."""
        return bool(self.pending) and all(pending.is_restricted for pending in self.pending)

    def failure(self) -> Condition | None:
        """The outcome if something could not be applied or released."""
        if self.errors:
            return conditions.failed(conditions.APPLY_FAILED, apply_message([*self.restricted, *self.errors]))
        if self.release_errors:
            return conditions.failed(conditions.RELEASE_FAILED, release_message(self.release_errors))
        return None

    def pending_message(self) -> str:
        """Of what is not gone yet, together with what may not be written."""
        waiting = [(pending.name, pending.text) for pending in self.pending]
        return pending_message([*waiting, *(("~", text) for text in self.restricted)])

    def success(self, decode_errors: tuple[str, ...]) -> Condition:
        """The outcome if all was done that may be done and could be decoded."""
        if self.restricted:
            return conditions.failed(conditions.APPLY_FAILED, apply_message([*self.restricted, *decode_errors]))
        return conditions.applied(decode_errors)

    def __str__(self) -> str:
        done = (("created", self.created), ("changed", self.updated), ("removed", self.removed))
        return ", ".join(f"{count} {what}" for what, count in done if count)
