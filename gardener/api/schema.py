"""Vocabulary for the descriptions of the kinds of the garden API.

A description is the OpenAPI schema that a CustomResourceDefinition holds, as JSON; the functions here only avoid
repetition. Every value begins with its description, which `kubectl explain` shows: meaning, default, unit.
A star after the name of a field marks it as required:

    SCOPE = struct("Where the quota counts.", {"kind*": string("Kind of the scope.", enum=["Project", "Secret"])})

CEL rules are placed on the object that holds the field they are about, so that they also see its removal. `immutable`
and the others take a path below that object: `immutable("networking.type")`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Schema = dict[str, Any]
"""OpenAPI v3, as far as a CustomResourceDefinition may hold it. Shared between kinds: never changed."""
Rule = dict[str, str]
"""An entry of x-kubernetes-validations."""

LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
"""A label of DNS (RFC 1123)."""
QUANTITY = (
    r"^\+?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""Quantity of Kubernetes; no value in this API can be negative."""
DURATION = "^(-?([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+|0)$"
BASE64 = r"^[A-Za-z0-9+/\r\n]*={0,2}[\r\n]*$"
LONGEST_NAME = 253
"""Maximum length of the name of an object, in characters."""

_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
"""Reserved words of CEL."""


# --- values


def string(
    description: str,
    *,
    default: str | None = None,
    enum: Sequence[str] = (),
    pattern: str = "",
    form: str = "",
    at_least: int = 0,
    at_most: int | None = None,
) -> Schema:
    """A text. `at_least` and `at_most` count characters; `form` is one of the formats of OpenAPI, such as date-time."""
    return _without_empty(
        description=description,
        type="string",
        default=default,
        enum=list(enum),
        pattern=pattern,
        format=form,
        minLength=at_least or None,
        maxLength=at_most,
    )


def integer(
    description: str,
    *,
    default: int | None = None,
    at_least: int | None = None,
    at_most: int | None = None,
    bits: int = 32,
) -> Schema:
    return _without_empty(
        description=description,
        type="integer",
        format=f"int{bits}",
        default=default,
        minimum=at_least,
        maximum=at_most,
    )


def number(
    description: str, *, default: float | None = None, at_least: float | None = None, at_most: float | None = None
) -> Schema:
    return _without_empty(
        description=description, type="number", format="double", default=default, minimum=at_least, maximum=at_most
    )


def boolean(description: str, *, default: bool | None = None) -> Schema:
    return _without_empty(description=description, type="boolean", default=default)


def time(description: str) -> Schema:
    """A moment, RFC 3339."""
    return string(description, form="date-time")


def duration(description: str, *, default: str | None = None) -> Schema:
    """A duration in Go syntax: `1h30m`."""
    return string(description, default=default, pattern=DURATION)


def base64(description: str) -> Schema:
    """Base64 as Go reads it: also empty, and in several lines; the format `byte` of OpenAPI refuses both."""
    return string(description, pattern=BASE64)


def name(description: str, **more: Any) -> Schema:
    """The name of an object."""
    return string(description, at_least=1, at_most=LONGEST_NAME, **more)


def quantity(description: str) -> Schema:
    """An amount as Kubernetes writes it: `500m`, `10Gi`."""
    return {
        "description": description,
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "minimum": 0,
        "pattern": QUANTITY,
    }


def number_or_percentage(description: str, *, default: int | None = None) -> Schema:
    return _without_empty(
        **{
            "description": description,
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "default": default,
        }
    )


def raw(description: str) -> Schema:
    """An object of another API, kept unchanged."""
    return {"description": description, "type": "object", "x-kubernetes-preserve-unknown-fields": True}


def anything(description: str) -> Schema:
    """Any JSON."""
    return {"description": description, "x-kubernetes-preserve-unknown-fields": True}


# --- containers of values


def struct(
    description: str,
    fields: Mapping[str, Schema],
    *,
    rules: Sequence[Rule] = (),
    default: Mapping[str, Any] | None = None,
) -> Schema:
    """An object with these fields; `name*` is required. Defaults of the fields apply in `default`, too."""
    required = [field[:-1] for field in fields if field.endswith("*")]
    return _without_empty(
        **{
            "description": description,
            "type": "object",
            "default": default,
            "required": required,
            "properties": {field.removesuffix("*"): schema for field, schema in fields.items()},
            "x-kubernetes-validations": list(rules),
        }
    )


def array(
    description: str,
    items: Schema,
    *,
    key: str = "",
    at_least: int | None = None,
    at_most: int | None = None,
    unique: bool = False,
    default: Sequence[Any] | None = None,
) -> Schema:
    """A list; with `key` that field identifies entries for merging; with `unique` entries differ."""
    return _without_empty(
        **{
            "description": description,
            "type": "array",
            "default": default,
            "items": items,
            "minItems": at_least,
            "maxItems": at_most,
            "x-kubernetes-list-type": "map" if key else "set" if unique else "atomic",
            "x-kubernetes-list-map-keys": [key] if key else None,
        }
    )


def strings(description: str, **more: Any) -> Schema:
    """A list of texts."""
    return array(description, {"type": "string"}, **more)


def mapping(description: str, values: Schema, *, at_least: int | None = None, at_most: int | None = None) -> Schema:
    return _without_empty(
        description=description,
        type="object",
        additionalProperties=values,
        minProperties=at_least,
        maxProperties=at_most,
    )


def string_map(description: str, **more: Any) -> Schema:
    return mapping(description, {"type": "string"}, **more)


# --- rules


INVALID, FORBIDDEN, REQUIRED = "FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired"
"""Reasons of findings."""


def rule(expression: str, message: str, *, field: str = "", reason: str = INVALID) -> Rule:
    """A CEL rule. `field`: the path that the finding is about, below the object with the rule."""
    path = {"fieldPath": f".{field}"} if field else {}
    return {"rule": expression, "message": message, "reason": reason, **path}


def immutable(path: str, message: str = "field is immutable") -> Rule:
    new, old = present(path), present(path, "oldSelf")
    return rule(f"{new} == {old} && (!{new} || {_at(path)} == {_at(path, 'oldSelf')})", message, field=path)


def immutable_once_set(path: str, message: str = "field is immutable", *, empty_is_unset: bool = False) -> Rule:
    """Rule: a field cannot change once set. `empty_is_unset`: Go writers that do not know a text write an empty one."""
    old = present(path, "oldSelf")
    empty = f" || {_at(path, 'oldSelf')} == ''" if empty_is_unset else ""
    return rule(f"!{old}{empty} || ({present(path)} && {_at(path)} == {_at(path, 'oldSelf')})", message, field=path)


def not_removed(path: str, message: str) -> Rule:
    return rule(f"!{present(path, 'oldSelf')} || {present(path)}", message, field=path)


def not_decreased(path: str, message: str = "may not decrease") -> Rule:
    old = present(path, "oldSelf")
    return rule(f"!{old} || ({present(path)} && {_at(path)} >= {_at(path, 'oldSelf')})", message, field=path)


def exactly_one(fields: Sequence[str], message: str) -> Rule:
    """Rule: exactly one of these fields is set; otherwise the finding is a missing value."""
    given = ", ".join(present(field) for field in fields)
    return rule(f"[{given}].filter(is_given, is_given).size() == 1", message, reason=REQUIRED)


def forbidden(field: str, message: str) -> Rule:
    """Rule for a field that is in the schema only to be refused, instead of being dropped silently."""
    return rule(f"!has(self.{escaped(field)})", message, field=field, reason=FORBIDDEN)


def present(path: str, root: str = "self") -> str:
    """Expression: a value exists at this path; usable inside of larger expressions."""
    steps = [escaped(step) for step in path.split(".")]
    given = " && ".join(f"has({'.'.join((root, *steps[: i + 1]))})" for i in range(len(steps)))
    return given if len(steps) == 1 else f"({given})"


def escaped(field: str) -> str:
    """Name of a field in expressions: reserved words of CEL are enclosed in underscores."""
    return f"__{field}__" if field in _RESERVED else field


def _at(path: str, root: str = "self") -> str:
    return ".".join((root, *map(escaped, path.split("."))))


# --- variants


def but(schema: Schema, description: str = "", **changes: Any) -> Schema:
    """A shared type in another place: with a description of that place, and the differences there.

    A change to None removes.
    """
    changed = {**schema, **({"description": description} if description else {}), **changes}
    return {word: value for word, value in changed.items() if value is not None}


def with_fields(schema: Schema, fields: Mapping[str, Schema], *, without: Iterable[str] = ()) -> Schema:
    """A struct with more fields or others, and without some."""
    gone = {*without, *(field.removesuffix("*") for field in fields)}
    required = [field for field in schema.get("required", ()) if field not in gone]
    more = struct("", fields)
    return but(
        schema,
        required=[*required, *more.get("required", ())] or None,
        properties={
            **{field: inner for field, inner in schema["properties"].items() if field not in gone},
            **more["properties"],
        },
    )


def without_defaults(schema: Schema, *, keep: Callable[[str], bool] = lambda _: False) -> Schema:
    """The same for a template, whose object gets its defaults when it is created; some fields may keep theirs."""
    return {word: _without_defaults(word, value, keep) for word, value in schema.items() if word != "default"}


def _without_defaults(word: str, value: Any, keep: Callable[[str], bool]) -> Any:
    match word:
        case "properties":
            return {
                field: inner if keep(field) else without_defaults(inner, keep=keep) for field, inner in value.items()
            }
        case "items" | "additionalProperties":
            return without_defaults(value, keep=keep)
        case _:
            return value


def _without_empty(**words: Any) -> Schema:
    """Keywords without empty ones; a bound or a default may be zero, false or empty."""
    return {word: value for word, value in words.items() if value or (value is not None and word not in _SAY_SOMETHING)}


_SAY_SOMETHING = frozenset(("enum", "pattern", "format", "required", "x-kubernetes-validations"))
"""Keywords that are left out if they are empty."""
