"""Types and maximum sizes of the fields of a kind, from its description.

The API server validates an object by its schema only after mutating webhooks, and not every request comes from an API
server. Objects of other shapes never reach rules, so these need no checks of types, and their costs are bounded like
the schema. Enums, patterns and minimum sizes are not checked here.
"""

from types import GenericAlias
from typing import Annotated, Any

import msgspec

from gardener.api.definition import Definition
from gardener.api.schema import Schema
from webhooks.rules.shapes import METADATA, Shape, type_of

_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


def shape_of(definition: Definition, *, bounded: bool = True) -> Shape:
    """Return the shape of a kind; unbounded for objects that may have been stored under a more permissive schema."""
    fields = {
        name: _type(inner, bounded)
        for name, inner in definition.schema["properties"].items()
        if name not in {"apiVersion", "kind", "metadata"}
    }
    return Shape(definition.resource.api_version, definition.resource.kind, {"metadata": METADATA, **fields})


def _type(schema: Schema, bounded: bool) -> Any:
    if schema.get("x-kubernetes-int-or-string"):
        return int | str
    match schema.get("type"):
        case "object":
            return _object(schema, bounded)
        case "array":
            items = GenericAlias(list, type_of(_type(schema["items"], bounded)))
            return _at_most(items, schema.get("maxItems") if bounded else None)
        case "string":
            return _at_most(str, schema.get("maxLength") if bounded else None)
        case "boolean":
            return bool
        case "integer":
            return _number(schema) if bounded else int
        case "number":
            return float
        case _:
            return Any


def _object(schema: Schema, bounded: bool) -> Any:
    if properties := schema.get("properties"):
        return {name: _type(inner, bounded) for name, inner in properties.items()}
    values = schema.get("additionalProperties")
    of_values = type_of(_type(values, bounded)) if isinstance(values, dict) else Any
    return _at_most(GenericAlias(dict, (str, of_values)), schema.get("maxProperties") if bounded else None)


def _at_most(of: Any, length: int | None) -> Any:
    return of if length is None else Annotated[of, msgspec.Meta(max_length=length)]


def _number(schema: Schema) -> Any:
    least, most = _RANGES.get(schema.get("format", ""), (None, None))
    return Annotated[int, msgspec.Meta(ge=schema.get("minimum", least), le=schema.get("maximum", most))]
