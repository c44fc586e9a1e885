"""State of a ManagedResource: one word, and the message that explains it."""

import re
from collections.abc import Iterable
from enum import StrEnum

from gardener import keys
from gardener.conditions import IN_PROGRESS, RESOURCES_APPLIED, RESOURCES_HEALTHY, RESOURCES_PROGRESSING
from gardener.managed_resource.conditions import IGNORED, is_observed, manual_steps_of, warnings_in
from gardener.managed_resource.references import listed_in
from gardener.responsibility import is_ignored
from kube.objects import Object, annotations, condition, is_deleting


class ResourceState(StrEnum):
    READY = "Ready"
    PROGRESSING = "Progressing"
    UNHEALTHY = "Unhealthy"
    FAILED = "Failed"
    SUSPENDED = "Suspended"
    DELETING = "Deleting"
    PENDING = "Pending"
    """No agent has processed it yet."""


WORST_FIRST = (
    ResourceState.FAILED,
    ResourceState.UNHEALTHY,
    ResourceState.DELETING,
    ResourceState.PENDING,
    ResourceState.PROGRESSING,
    ResourceState.SUSPENDED,
    ResourceState.READY,
)
"""Order of lists."""
LOOKS = {
    ResourceState.READY: ("✓", "good"),
    ResourceState.PROGRESSING: ("↻", "busy"),
    ResourceState.UNHEALTHY: ("!", "bad"),
    ResourceState.FAILED: ("✕", "bad"),
    ResourceState.SUSPENDED: ("‖", "warn"),
    ResourceState.DELETING: ("−", "warn"),
    ResourceState.PENDING: ("?", "dim"),
}
"""Symbols and CSS classes on pages."""


class StateFilter(StrEnum):
    """Filter by state; `failed` includes unhealthy ManagedResources."""

    READY = "ready"
    PROGRESSING = "progressing"
    FAILED = "failed"
    SUSPENDED = "suspended"
    DELETING = "deleting"
    PENDING = "pending"

    def includes(self, state: ResourceState) -> bool:
        return self.value == state.value.lower() or (self is StateFilter.FAILED and state is ResourceState.UNHEALTHY)


def state_of(managed_resource: Object) -> ResourceState:
    if is_deleting(managed_resource):
        return ResourceState.DELETING
    if is_ignored(managed_resource):
        return ResourceState.SUSPENDED
    applied, healthy, progressing = (
        status_of(managed_resource, kind) for kind in (RESOURCES_APPLIED, RESOURCES_HEALTHY, RESOURCES_PROGRESSING)
    )
    if not applied:
        return ResourceState.PENDING
    if applied == "False":
        return ResourceState.FAILED
    if (
        applied == IN_PROGRESS
        or _was_suspended(managed_resource)
        or not is_observed(managed_resource)
        or healthy in {"Unknown", ""}
    ):
        return ResourceState.PROGRESSING
    if healthy == "False":
        return ResourceState.UNHEALTHY
    return ResourceState.PROGRESSING if progressing != "False" else ResourceState.READY


def _was_suspended(managed_resource: Object) -> bool:
    """Whether its conditions still date from a suspension."""
    return (condition(managed_resource, RESOURCES_APPLIED) or {}).get("reason") == IGNORED


def status_of(managed_resource: Object, condition_type: str) -> str:
    found: str = (condition(managed_resource, condition_type) or {}).get("status") or ""
    return found


def message_of(managed_resource: Object) -> str:
    """Reason of its state, from the condition that decides it."""
    match state_of(managed_resource):
        case ResourceState.SUSPENDED:
            return suspension(managed_resource)
        case ResourceState.PENDING:
            return "no agent has processed it yet"
        case ResourceState.READY:
            return "; ".join(filter(None, (warnings_of(managed_resource), manual_steps(managed_resource))))
        case ResourceState.UNHEALTHY:
            return _message(managed_resource, RESOURCES_HEALTHY)
        case ResourceState.PROGRESSING if status_of(managed_resource, RESOURCES_APPLIED) == "True":
            if _was_suspended(managed_resource):
                return "no agent has processed it since it was resumed"
            if not is_observed(managed_resource):
                return "the last change of its spec is not applied yet"
            waits_for = (
                RESOURCES_PROGRESSING
                if status_of(managed_resource, RESOURCES_PROGRESSING) == "True"
                else RESOURCES_HEALTHY
            )
            return _message(managed_resource, waits_for)
    return _message(managed_resource, RESOURCES_APPLIED)


def warnings_of(managed_resource: Object) -> str:
    """Warnings of the API server when its objects were applied."""
    text = warnings_in(condition(managed_resource, RESOURCES_APPLIED) or {})
    return f"AppliedWithWarnings: {text}" if text else ""


def manual_steps(managed_resource: Object) -> str:
    """Manual steps that its roll-out requires."""
    text = manual_steps_of(managed_resource)
    return f"do manually: {text}" if text else ""


_FRAMES = (
    (re.compile(r"^Could not \w+ all [\w ]+: (?:\d+ errors? occurred: )?\[(.*)\]$"), r"\1"),
    (re.compile(r"^Could not \w+ all [\w ]+: (?:\d+ errors? occurred: )?"), ""),
    (re.compile(r"Could not decode resource at (?=index \d)"), ""),
    # The API server's name of the object is left out: it precedes the text.
    (
        re.compile(r'error during apply of object "(?:[^"/]+/)?v\d[^"/]*/([^"]+)": (?:[\w.-]+ "[^"]*" is (?=\w+: ))?'),
        r"\1: ",
    ),
)


def brief(message: str) -> str:
    """One line of a message, without the framing words."""
    reason, colon, text = " ".join(message.split()).partition(": ")
    for frame, left in _FRAMES:
        text = frame.sub(left, text)
    return f"{reason}{colon}{text}"


def _message(managed_resource: Object, condition_type: str) -> str:
    found = condition(managed_resource, condition_type) or {}
    text = without_false_namespaces(found.get("message") or "", listed_in(managed_resource))
    return f"{found.get('reason')}: {text}" if found else ""


_IN_DEFAULT = re.compile(r"\b([A-Z]\w*)/default/(\w(?:[\w.:-]*\w)?)")


def without_false_namespaces(message: str, references: Iterable[Object]) -> str:
    """Messages of the agent name cluster-scoped objects with the namespace `default`, as resource strings have it."""
    if "/default/" not in message:
        return message
    named = {(each.get("kind"), each.get("name")) for each in references if not each.get("namespace")}

    def shortened(match: re.Match[str]) -> str:
        return f"{match[1]}/{match[2]}" if (match[1], match[2]) in named else match[0]

    return _IN_DEFAULT.sub(shortened, message)


def suspension(managed_resource: Object) -> str:
    """User, time and reason of its suspension, as far as recorded."""
    notes = annotations(managed_resource)
    who, why, since = (notes.get(name) for name in (keys.IGNORED_BY, keys.IGNORE_REASON, keys.IGNORED_SINCE))
    text = " ".join(part for part in (f"by {who}" if who else "", f"since {since}" if since else "") if part)
    if not text and not why:
        return "no reason is recorded"
    return f"{text}: {why}" if text and why else text or why or ""


def object_count(managed_resource: Object) -> int:
    """Number of objects, as shown everywhere: includes the announced objects of an unfinished pass."""
    return len(listed_in(managed_resource))
