"""Objects with typed fields, for rules and for messages about differences.

The types of extension resources are made from the descriptions of their kinds, see `go_types`. A field that is None is
not set; one of the wrong type is refused; unknown fields and nulls pass.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache, lru_cache
from typing import Annotated, Any, ClassVar, TypeVar, dataclass_transform

import msgspec

from kube.clock import format_time, parse_duration
from kube.quantities import parse_quantity
from kube.validation import Value
from webhooks.admission import Errored, Refusal


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Typed(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    declared: ClassVar[tuple["Member", ...]] = ()


T = TypeVar("T", bound=Typed)


Uint32 = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
Time = Annotated[datetime, msgspec.Meta(tz=True)]


class Measure:
    """Text that is compared by its value. No dataclass, since msgspec would expect an object."""

    __slots__ = ("text", "value")

    def __init__(self, value: Decimal, text: str) -> None:
        self.value = value
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Measure) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        return self.text


class Quantity(Measure):
    """Quantity of Kubernetes: `1` equals `1000m`."""

    __slots__ = ()


class Duration(Measure):
    """Duration of Go: `1m` equals `60s`."""

    __slots__ = ()


# --- decoding

_LONGEST_MEASURE = 100


def decode(typed: type[T], obj: Any, *, kind: str) -> T:
    """Decode an object; `kind` is its name in the error.

    Raises:
        Refusal: it cannot be decoded, 400.
    """
    try:
        try:
            return msgspec.convert(obj, typed, dec_hook=_special)
        except msgspec.ValidationError:
            # Nulls are so rare that they may cost a second pass.
            return msgspec.convert(_without_nulls(obj), typed, dec_hook=_special)
    except msgspec.ValidationError as error:
        raise Refusal(Errored(400, f"unable to decode into {kind}: {error}")) from None
    except RecursionError:
        raise Refusal(Errored(400, f"unable to decode into {kind}: nested too deeply")) from None


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(member) for name, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_without_nulls(element) for element in value]
    return value


def _special(typed: type, value: Any) -> Any:
    """Decode a quantity or duration.

    Raises:
        ValueError: msgspec reports it as a field of the wrong type.
    """
    if type(value) is str and len(value) <= _LONGEST_MEASURE:
        return _measure(typed, value)
    if typed is Quantity and type(value) in {int, float}:
        return _measure(typed, str(value))
    raise ValueError(f"{type(value).__name__} is no {typed.__name__.lower()}")


@lru_cache(maxsize=1024)
def _measure(typed: type, text: str) -> Measure:
    if typed is Quantity:
        return Quantity(parse_quantity(text), text)
    return Duration(Decimal(parse_duration(text)), text)


# --- what rules and messages need to know of the declarations


@dataclass(frozen=True, slots=True)
class Member:
    """A field of a struct. `pointer` is the type that it points to, empty if it is not a pointer."""

    attribute: str
    name: str
    go_name: str = ""
    embedded: str = ""
    pointer: str = ""
    empty: str = ""
    """Text of the original for an unset value."""


def members(typed: type[Typed]) -> tuple[Member, ...]:
    """Return the fields of a type, with Go declarations if it is made from a description."""
    return typed.declared or _plain_members(typed)


@cache
def _plain_members(typed: type[Typed]) -> tuple[Member, ...]:
    names = zip(typed.__struct_fields__, typed.__struct_encode_fields__, strict=True)
    return tuple(Member(attribute, name) for attribute, name in names)


def value_at(obj: Typed, path: str) -> Any:
    """Return the value at a path such as `spec.secretRef.name`; all its parents must exist."""
    value: Any = obj
    for step in path.split("."):
        typed: type[Typed] = type(value)
        value = getattr(value, _attributes(typed)[step])
    return value


@cache
def _attributes(typed: type[Typed]) -> dict[str, str]:
    return dict(zip(typed.__struct_encode_fields__, typed.__struct_fields__, strict=True))


def as_json(value: Any) -> Value:
    """Return a value as the original would write it, without unset fields."""
    if isinstance(value, Typed):
        found = ((member.name, getattr(value, member.attribute)) for member in members(type(value)))
        return {name: as_json(part) for name, part in found if part is not None}
    if isinstance(value, list):
        return [as_json(element) for element in value]
    if isinstance(value, dict):
        return {name: as_json(element) for name, element in value.items()}
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, bytes):
        encoded: str = msgspec.to_builtins(value)
        return encoded
    return str(value) if isinstance(value, Measure) else value
