"""JSON patches that are guarded by the fields that they change, and by no others.

A write with a resourceVersion is refused after any other write of the object, of its status as well. A guarded patch is
refused, as invalid, only if one of its own fields has changed since the object was read.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kube.objects import Object, mapping, metadata, uid

_OF_SERVER = frozenset({"apiVersion", "kind", "metadata", "status"})


def guarded(live: Object, patch: Mapping[str, Any]) -> list[Object]:
    """JSON patch with the effect of a merge patch.

    Args: live: object as read. patch: merge patch for it.
    """
    return [_of(live), *_merged(live, patch, "")]


def replacing(live: Object, body: Object) -> list[Object]:
    """JSON patch with the effect of a PUT of `body`, without the status.

    Each label, each annotation and each other field of the object as a whole is guarded.
    """
    having, wanted, patch = metadata(live), metadata(body), [_of(live)]
    for name in sorted((live.keys() | body.keys()) - _OF_SERVER):
        patch += _changed(f"/{name}", live.get(name), body.get(name))
    for name in ("ownerReferences", "finalizers"):
        patch += _changed(f"/metadata/{name}", having.get(name), wanted.get(name))
    for name in ("labels", "annotations"):
        before, after = mapping(having.get(name)), mapping(wanted.get(name))
        if not before:
            patch += _changed(f"/metadata/{name}", having.get(name), after or None)
            continue
        for each in sorted(before.keys() | after.keys()):
            patch += _changed(f"/metadata/{name}/{_escaped(each)}", before.get(each), after.get(each))
    return patch


_ESCAPES = {"<": rb"\u003c", ">": rb"\u003e", "&": rb"\u0026", "\u2028": rb"\u2028", "\u2029": rb"\u2029"}


def as_stored(patch: bytes) -> bytes:
    """JSON as the API server writes it: a `test` compares texts in this form, in which some characters are escaped."""
    for character, escaped in _ESCAPES.items():
        patch = patch.replace(character.encode(), escaped)
    return patch


def _of(live: Object) -> Object:
    """Guard against writing another object: by the uid, or by the version if a cache keeps no uid."""
    field = "uid" if uid(live) else "resourceVersion"
    return {"op": "test", "path": f"/metadata/{field}", "value": metadata(live).get(field)}


def _merged(having: Mapping[str, Any], patch: Mapping[str, Any], path: str) -> Iterator[Object]:
    for name, wanted in patch.items():
        place, present = f"{path}/{_escaped(name)}", having.get(name)
        if isinstance(present, dict) and isinstance(wanted, Mapping):
            yield from _merged(present, wanted, place)
        else:
            yield from _changed(place, present, _without_nulls(wanted))


def _without_nulls(wanted: Any) -> Any:
    """Value of a new field: in a merge patch, null fields of a mapping are absent."""
    if not isinstance(wanted, Mapping):
        return wanted
    return {name: _without_nulls(each) for name, each in wanted.items() if each is not None}


def _changed(place: str, present: Any, wanted: Any) -> Iterator[Object]:
    """Operations on one field; None: it is absent."""
    if present == wanted and isinstance(present, bool) == isinstance(wanted, bool):
        return
    yield {"op": "test", "path": place, "value": present}
    yield {"op": "remove", "path": place} if wanted is None else {"op": "add", "path": place, "value": wanted}


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
