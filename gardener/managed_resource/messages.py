"""Texts for conditions: stable, to avoid writes without news, and of bounded length."""

import re
from collections.abc import Iterable, Mapping, Sequence

from gardener import keys

MAX_LENGTH = 16_384
"""Characters of a message. Many objects may fail, each with a long text; the status must stay storable."""
_MAX_ITEM = 4_096
_WARNINGS_LENGTH = 4_096
"""Characters of all warnings together."""

CLEANING_FAILED = "Could not clean all old resources"
RELEASING_FAILED = "Could not release all orphaned resources"
_APPLY_ERROR = "error during apply of object "
APPLYING_FAILED = "Could not apply all new resources"


def pending_text(resource: str, *, reason: str = "", events: str = "") -> str:
    """Text about an object that is not gone yet.

    Args:
        resource: its resource string.
        reason: an error, or the reason of the wait.
        events: the latest warnings about it, if it is a Service.
    """
    text = f'deletion of old resource "{resource}" is still pending'
    if reason:
        text += f": {reason}"
    return f"{text}\n\n{events}" if events else text


def in_use_text(workloads: Sequence[str], *, timeout: str) -> str:
    """Reason why an object stays for now, by the resource strings of workloads whose pods may need it."""
    first, *others = sorted(workloads)
    more = f" and {len(others)} more are" if others else " is"
    return f'waiting for at most {timeout} until "{first}"{more} gone together with all pods, which may need it'


def kept_text(awaited: str, *, more: int, timeout: str) -> str:
    """Reason why an object stays for now, if it may be needed to remove others.

    Args:
        awaited: the first of these.
        more: number of the others.
        timeout: maximum time that it stays; empty: until they are gone.
    """
    limit = f"for at most {timeout}, " if timeout else ""
    others = f" and {more} more are" if more else " is"
    return f"kept {limit}until {awaited}{others} gone, which may need it"


def held_by_text(held_by: str) -> str:
    """Reason of the wait for an object with finalizers of others."""
    return f"{held_by}; remove it from its finalizers if no controller does"


def definition_kept_text(awaited: str, *, more: int, timeout: str) -> str:
    """Reason why a CustomResourceDefinition stays for now, by the first object that is removed before it."""
    others = f" and {more} more are" if more else " is"
    return f"kept for at most {timeout}, until {awaited}{others} gone, since CustomResourceDefinitions are deleted last"


def apply_error_text(resource: str, error: str) -> str:
    return f'{_APPLY_ERROR}"{resource}": {error}'


def apply_error_of(message: str, resource: str) -> str:
    """The error of one object in the message of a condition; empty if there is none."""
    return message.partition(apply_error_text(resource, ""))[2].partition(_APPLY_ERROR)[0]


def held_text(resource: str, holder: str, *, is_certain: bool) -> str:
    """Text about an object of another ManagedResource; `is_certain` is False if that can't be read."""
    remedy = "remove it from one of the two"
    if not is_certain:
        remedy += (
            ", or remove its annotation origin if that ManagedResource no longer exists, since this agent may not "
            "read it"
        )
    return f'object "{resource}" is held by ManagedResource {holder}; {remedy}'


def taken_back_text(resource: str, holder: str) -> str:
    """Text about an object that was taken over, and then taken back by its previous owner, which is unknown."""
    return (
        f'object "{resource}" is held by ManagedResource {holder}, which has taken it back, but is not visible to this '
        "agent; remove it from one of the two, or remove its annotation origin if that ManagedResource no longer exists"
    )


def left_to_unknown_text(resource: str, holder: str) -> str:
    """Text about an object that is not wanted any more, and that an unknown owner has taken over."""
    return (
        f'object "{resource}" is kept, since an agent has assigned it to ManagedResource {holder}, which is not '
        "visible here; delete it if that ManagedResource does not exist"
    )


def kept_by_live_text(resource: str, mark: str) -> str:
    """Text about an object that is not wanted any more, and stays because of a mark on it."""
    return f'object "{resource}" is kept, since it has {mark}, which its manifest lacks; delete it if it is obsolete'


def about_to_take_text(claimant: str, *, timeout: str) -> str:
    """Reason why an object is not deleted yet: another ManagedResource wants it."""
    return f"ManagedResource {claimant} is about to take it over; otherwise it is deleted after {timeout}"


def handed_over_text(claimant: str, *, timeout: str) -> str:
    """The same, if nothing keeps the other ManagedResource from taking it any more."""
    return f"ManagedResource {claimant} is its new owner; unless that takes it over within {timeout}, it is deleted"


def exists_text(resource: str, refused_by: str) -> str:
    """Text about an object that exists without an owner, and must not be taken over."""
    remedy = "give the object another name, delete the one that exists, or remove the annotation"
    return f'object "{resource}" exists without an owner and is not taken over: {refused_by}; {remedy}'


def restricted_text(resource: str, reason: str) -> str:
    """Text about an object that may not be written."""
    return apply_error_text(resource, f"{reason}; remove the object, or have that setting changed")


def strict_text(dropped: Sequence[str]) -> str:
    """Text about fields that the API server would drop silently."""
    return f"strict field validation: {', '.join(dropped)}"


def too_many_text(objects: int, size: int, error: str) -> str:
    """Text about a status that can't be stored; `size` is that of its lists, in bytes."""
    return (
        f"the list of its {objects} objects takes {size >> 10} KiB, more than the API server stores in a status "
        f"({error}); divide the objects among several ManagedResources, or remove large annotations from them"
    )


def not_removed_text(resource: str, reason: str) -> str:
    """Text about an object that may not be removed."""
    remedy = "have that changed, or keep the object (by its annotation keep-object, or spec.keepObjects)"
    return pending_text(resource, reason=f"{reason}; {remedy}")


def pending_message(texts: Iterable[tuple[str, str]]) -> str:
    """Message about removals. Args: texts: pairs of object key and text; sorted by key, in any order of completion."""
    return _listed(CLEANING_FAILED, [text for _, text in sorted(texts)])


def dependencies_message(reasons: Mapping[str, str]) -> str:
    """Message about dependencies. Args: reasons: names of ManagedResources, with the reason to wait for each."""
    return f"Waiting for {_joined([f'ManagedResource {name}, which {why}' for name, why in reasons.items()], '; ')}"


def dependants_message(dependants: Sequence[str]) -> str:
    """Message of a ManagedResource that is deleted and may not remove its objects yet."""
    return (
        "Waiting until the objects of all ManagedResources that depend on it are removed: "
        f"{_joined(sorted(dependants), ', ')}; delete these, or remove this one from their annotation "
        f"{keys.DEPENDS_ON}"
    )


_WAITING = re.compile(r'deletion of old resource ("[^"]+") is still pending: (waits for [^,;\]]+)')


def dependant_text(name: str, message: str) -> str:
    """Text about a dependant, with the reason of its own wait from the message of its condition."""
    found = _WAITING.search(message)
    return f"{name} (there, {found[1]} {found[2]})" if found else name


def refusal_message(problems: Iterable[object]) -> str:
    """Message about invalid annotations of the ManagedResource."""
    return f"nothing is written or deleted: {_joined(list(map(str, problems)), '; ')}"


def cycle_message(cycle: Sequence[str]) -> str:
    return (
        f"nothing is written or deleted: ManagedResources depend on each other: {_joined(cycle, ' -> ')}; remove one "
        f"of them from an annotation {keys.DEPENDS_ON}"
    )


def release_message(texts: Sequence[str]) -> str:
    return _listed(RELEASING_FAILED, sorted(texts))


def apply_message(texts: Sequence[str]) -> str:
    """Message of errors; a single one stands for itself, as in the original, which stops at the first one."""
    return _shortened(texts[0], MAX_LENGTH) if len(texts) == 1 else _listed(APPLYING_FAILED, texts)


def warnings_text(texts: Sequence[str]) -> str:
    return _joined(texts, "; ", length=_WARNINGS_LENGTH)


def decoding_message(errors: Sequence[str]) -> str:
    return f"Could not decode all new resources: [{_joined(errors, ' ')}]"


def _listed(prefix: str, texts: Sequence[str]) -> str:
    if len(texts) == 1:
        return f"{prefix}: 1 error occurred: {_shortened(texts[0], MAX_LENGTH)}"
    return f"{prefix}: {len(texts)} errors occurred: [{_joined(texts, ', ')}]"


def _joined(texts: Sequence[str], separator: str, *, length: int = MAX_LENGTH) -> str:
    shown: list[str] = []
    left = length
    for text in texts:
        short = _shortened(text, min(_MAX_ITEM, length // 2))
        left -= len(short) + len(separator)
        if left < 0:
            shown.append(f"and {len(texts) - len(shown)} more")
            break
        shown.append(short)
    return separator.join(shown)


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
