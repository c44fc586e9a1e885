"""Why a manifest can't be applied, as far as it is known before anything is.

Such an object fails alone; the others are applied. Without this check the API server would answer with a less clear
error, or, for an object that has only `generateName`, make a new object on every pass.
"""

from collections.abc import Sequence
from difflib import get_close_matches

from kube.objects import Object, group_of, metadata

_FIELDS = frozenset({"apiVersion", "kind", "metadata", "spec", "status", "data"})


def problem_of(obj: Object) -> str:
    """Why this object can't be applied, if that is known beforehand; empty if not."""
    api_version, kind = obj.get("apiVersion") or "", obj.get("kind") or ""
    for field, value in (("apiVersion", api_version), ("kind", kind)):
        if not value:
            return f"the manifest has no {field}{_misspelt(field, obj)}"
    if api_version.count("/") > 1:
        return f'"{api_version}" is no apiVersion; it must be <group>/<version>, or <version> for the core group'
    if metadata(obj).get("name"):
        return ""
    if metadata(obj).get("generateName"):
        return "metadata.generateName is not supported, since each pass would create a new object; set metadata.name"
    group = group_of(api_version)
    full_kind = f"{kind}.{group}" if group else kind
    return f'{full_kind} "" is invalid: metadata.name: Required value: name or generateName is required'


def _misspelt(field: str, obj: Object) -> str:
    """The field that may have been meant to be this one."""
    near = get_close_matches(field, [name for name in obj if name not in _FIELDS], n=1)
    return f"; {near[0]} may be misspelt" if near else ""


def superseded(keys: Sequence[str]) -> set[int]:
    """The positions of objects, by object key, that come again later: only the last of them has to be applied.

    As in the original the last one wins, and it is no failure; but nothing is written to and fro on every pass.
    """
    last = {key: position for position, key in enumerate(keys)}
    return {position for position, key in enumerate(keys) if last[key] != position}
