"""Conversion of a parsed document to typed blocks, by the declarations of the schema.

Lenient, for readers and writers of many versions: unknown fields are warnings, null is unset. A wrong type is an error,
and so is an unknown field of a block with `REFUSES_UNKNOWN_FIELDS`. One pass finds all errors of a document.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from kube.clock import parse_duration
from kube.validation import FieldError, forbidden, shown
from process.configuration.fields import Both, Duration, Member, is_block, is_list, is_map, join, members, without_none

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

B = TypeVar("B", bound="DataclassInstance")

_WANTED = {bool: "a boolean", int: "an integer", float: "a number", str: "a string"}
IDENTITY = frozenset({"apiVersion", "kind"})
"""Fields of every document, in addition to those of its schema."""
_INT64 = 2**63
_SHOWN = 40  # characters of an invalid value in an error


@dataclass(slots=True)
class Decoder:
    """Collects errors during the walk: `errors` of types, `conflicts` of names, `warnings`."""

    errors: list[str] = field(default_factory=list)
    conflicts: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    """Warnings about unknown fields, one of which may be misspelt."""

    def block(self, default: B, raw: Any, path: str = "") -> B:
        """Return the default with the fields that `raw` sets."""
        if not isinstance(raw, Mapping):
            self._wrong(path, "an object", raw)
            return default
        given = {str(name): value for name, value in raw.items()}
        values = {}
        for member in members(type(default)):
            value = self._member(member, given, path, getattr(default, member.attribute))
            if value is not None:
                values[member.attribute] = value
        self._report_unknown(type(default), given, path)
        return replace(default, **values)

    def _member(self, member: Member, given: Mapping[str, Any], path: str, default: Any) -> Any:
        """Return the value of a field; None for its default."""
        kind, where = without_none(member.kind), join(path, member.name)
        raw = given.get(member.name)
        value = None if raw is None else self._value(kind, raw, where, default)
        alias = member.setting.alias
        if alias is not None and given.get(alias.name) is not None:
            other = join(path, alias.name)
            aliased = alias.convert(self._value(alias.kind or kind, given[alias.name], other, default))
            if value is None:
                self.warnings.append(f"{other}: used as {where}; rename it")
                value = aliased
            else:
                self._conflict(alias.both, other, where, agree=aliased == value)
        # Go writes zero values for unset fields.
        return None if member.setting.zero_is_unset and not value else value

    def _conflict(self, both: Both, other: str, where: str, *, agree: bool) -> None:
        if both is Both.NOT_TOGETHER:
            self.conflicts.append(forbidden(other, f"must not be given together with {where}"))
        elif both is Both.MUST_AGREE and not agree:
            self.conflicts.append(forbidden(other, f"must not differ from {where}, which is also set"))
        else:
            self.warnings.append(f"{other}: ignored, since {where} is also set")

    def _report_unknown(self, cls: type, given: Mapping[str, Any], path: str) -> None:
        names = {m.name for m in members(cls)} | {m.setting.alias.name for m in members(cls) if m.setting.alias}
        if not path:
            names |= IDENTITY
        by_lower_case = {name.lower(): name for name in sorted(names)}
        for unknown in (name for name in given if name not in names):
            from difflib import get_close_matches  # only for typing errors

            near = get_close_matches(unknown.lower(), by_lower_case, n=1)
            hint = f"; did you mean {join(path, by_lower_case[near[0]])}?" if near else ""
            if getattr(cls, "REFUSES_UNKNOWN_FIELDS", False):
                self.errors.append(f"{join(path, _short(unknown))}: unknown field{hint}")
            else:
                self.unknown.append(f"{join(path, _short(unknown))}: unknown field, ignored{hint}")
                self.warnings.append(self.unknown[-1])

    def _value(self, kind: Any, raw: Any, path: str, default: Any = None) -> Any:
        if kind == Duration:
            return self._duration(raw, path)
        if is_block(kind):
            return self.block(kind() if default is None else default, {} if raw is None else raw, path)
        if is_list(kind):
            return self._list(get_args(kind)[0], raw, path)
        if is_map(kind):
            return self._map(get_args(kind)[1], raw, path)
        if kind is Any:
            return raw
        return self._scalar(kind, raw, path)

    def _list(self, kind: Any, raw: Any, path: str) -> tuple[Any, ...]:
        if not isinstance(raw, list):
            self._wrong(path, "a list", raw)
            return ()
        return tuple(self._value(kind, element, f"{path}[{index}]") for index, element in enumerate(raw))

    def _map(self, kind: Any, raw: Any, path: str) -> dict[str, Any]:
        if not isinstance(raw, Mapping):
            self._wrong(path, "an object", raw)
            return {}
        return {str(name): self._value(kind, value, f"{path}[{name}]") for name, value in raw.items()}

    def _duration(self, raw: Any, path: str) -> float:
        if not isinstance(raw, str):
            self._wrong(path, 'a duration such as "1h30m"', raw)
            return 0.0
        try:
            return parse_duration(raw)
        except ValueError as error:
            self.errors.append(f"{path}: {error}")
            return 0.0

    def _scalar(self, kind: type, raw: Any, path: str) -> Any:
        if raw is None:  # as an element of a list or map; elsewhere null is unset
            return kind()
        if kind in {int, float}:
            number = isinstance(raw, int | float) and not isinstance(raw, bool)
            if number and abs(raw) < _INT64 and (kind is float or raw == int(raw)):  # not nan, not infinite
                return kind(raw)
        elif isinstance(raw, kind):
            return raw
        self._wrong(path, _WANTED[kind], raw)
        return kind()

    def _wrong(self, path: str, wanted: str, raw: Any) -> None:
        self.errors.append(f"{path or 'the document'}: expected {wanted}, found {_found(raw)}")


def _found(raw: Any) -> str:
    match raw:
        case None:
            return "null"
        case bool():
            return f"the boolean {shown(raw)}"
        case int() if abs(raw) >= _INT64:
            return "a number of more than 64 bits"
        case int() | float():
            return f"the number {raw}"
        case str():
            return f"the string {shown(_short(raw))}"
        case list():
            return "a list"
        case Mapping():
            return "an object"
        case _:
            return f"a value of type {type(raw).__name__}"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
