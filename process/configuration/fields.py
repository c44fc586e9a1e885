"""Means to declare the schema.

A block of the file is a frozen dataclass. The `setting` in the annotation of each field adds the rest to type and
default: effect, rules for its value, another accepted name. `members` returns these declarations.

    qps: Annotated[float, setting("Requests a second.", zero_is_unset=True)] = 100.0
"""

import dataclasses
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from kube.clock import format_duration
from kube.validation import FieldError

_DURATION = "duration"
Duration = Annotated[float, _DURATION]
"""Seconds; a Go duration such as `1h30m` in the file."""


@dataclass(frozen=True, slots=True)
class Check:
    """A rule for one value: its text for the reference (empty if obvious), and the errors of a value."""

    demand: str
    errors: Callable[[str, Any], Iterator[FieldError]]
    even_if_disabled: bool = False


class Both(StrEnum):
    """Handling of a field that is given under its name and under an alias."""

    ALIAS_IGNORED = "alias ignored"
    MUST_AGREE = "must agree"
    NOT_TOGETHER = "not together"


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name for a field; `kind` and `convert` if its values have another form."""

    name: str
    both: Both = Both.MUST_AGREE
    kind: Any = None
    convert: Callable[[Any], Any] = lambda value: value


@dataclass(frozen=True, slots=True)
class Setting:
    """Declaration of a field.

    Attributes:
        effect: of the field, for the reference.
        name: in the file, if it is not the attribute's in camel case.
        reported_as: name in errors of validation, if it differs.
        zero_is_unset: whether 0, 0s and "" mean the default, since many writers fill in all fields.
    """

    effect: str
    checks: tuple[Check, ...] = ()
    name: str = ""
    alias: Alias | None = None
    reported_as: str = ""
    zero_is_unset: bool = False


def setting(effect: str, *checks: Check, **declared: Any) -> Setting:
    return Setting(effect, checks, **declared)


@dataclass(frozen=True, slots=True)
class Member:
    """One field of a block: `name` in the file, `attribute` in Python."""

    attribute: str
    name: str
    kind: Any
    setting: Setting

    @property
    def reported_as(self) -> str:
        return self.setting.reported_as or self.name


def members(cls: type[Any]) -> list[Member]:
    """Return the declared fields of a block, in their order."""
    annotations = get_type_hints(cls, include_extras=True)
    return [_member(field, annotations[field.name]) for field in dataclasses.fields(cls)]


def _member(field: dataclasses.Field[Any], annotated: Any) -> Member:
    declared = next(extra for extra in annotated.__metadata__ if isinstance(extra, Setting))
    kind = Duration if _DURATION in annotated.__metadata__ else annotated.__origin__
    return Member(field.name, declared.name or camel_case(field.name), kind, declared)


def camel_case(attribute: str) -> str:
    return re.sub(r"_(.)", lambda match: match[1].upper(), attribute)


def without_none(kind: Any) -> Any:
    """Return the type itself of an optional one: X of `X | None`."""
    if type(None) not in get_args(kind):
        return kind
    return next(option for option in get_args(kind) if option is not type(None))


def is_block(kind: Any) -> bool:
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


def is_list(kind: Any) -> bool:
    return get_origin(kind) is tuple


def is_map(kind: Any) -> bool:
    return get_origin(kind) is dict


def join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def as_object(value: Any) -> Any:
    """Return a block as JSON with the names of the file, without empty values, as Go writes a typed object."""
    if not is_block(type(value)):
        return list(map(as_object, value)) if isinstance(value, tuple) else value
    written = ((m.name, as_object(getattr(value, m.attribute))) for m in members(type(value)))
    return {name: content for name, content in written if content is not None and content not in ("", [], {})}


def as_document(block: Any) -> Any:
    """Return a block as in its file, including defaults, with durations as text, without unset or empty values.

    An empty block is left out if it equals none.
    """
    found: dict[str, Any] = {}
    for member in members(type(block)):
        value = getattr(block, member.attribute)
        if value is None or value in ("", (), {}):
            continue
        if without_none(member.kind) == Duration:
            found[member.name] = format_duration(value)
        elif isinstance(value, tuple):
            found[member.name] = [as_document(each) if is_block(type(each)) else each for each in value]
        elif not is_block(type(value)):
            found[member.name] = value
        elif (document := as_document(value)) or without_none(member.kind) is not member.kind:
            found[member.name] = document
    return found
