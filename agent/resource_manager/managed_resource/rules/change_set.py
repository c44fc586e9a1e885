"""Changes that a pass made to the objects of a ManagedResource, and its failures.

This is the only result of applying and removing: the Applier and the Remover add to it, and conditions, Events, log
entries and the page of recent changes are derived from it.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from agent.resource_manager.common.recent_changes import Action, ObjectChange, object_change
from gardener.managed_resource import conditions
from gardener.managed_resource.adoption import without_stamps
from gardener.managed_resource.changes import FieldChange, field_changes
from gardener.managed_resource.messages import apply_message, pending_message, release_message
from gardener.managed_resource.warnings import ObjectWarnings, all_warnings_text
from gardener.overview.objects import short_name
from kube.conditions import Condition
from kube.objects import Key, Object

_NAMED_FIELDS = 3
_NAMED_OBJECTS = 5
"""Number of objects in an Event, which has room for about a thousand characters."""


@dataclass(frozen=True, slots=True)
class Pending:
    """An object that is not gone yet."""

    name: str
    """Object key."""
    text: str
    failed: bool = False
    """Whether the last attempt to remove it failed."""
    due: timedelta | None = None
    """Time until the next check, if time alone may change something."""
    is_restricted: bool = False
    """Whether only a change of the configuration or the ManagedResource helps."""
    is_held_back: bool = False
    """Whether it has been left for some time to another ManagedResource, which has not taken it."""


@dataclass(slots=True, kw_only=True)
class ChangeSet:
    owner: Key
    """The ManagedResource."""
    lists_objects: bool = True
    """Whether `objects` is filled; without a page for them, comparing objects would be wasted."""
    objects: list[ObjectChange] = field(default_factory=list)
    news: dict[Action, list[str]] = field(default_factory=dict)
    """Changes that the manifests do not explain: texts with each object and its fields."""
    looked_at: int = 0
    """Number of objects that memory alone does not show to be as desired."""
    created: int = 0
    updated: int = 0
    removed: int = 0
    is_repair: bool = False
    """Whether the desired objects are the same as before: another client changed the objects."""
    warnings: Mapping[str, ObjectWarnings] | None = None
    """Current warnings about all objects, by object key; None if nothing was applied."""
    jobs: Sequence[Object] | None = None
    """Content of `status.jobs`; see `gardener.managed_resource.jobs`."""
    remarks: Sequence[str] = ()
    """Warnings about the annotations of the ManagedResource."""
    left: Mapping[str, str] = field(default_factory=dict)
    """Reason why an obsolete object was left, by object key."""
    errors: list[str] = field(default_factory=list)
    """Errors of objects that could not be applied."""
    refused: set[str] = field(default_factory=set)
    """Object keys of objects that could not be applied, and cannot be without a change."""
    untried: set[str] = field(default_factory=set)
    """Object keys of objects that could not be applied this time."""
    restricted: list[str] = field(default_factory=list)
    """Lasting errors of objects that may not be written or removed; the others may have been processed."""
    release_errors: list[str] = field(default_factory=list)
    pending: list[Pending] = field(default_factory=list)
    """Objects that are not removed yet."""

    def note(
        self, action: Action, reference: Object, *, before: Object | None = None, after: Object | None = None
    ) -> None:
        """Note a change.

        Args: before, after: the live object, if it was changed.
        """
        if not (self.lists_objects or action.is_news):
            return
        if action is Action.TAKEN_OVER and before is not None and after is not None:
            before, after = without_stamps(before), without_stamps(after)
        fields = field_changes(before, after) if before is not None and after is not None else ()
        if self.lists_objects:
            self.objects.append(object_change(self.owner, action, reference, at=time.time(), fields=fields))
        if action.is_news:
            self.news.setdefault(action, []).append(change_text(action, reference, fields))

    @property
    def is_complete(self) -> bool:
        """Whether all is done except invalid and restricted objects."""
        return not (self.errors or self.release_errors or self.pending)

    @property
    def is_restricted(self) -> bool:
        """Whether none of the pending objects may be removed."""
        return bool(self.pending) and all(pending.is_restricted for pending in self.pending)

    @property
    def waits_only(self) -> bool:
        """Whether the pending removals have no problem."""
        return not any(pending.failed or pending.is_restricted for pending in self.pending)

    def failure(self) -> Condition | None:
        """Return the condition if an object could not be applied or released; None otherwise."""
        warnings = self._warnings_text()
        if self.errors:
            message = apply_message([*self.restricted, *self.errors])
            return conditions.failed(conditions.APPLY_FAILED, message, warnings=warnings)
        if self.release_errors:
            return conditions.failed(conditions.RELEASE_FAILED, release_message(self.release_errors), warnings=warnings)
        return None

    def _warnings_text(self) -> str:
        return all_warnings_text(self.warnings or {}, [*self.remarks, *self.left.values()])

    def held_back(self) -> list[str]:
        """Texts about objects left to other ManagedResources for some time, or for good, sorted."""
        return sorted([*(pending.text for pending in self.pending if pending.is_held_back), *self.left.values()])

    def pending_message(self) -> str:
        """Return the message about pending removals and restricted objects."""
        waiting = [(pending.name, pending.text) for pending in self.pending]
        return pending_message([*waiting, *(("~", text) for text in self.restricted)])

    def success(self, decode_errors: tuple[str, ...]) -> Condition:
        """Return the condition after all permitted and valid objects were processed."""
        warnings = self._warnings_text()
        if self.restricted:
            message = apply_message([*self.restricted, *decode_errors])
            return conditions.failed(conditions.APPLY_FAILED, message, warnings=warnings)
        return conditions.applied(decode_errors, warnings=warnings)

    def repairs(self) -> list[str]:
        """Texts about objects that other clients had changed or deleted, sorted."""
        return sorted(text for action, texts in self.news.items() if action.is_repair for text in texts)

    def taken_over(self) -> list[str]:
        """Texts about objects that existed before without an owner, sorted."""
        return sorted(self.news.get(Action.TAKEN_OVER, ()))

    def __str__(self) -> str:
        done = (("created", self.created), ("changed", self.updated), ("removed", self.removed))
        return ", ".join(f"{count} {what}" for what, count in done if count)


def change_text(action: Action, reference: Object, fields: Sequence[FieldChange]) -> str:
    """Return a text about one object, such as `Deployment/shop/storefront: spec.replicas 5 -> 2`."""
    if action is Action.MADE_AGAIN:
        return f"{short_name(reference)} had been deleted"
    shown = list(map(str, fields[:_NAMED_FIELDS]))
    if more := len(fields) - len(shown):
        shown.append(f"{more} more")
    return f"{short_name(reference)}: {', '.join(shown)}" if shown else short_name(reference)


def news_text(texts: Sequence[str]) -> str:
    """Return a text about several objects, in one line."""
    shown = list(texts[:_NAMED_OBJECTS])
    if more := len(texts) - len(shown):
        shown.append(f"{more} more")
    return "; ".join(shown)
