"""Offline processing of custom resources as by an API server: defaults, unknown fields, validation.

Findings have the wording and order of the API server: values first, then duplicate list entries, then CEL rules, which
are skipped while a value is missing or of a wrong type.

Nothing here raises, for any JSON. CEL needs the extra `cel`; without it `rules_are_checked` is false.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Any

from gardener.api.expressions import failed_rules, has_rules
from gardener.api.schema import Schema
from kube.validation import (
    ErrorKind,
    FieldError,
    duplicate,
    invalid,
    not_supported,
    required,
    shown,
    too_long,
    too_many,
)

_ROOT_FIELDS = ("apiVersion", "kind", "metadata")


def with_defaults(schema: Schema, value: Any) -> Any:
    """The value with the defaults of the schema, also of those in defaults; shares unchanged parts with `value`.

    As in the API server, a null field that the schema does not allow to be null counts as absent.
    """
    match value:
        case dict():
            return _object_with_defaults(schema, value)
        case list() if "items" in schema:
            return [with_defaults(schema["items"], entry) for entry in value]
        case _:
            return value


def _object_with_defaults(schema: Schema, value: Mapping[str, Any]) -> dict[str, Any]:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    filled = {
        field: inner
        for field, inner in value.items()
        if inner is not None or (below := _below(schema, field)) is None or below.get("nullable")
    }
    for field, inner in properties.items():
        if field not in filled and "default" in inner:
            filled[field] = inner["default"]
    return {
        field: inner if (below := _below(schema, field)) is None else with_defaults(below, inner)
        for field, inner in filled.items()
    }


def pruned(schema: Schema, value: Any, *, root: bool = True) -> Any:
    """The value without fields that the API server would not store."""
    match value:
        case dict() if not schema.get("x-kubernetes-preserve-unknown-fields"):
            return {
                field: inner if root and field in _ROOT_FIELDS else pruned(below, inner, root=False)
                for field, inner in value.items()
                if (below := _below(schema, field)) is not None
            }
        case list():
            return [pruned(schema.get("items", {}), entry, root=False) for entry in value]
        case _:
            return value


def _below(schema: Schema, field: str) -> Schema | None:
    """The schema of a field; None if it is unknown."""
    found = schema.get("properties", {}).get(field, schema.get("additionalProperties"))
    return found if isinstance(found, dict) else None


def unknown_fields(schema: Schema, obj: Mapping[str, Any]) -> list[str]:
    """Paths of fields that the API server would not store, in the order of the object; fields of metadata are known."""
    return list(_unknown(schema, obj, "", root=True))


def _unknown(schema: Schema, value: Any, path: str, *, root: bool = False) -> Iterator[str]:
    match value:
        case dict() if not schema.get("x-kubernetes-preserve-unknown-fields"):
            for field, inner in value.items():
                if root and field in _ROOT_FIELDS:
                    continue
                if (below := _below(schema, field)) is None:
                    yield _join(path, field)
                else:
                    yield from _unknown(below, inner, _join(path, field))
        case list():
            for index, entry in enumerate(value):
                yield from _unknown(schema.get("items", {}), entry, f"{path}[{index}]")


def errors(schema: Schema, obj: Any, *, old: Any = None) -> list[FieldError]:
    """The findings about an object with its defaults; with `old`, its predecessor, also those about the change."""
    found = [*_value_errors(schema, obj, ""), *_duplicates(schema, obj, "")]
    if any(_blocks_rules(error) for error in found):
        return [*found, invalid(_NOWHERE, None, _NOT_CHECKED)] if has_rules(schema) else found
    return [*found, *failed_rules(schema, obj, old)]


_NOWHERE = "<nil>"
_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid;"
    " correct the existing errors to complete validation"
)


def _blocks_rules(error: FieldError) -> bool:
    """Whether rules are skipped: they might fail on such a value, or cost too much."""
    blocking = {ErrorKind.REQUIRED, ErrorKind.TOO_LONG, ErrorKind.TOO_MANY, ErrorKind.NOT_SUPPORTED}
    return error.kind in blocking or " in body must be of type " in error.detail


# --- values


def _value_errors(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    if value is None and schema.get("nullable"):
        return
    if (choices := schema.get("enum")) and value not in choices:
        yield not_supported(path, value, choices)
    if wrong := list(_type_errors(schema, value, path)):
        yield from wrong
        return
    match value:
        case dict():
            yield from _object_errors(schema, value, path)
        case list():
            yield from _bounds(schema, len(value), path, _ITEMS)
            for index, entry in enumerate(value):
                yield from _value_errors(schema.get("items", {}), entry, f"{path}[{index}]")
        case str():
            yield from _string_errors(schema, value, path)
        case int() | float() if not isinstance(value, bool):
            yield from _number_errors(schema, value, path)


def _object_errors(schema: Schema, value: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    yield from (required(_join(path, field)) for field in schema.get("required", ()) if field not in value)
    yield from _bounds(schema, len(value), path, _PROPERTIES)
    for field, inner in value.items():
        if (below := _below(schema, field)) is not None:
            yield from _value_errors(below, inner, _join(path, field))


def _string_errors(schema: Schema, value: str, path: str) -> Iterator[FieldError]:
    most, least, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if most is not None and len(value) > most:
        yield too_long(path, most=most)
    elif least is not None and len(value) < least:
        yield invalid(path, value, f"{path} in body should be at least {least} chars long")
    elif pattern and not _compiled(pattern).search(value):
        yield invalid(path, value, f"{path} in body should match '{pattern}'")
    if schema.get("format") == "date-time" and not _is_date_time(value):
        yield invalid(path, value, f"{path} in body must be of type date-time: {shown(value)}")


def _number_errors(schema: Schema, value: float, path: str) -> Iterator[FieldError]:
    most, least = schema.get("maximum"), schema.get("minimum")
    if schema.get("format") == "int32" and not -(2**31) <= value < 2**31:
        yield _out_of_range(path, "int32")
    if most is not None and value > most:
        yield invalid(path, value, f"{path} in body should be less than or equal to {shown(most)}")
    if least is not None and value < least:
        yield invalid(path, value, f"{path} in body should be greater than or equal to {shown(least)}")


_ITEMS = ("minItems", "maxItems", "items")
_PROPERTIES = ("minProperties", "maxProperties", "properties")


def _bounds(schema: Schema, count: int, path: str, words: tuple[str, str, str]) -> Iterator[FieldError]:
    least, most, what = schema.get(words[0]), schema.get(words[1]), words[2]
    if most is not None and count > most:
        yield too_many(path, count, most=most)
    if least is not None and count < least:
        yield invalid(path, count, f"{path} in body should have at least {least} {what}")


def _type_errors(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    found, form = _type(value), schema.get("format")
    if schema.get("x-kubernetes-int-or-string"):
        if found not in {"integer", "string"}:
            yield _of_type(path, found, "integer,string")
            yield invalid(_NOWHERE, "", f'"{path}" must validate at least one schema (anyOf)')
            yield _of_type(path, found, "integer")
            if found == "number":
                yield invalid(_NOWHERE, "", f"Checked value must be of type integer (default format) in {path}")
        return
    expected = schema.get("type")
    if expected in {None, found} or (expected == "number" and found == "integer"):
        return
    if form is None or found in _REPORTED_BY_TYPE[expected]:
        yield _of_type(path, found, expected)
    elif found != "array":
        # The API server reports the format instead of the type then, and ignores lists.
        yield _of_type(path, _GO_TYPES.get(found, ""), form)
        if (expected, found) == ("integer", "number"):
            yield _out_of_range(path, form)


_REPORTED_BY_TYPE: Mapping[str, tuple[str, ...]] = {
    "integer": ("array", "string", "null"),
    "number": ("array", "string", "null"),
    "string": ("null",),
}
_GO_TYPES = {"integer": "int64", "number": "float64"}


def _of_type(path: str, found: str, expected: str) -> FieldError:
    return invalid(path, found, f"{path} in body must be of type {expected}: {shown(found)}")


def _out_of_range(path: str, form: str) -> FieldError:
    return invalid(_NOWHERE, "", f"Checked value must be of type integer with format {form} in {path}")


def _type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer" if -(2**63) <= value < 2**63 else "number"
        case float():
            return "integer" if value.is_integer() and abs(value) < 2**63 else "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _is_date_time(value: str) -> bool:
    parts = _DATE_TIME.fullmatch(value)
    if parts is None:
        return False
    try:
        datetime.fromisoformat(f"{parts[1]}T{parts[2]}")
    except ValueError:
        return False
    return True


_DATE_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("$", r"\Z"), re.ASCII)


# --- lists


def _duplicates(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:
    match value:
        case dict():
            for field, inner in value.items():
                if (below := _below(schema, field)) is not None:
                    yield from _duplicates(below, inner, _join(path, field))
        case list():
            yield from _duplicate_entries(schema, value, path)
            for index, entry in enumerate(value):
                yield from _duplicates(schema.get("items", {}), entry, f"{path}[{index}]")


def _duplicate_entries(schema: Schema, entries: list[Any], path: str) -> Iterator[FieldError]:
    kind = schema.get("x-kubernetes-list-type")
    if kind not in {"map", "set"}:
        return
    keys = schema.get("x-kubernetes-list-map-keys", ())
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        if entry is None:
            continue
        if kind == "map" and not isinstance(entry, dict):
            yield invalid(f"{path}[{index}]", entry, "must be an object for an array of list-type map")
            return
        identity = {key: entry[key] for key in keys if key in entry} if kind == "map" else entry
        if (text := json.dumps(identity, sort_keys=True)) in seen:
            yield duplicate(f"{path}[{index}]", identity)
        seen.add(text)


def _join(path: str, field: str) -> str:
    return f"{path}.{field}" if path else field
