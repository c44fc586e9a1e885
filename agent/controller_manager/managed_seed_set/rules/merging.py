"""Changes of templates, brought to objects that were made from them and that others have changed since.

A field that is the same in the old and the new template is left alone, whatever it is in the object by now.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from kube.objects import Object, annotations, labels, metadata, spec

_ABSENT: Any = object()


def updated(live: Object, old: Object | None, new: Object, *, own_labels: Mapping[str, str]) -> Object:
    """The object as it is to be.

    Args:
        live: as it is.
        old: as the templates made it; None: it is not known, and nothing is removed.
        new: as the templates make it now.
        own_labels: set in any case.
    """
    meta = dict(metadata(live))
    for field, of in (("labels", labels), ("annotations", annotations)):
        before = of(old) if old is not None else {}
        meta[field] = merged(before, of(new), of(live))
    meta["labels"] = {**meta["labels"], **own_labels}
    before = spec(old) if old is not None else _ABSENT
    return {**live, "metadata": meta, "spec": merged(before, spec(new), spec(live))}


def merged(old: Any, new: Any, live: Any) -> Any:
    """What is changed from old to new is changed in live. None of them is changed itself."""
    if old == new:
        return live
    if isinstance(new, dict) and isinstance(live, dict):
        return _merged_fields(old if isinstance(old, dict) else {}, new, live)
    if _is_named(new) and _is_named(live):
        return _merged_entries(old if _is_named(old) else [], new, live)
    return new


def _merged_fields(old: Object, new: Object, live: Object) -> Object:
    kept = {name: value for name, value in live.items() if name in new or name not in old}
    for name, value in new.items():
        result = merged(old.get(name, _ABSENT), value, live.get(name, _ABSENT))
        if result is not _ABSENT:
            kept[name] = result
    return kept


def _merged_entries(old: Sequence[Object], new: Sequence[Object], live: Sequence[Object]) -> list[Object]:
    """Lists whose entries are known by their names, in the order of the live one."""
    before, after, there = ({each["name"]: each for each in entries} for entries in (old, new, live))
    return list(_merged_fields(before, after, there).values())


def _is_named(value: Any) -> TypeGuard[list[Object]]:
    """Whether all entries of a list have names of their own."""
    if not isinstance(value, list) or not value:
        return False
    names = [each.get("name") for each in value if isinstance(each, dict) and isinstance(each.get("name"), str)]
    return len(names) == len(value) == len(set(names))
