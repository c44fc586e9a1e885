"""Visible parts of an object before and after: without noise, and with secrets masked.

Masks reveal only whether two values differ.
"""

import re
from typing import Any

from gardener import keys
from kube.objects import Object, annotations, mapping, metadata

_COUNTED = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
_NOTES = frozenset(
    {
        "deployment.kubernetes.io/revision",
        "kubectl.kubernetes.io/last-applied-configuration",
        keys.GARDENLET_COMPONENT,
        keys.GARDENLET_DIGEST,
        keys.OPERATION,
        keys.TIMESTAMP,
    }
)
"""Annotations that follow from other data or request a single operation; one may contain a whole Secret."""
SECRET_KINDS = frozenset({"InternalSecret", "Secret"})
_SECRET_FIELDS = ("data", "stringData")
_SECRET_NAME = re.compile(
    r"(authorization|passw(or)?d|passphrase|token|credentials?|private-?key|api-?key|access-?key)$", re.IGNORECASE
)
"""Names of fields, variables and headers whose values are masked."""
_MISSING: Any = object()


def without_noise(obj: Object) -> Object:
    """Object without status, finalizers, counters of the API server, and annotations of programs."""
    meta = {name: value for name, value in metadata(obj).items() if name not in _COUNTED}
    notes = {
        name: value
        for name, value in annotations(obj).items()
        if name not in _NOTES and not name.startswith(keys.REFERENCE_PREFIX)
    }
    meta["annotations"] = notes
    meta = {name: value for name, value in meta.items() if value not in ({}, [], None)}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": meta}


def shown(before: Object | None, after: Object | None) -> tuple[Object | None, Object | None]:
    """Return both states with secrets masked; None if the object does not exist."""
    old, new = (None if each is None else without_noise(each) for each in (before, after))
    if (old or new or {}).get("kind") in SECRET_KINDS:
        old, new = _without_content(old, new)
    was, is_next = _hidden("", _MISSING if old is None else old, _MISSING if new is None else new)
    return (None if was is _MISSING else was), (None if is_next is _MISSING else is_next)


def _without_content(old: Object | None, new: Object | None) -> tuple[Object | None, Object | None]:
    for field in _SECRET_FIELDS:
        values = [mapping((each or {}).get(field)) for each in (old, new)]
        marks = [
            {name: mark for name in each if (mark := _marks(*(v.get(name, _MISSING) for v in values))[index])}
            for index, each in enumerate(values)
        ]
        old, new = (
            each if each is None or field not in each else {**each, field: marks[index]}
            for index, each in enumerate((old, new))
        )
    return old, new


def _marks(before: Any, after: Any) -> tuple[str, str]:
    if before is _MISSING:
        return "", "(new)"
    if after is _MISSING:
        return "(removed)", ""
    return ("(hidden)", "(hidden)") if before == after else ("(before)", "(changed)")


def _hidden(name: str, before: Any, after: Any) -> tuple[Any, Any]:
    """Mask the value of a field, variable or header with this name."""
    present = [each for each in (before, after) if each is not _MISSING]
    if _SECRET_NAME.search(name) and all(isinstance(each, str) for each in present):
        marks = _marks(before, after)
        return (_MISSING if before is _MISSING else marks[0]), (_MISSING if after is _MISSING else marks[1])
    if any(isinstance(each, dict) for each in present):
        return _hidden_mappings(before, after)
    if any(isinstance(each, list) for each in present):
        return _hidden_lists(before, after)
    return before, after


def _hidden_mappings(before: Any, after: Any) -> tuple[Any, Any]:
    old, new = mapping(before), mapping(after)
    found: tuple[Object, Object] = ({}, {})
    for field in [*old, *(each for each in new if each not in old)]:
        name = field
        if field == "value":  # value of a variable or a header
            name = str(old.get("name") or new.get("name") or "")
        for result, value in zip(found, _hidden(name, old.get(field, _MISSING), new.get(field, _MISSING)), strict=True):
            if value is not _MISSING:
                result[field] = value
    # Restore the order of the fields of each state.
    old_order, new_order = ({field: each[field] for field in own} for own, each in zip((old, new), found, strict=True))
    return (old_order if isinstance(before, dict) else before), (new_order if isinstance(after, dict) else after)


def _hidden_lists(before: Any, after: Any) -> tuple[Any, Any]:
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = [_hidden("", old, new) for old, new in zip(before, after, strict=True)]
        return [old for old, _ in pairs], [new for _, new in pairs]

    # Items of lists of different lengths can't be matched, so each list is masked on its own.
    def alone(value: Any) -> Any:
        return [_hidden("", each, each)[0] for each in value] if isinstance(value, list) else value

    return alone(before), alone(after)
