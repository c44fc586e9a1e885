"""Access to objects along a path of fields. Nothing here raises, for any JSON, or changes its argument."""

from typing import Any

from kube.objects import Object, mapping, mappings


def at(obj: Object, *path: str) -> Any:
    """Value at a path; None if absent."""
    value: Any = obj
    try:
        for name in path:
            if value is None:
                return None
            value = value.get(name)
    except AttributeError:
        return None  # a value on the way is no mapping
    return value


def mapping_at(obj: Object, *path: str) -> Object:
    return mapping(at(obj, *path))


def mappings_at(obj: Object, *path: str) -> list[Object]:
    """Mappings in the list at a path."""
    return mappings(at(obj, *path))


def with_value(obj: Object, path: tuple[str, ...], value: Any) -> Object:
    """Copy of the object with another value at a path (None removes it); missing mappings on the way are created.

    Nothing changes if a value on the way is no mapping.
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


def pointer_step(name: str) -> str:
    """Field name as a step of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1") if "~" in name or "/" in name else name
