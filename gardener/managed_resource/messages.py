"""Texts for conditions: stable, so that nothing is written when nothing is new, and of bounded length."""

from collections.abc import Iterable, Sequence

MAX_LENGTH = 16_384
"""Characters of a message. Many objects may fail, each with a long text; the status must stay storable."""
_MAX_ITEM = 4_096

CLEANING_FAILED = "Could not clean all old resources"
RELEASING_FAILED = "Could not release all orphaned resources"
APPLYING_FAILED = "Could not apply all new resources"


def pending_text(resource: str, *, error: str = "", events: str = "") -> str:
    """Of one object that is not gone yet; `events` are the latest warnings about it, if it is a Service."""
    text = f'deletion of old resource "{resource}" is still pending'
    if error:
        text += f": {error}"
    return f"{text}\n\n{events}" if events else text


def apply_error_text(resource: str, error: str) -> str:
    return f'error during apply of object "{resource}": {error}'


def held_text(resource: str, holder: str, *, is_certain: bool) -> str:
    """Of an object that another ManagedResource has; `is_certain` is False if that may not be read."""
    remedy = "remove it from one of the two"
    if not is_certain:
        remedy += (
            ", or take its annotation origin off if that ManagedResource is gone, since this agent may not read it"
        )
    return f'object "{resource}" is held by ManagedResource {holder}; {remedy}'


def restricted_text(resource: str, reason: str) -> str:
    """Of an object that may not be written."""
    return apply_error_text(resource, f"{reason}; take the object out, or have that setting changed")


def too_many_text(objects: int, size: int, error: str) -> str:
    """Of a status that can't be stored; `size` is that of its lists, in bytes."""
    return (
        f"the list of its {objects} objects takes {size >> 10} KiB, more than the API server stores in a status "
        f"({error}); divide the objects among several ManagedResources, or take large annotations off them"
    )


def not_removed_text(resource: str, reason: str) -> str:
    """Of an object that may not be removed."""
    remedy = "have that changed, or the object kept (annotation keep-object on it, or spec.keepObjects)"
    return pending_text(resource, error=f"{reason}; {remedy}")


def pending_message(texts: Iterable[tuple[str, str]]) -> str:
    """Args: texts: pairs of object key and text; they are listed by key, however the removals end."""
    return _listed(CLEANING_FAILED, [text for _, text in sorted(texts)])


def release_message(texts: Sequence[str]) -> str:
    return _listed(RELEASING_FAILED, sorted(texts))


def apply_message(texts: Sequence[str]) -> str:
    """A single error stands for itself, as in the original, which stops at the first one."""
    return _shortened(texts[0], MAX_LENGTH) if len(texts) == 1 else _listed(APPLYING_FAILED, texts)


def decoding_message(errors: Sequence[str]) -> str:
    return f"Could not decode all new resources: [{_joined(errors, ' ')}]"


def _listed(prefix: str, texts: Sequence[str]) -> str:
    if len(texts) == 1:
        return f"{prefix}: 1 error occurred: {_shortened(texts[0], MAX_LENGTH)}"
    return f"{prefix}: {len(texts)} errors occurred: [{_joined(texts, ', ')}]"


def _joined(texts: Sequence[str], separator: str) -> str:
    shown: list[str] = []
    left = MAX_LENGTH
    for text in texts:
        short = _shortened(text, _MAX_ITEM)
        left -= len(short) + len(separator)
        if left < 0:
            shown.append(f"and {len(texts) - len(shown)} more")
            break
        shown.append(short)
    return separator.join(shown)


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
