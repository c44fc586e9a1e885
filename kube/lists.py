"""Lists in manifests, `kind: List` or a kind such as `RoleList`, split into their items, as kubectl does."""

from collections.abc import Iterator
from typing import Any

from kube.objects import Object

_SUFFIX = "List"
_DEEPEST = 8
"""Maximum depth of lists within lists."""


class NestedListsError(ValueError):
    """Lists are nested too deeply."""


def is_list(manifest: Object) -> bool:
    kind = manifest.get("kind")
    if kind == _SUFFIX and manifest.get("apiVersion") == "v1":
        return isinstance(manifest.get("items") or [], list)
    return isinstance(kind, str) and kind.endswith(_SUFFIX) and isinstance(manifest.get("items"), list)


def items_of(manifest: Any, *, depth: int = 0) -> Iterator[Any]:
    """Items of a list and of lists within it; for any other document the document itself.

    Items of a typed list may lack `apiVersion` and `kind`: they have the list's.

    Raises:
        NestedListsError: for more than eight lists within each other.
    """
    if not isinstance(manifest, dict) or not is_list(manifest):
        yield manifest
        return
    if depth == _DEEPEST:
        raise NestedListsError(f"more than {_DEEPEST} lists are nested within each other; split them")
    kind = manifest["kind"].removesuffix(_SUFFIX)
    defaults = {"apiVersion": manifest.get("apiVersion"), "kind": kind} if kind else {}
    for item in manifest.get("items") or []:
        is_typed = not isinstance(item, dict) or item.get("kind")
        yield from items_of(item if is_typed else {**item, **defaults}, depth=depth + 1)
