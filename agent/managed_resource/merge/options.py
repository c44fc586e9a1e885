"""What the rules of the kinds have in common: their options, and access along a path.

A rule gets the result so far, the live object (on creation: the manifest) and the options, and returns the result. It
takes no notice of parts that are of the wrong type: the API server has the better words for that.
"""

from dataclasses import dataclass
from typing import Any

from kube.objects import Object


class MergeError(ValueError):
    """The manifest can't be merged with a live object."""


@dataclass(frozen=True, slots=True)
class MergeOptions:
    preserve_replicas: bool = False
    preserve_resources: bool = False


def at(obj: Object, *path: str) -> Any:
    """The value at a path; None if it is not there."""
    value: Any = obj
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def mapping_at(obj: Object, *path: str) -> Object:
    value = at(obj, *path)
    return value if isinstance(value, dict) else {}


def mappings_at(obj: Object, *path: str) -> list[Object]:
    """The mappings in the list at a path."""
    value = at(obj, *path)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def with_value(obj: Object, path: tuple[str, ...], value: Any) -> Object:
    """The object with another value at a path (None removes it), mappings on the way made as needed.

    Nothing changes where something else than a mapping stands on the way.
    """
    name, rest = path[0], path[1:]
    if rest:
        inner = obj.get(name)
        if inner is not None and not isinstance(inner, dict):
            return obj
        value = with_value(inner or {}, rest, value)
        if not value and inner is None:
            return obj
    elif value is None:
        return {key: kept for key, kept in obj.items() if key != name}
    return {**obj, name: value}


def kept_if_omitted(result: Object, live: Object, *path: str) -> Object:
    """The result with the live value at a path where it has none of its own."""
    value = at(live, *path)
    return result if value is None or at(result, *path) is not None else with_value(result, path, value)
