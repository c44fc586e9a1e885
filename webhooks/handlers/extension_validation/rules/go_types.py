"""Types of extension resources, made from the descriptions of their kinds.

`gardener.api.extensions` has the fields, their types and their order. Messages of the original report differences in
terms of Go types, which a description lacks: whether a field is a pointer, the name of the type that it points to, and
the name of the field if it differs from that in JSON. By convention
- a field that is required holds its value, others are pointers; lists and maps may be nil;
- a field is named as in JSON, with a capital letter or, if its first word is an acronym, capitals.

A dictionary has the exceptions, by path, as declarations in Go:

    "pools[].volume": "*Volume"                                  a pointer; of this package if none is named
    "pools[].machineImage": "value"                              not required, but no pointer
    "pools[].machineControllerManager": "Settings *v1beta1.Settings"    with the name of the field
    "pools[].userData": "-"                                      removed from the original
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Union

import msgspec

from gardener.api.definition import Definition
from gardener.api.extensions.common import SPEC
from gardener.api.schema import BASE64, DURATION, QUANTITY, Schema
from webhooks.handlers.extension_validation.rules.metadata import Resource
from webhooks.handlers.extension_validation.rules.typed import Duration, Member, Quantity, Time, Typed, Uint32
from webhooks.rules.shapes import Int32, Int64

Declarations = Mapping[str, str]

_EMBEDDED = {field.removesuffix("*"): "DefaultSpec" for field in SPEC}
_DECLARED: Declarations = {"class": "*ExtensionClass", "secretRef.namespace": "value"}
_ACRONYMS = frozenset({"api", "cidr", "cpu", "cri", "ip", "pid", "ssh", "ttl", "uid", "url"})
_KEYWORDS = frozenset({"class", "except"})
_PRESERVED, _INT_OR_STRING = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"


def typed(definition: Definition, declarations: Declarations, *, status: Collection[str] = ()) -> type[Resource]:
    """Return the type of a kind's objects.

    Args:
        definition: its description.
        declarations: exceptions from the convention in the spec; and below `status.` in the status.
        status: fields of the status that rules read; all others may be anything.

    Raises:
        ValueError: the declarations do not fit the description.
    """
    kind = definition.resource.kind
    declared = {**_DECLARED, **declarations}
    schemas = definition.schema["properties"]
    parts = {"spec": _struct(schemas["spec"], declared, "", embedded=_EMBEDDED)}
    if status:
        properties = {field: schemas["status"]["properties"][field] for field in status}
        parts["status"] = _struct({"properties": properties}, declared, "status.")
    if unknown := declarations.keys() - {*_paths(schemas["spec"], ""), *_paths(schemas["status"], "status")}:
        raise ValueError(f"{kind} has no {', '.join(sorted(unknown))}")
    made: type[Resource] = msgspec.defstruct(  # type: ignore[assignment]
        kind,
        [(name, part, part()) for name, part in parts.items()],
        bases=(Resource,),
        frozen=True,
        kw_only=True,
        gc=False,
    )
    return made


def _paths(schema: Schema, path: str) -> Iterator[str]:
    yield path
    for field, inner in schema.get("properties", {}).items():
        yield from _paths(inner, f"{path}.{field}" if path else field)
    if items := schema.get("items"):
        yield from _paths(items, f"{path}[]")


@dataclass(frozen=True, slots=True)
class _Declared:
    """Declaration of a field in Go. `pointer` is the type that it points to."""

    name: str
    embedded: str
    pointer: str
    is_nil: bool
    """Whether it may be nil."""


def _struct(
    schema: Schema, declarations: Declarations, path: str, *, embedded: Mapping[str, str] | None = None
) -> type[Typed]:
    fields: list[tuple[str, Any, Any]] = []
    members = []
    for field, inner in schema["properties"].items():
        declaration = declarations.get(f"{path}{field}", "")
        if declaration == "-":
            continue
        declared = _declared(field, inner, declaration, is_required=field in schema.get("required", ()))
        kind = _type(inner, declared.pointer, declarations, f"{path}{field}")
        attribute = f"{field}_" if field in _KEYWORDS else field
        # A union created at run time.
        fields.append((attribute, Union[kind, None], None) if declared.is_nil else (attribute, kind, _zero(kind)))  # noqa: UP007
        members.append(
            Member(
                attribute=attribute,
                name=field,
                go_name=declared.name,
                embedded=declared.embedded or (embedded or {}).get(field, ""),
                pointer=declared.pointer,
                empty="<nil>" if declared.pointer else "map[]" if "additionalProperties" in inner else "[]",
            )
        )
    made: type[Typed] = msgspec.defstruct(  # type: ignore[assignment]
        path.rstrip(".[]") or "spec",
        fields,
        bases=(Typed,),
        namespace={"declared": tuple(members)},
        rename={f"{keyword}_": keyword for keyword in _KEYWORDS},
        frozen=True,
        kw_only=True,
        gc=False,
    )
    return made


def _declared(field: str, schema: Schema, declaration: str, *, is_required: bool) -> _Declared:
    """Return the declaration of a field.

    Raises:
        ValueError: the type that the field points to has no name.
    """
    words = declaration.split()
    own_type = words.pop() if words and (words[-1].startswith("*") or words[-1] == "value") else ""
    embedded, _, name = (words[0] if words else _go_name(field)).rpartition(".")
    is_container = schema.get("type") == "array" or "additionalProperties" in schema or schema.get("pattern") == BASE64
    if own_type.startswith("*"):
        pointer = own_type[1:] if "." in own_type or own_type[1:].islower() else f"v1alpha1.{own_type[1:]}"
    elif own_type or is_container or (is_required and not schema.get(_PRESERVED)):
        pointer = ""
    else:
        pointer = _go_type(schema)
        if not pointer:
            raise ValueError(f"{field} points to a type that is not declared")
    return _Declared(name, embedded, pointer, is_nil=bool(pointer) or is_container)


def _go_name(field: str) -> str:
    first = len(field) - len(field.lstrip("abcdefghijklmnopqrstuvwxyz"))
    word = field[:first]
    return (word.upper() if word in _ACRONYMS else word.capitalize()) + field[first:]


def _go_type(schema: Schema) -> str:
    if schema.get(_PRESERVED):
        return "runtime.RawExtension"
    if schema.get(_INT_OR_STRING):
        return "resource.Quantity"
    match schema.get("type"), schema.get("format"), schema.get("pattern"):
        case "string", "date-time", _:
            return "v1.Time"
        case "string", _, pattern if pattern == DURATION:
            return "v1.Duration"
        case "integer", str(bits), _:
            return bits
        case "boolean", _, _:
            return "bool"
        case "string", _, _:
            return "string"
        case _:
            return ""


_BY_GO_TYPE: Mapping[str, Any] = {
    "bool": bool,
    "int32": Int32,
    "int64": Int64,
    "string": str,
    "v1.Duration": Duration,
    "v1.Time": Time,
}


def _type(schema: Schema, pointer: str, declarations: Declarations, path: str) -> Any:
    """Return the type for decoding a value."""
    if pointer == "uint32":
        return Uint32
    if schema.get(_PRESERVED):
        return Any
    if schema.get(_INT_OR_STRING):
        return Quantity if schema.get("pattern") == QUANTITY else Int32 | str
    if schema.get("pattern") == BASE64:
        return bytes
    if items := schema.get("items"):
        return list[_type(items, "", declarations, f"{path}[]")]  # type: ignore[misc]
    if values := schema.get("additionalProperties"):
        return dict[str, _type(values, "", declarations, f"{path}[]")]  # type: ignore[misc]
    if "properties" in schema:
        return _struct(schema, declarations, f"{path}.")
    return _BY_GO_TYPE[_go_type(schema)]


def _zero(kind: Any) -> Any:
    if kind == Int32 | str:
        return 0
    if isinstance(kind, type):
        return kind()
    return 0  # an integer with bounds
