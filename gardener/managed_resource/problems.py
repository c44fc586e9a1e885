"""Problems of a manifest that are known before anything is applied.

Such an object fails alone; the others are applied. Without this check the API server would answer with a less clear
error, or, for an object that has only `generateName`, create a new object on every pass.
"""

from collections.abc import Sequence
from difflib import get_close_matches

from kube.objects import Object, group_of, metadata

_FIELDS = frozenset({"apiVersion", "kind", "metadata", "spec", "status", "data"})


def problem_of(obj: Object) -> str:
    """Reason why this object can't be applied, if known beforehand; empty if there is none."""
    api_version, kind = obj.get("apiVersion") or "", obj.get("kind") or ""
    for field, value in (("apiVersion", api_version), ("kind", kind)):
        if not value:
            return f"the manifest has no {field}{_misspelt(field, obj)}"
    if api_version.count("/") > 1:
        return f'"{api_version}" is not a valid apiVersion; write <group>/<version>, or <version> for the core group'
    if metadata(obj).get("name"):
        return ""
    if metadata(obj).get("generateName"):
        return "metadata.generateName is not supported, since each pass would create a new object; set metadata.name"
    group = group_of(api_version)
    full_kind = f"{kind}.{group}" if group else kind
    return f'{full_kind} "" is invalid: metadata.name: Required value: name or generateName is required'


def _misspelt(field: str, obj: Object) -> str:
    """The field that was probably meant."""
    near = get_close_matches(field, [name for name in obj if name not in _FIELDS], n=1)
    return f"; {near[0]} may be misspelt" if near else ""


def superseded(keys: Sequence[str]) -> set[int]:
    """Positions of objects, by object key, that are repeated later: only the last of them has to be applied.

    As in the original the last one wins, and it is no failure; but only that one is written on each pass.
    """
    last = {key: position for position, key in enumerate(keys)}
    return {position for position, key in enumerate(keys) if last[key] != position}
