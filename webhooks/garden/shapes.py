"""Of which types the fields of a kind are, from its description.

The API server compares an object with its schema only after mutating webhooks have seen it. Rules need no care for
that: an object that is not of this shape does not come to them. Bounds, enums and patterns are not looked at here.
"""

from types import GenericAlias
from typing import Any

from gardener.garden.definitions import Definition
from gardener.garden.schema import Schema
from webhooks.shapes import METADATA, Shape, type_of


def shape_of(definition: Definition) -> Shape:
    fields = {
        name: _type(inner)
        for name, inner in definition.schema["properties"].items()
        if name not in {"apiVersion", "kind", "metadata"}
    }
    return Shape(definition.resource.api_version, definition.resource.kind, {"metadata": METADATA, **fields})


def _type(schema: Schema) -> Any:
    if schema.get("x-kubernetes-int-or-string"):
        return int | str
    match schema.get("type"):
        case "object":
            return _object(schema)
        case "array":
            return [_type(schema["items"])]
        case "string":
            return str
        case "boolean":
            return bool
        case "integer":
            return int
        case "number":
            return float
        case _:
            return Any


def _object(schema: Schema) -> Any:
    if properties := schema.get("properties"):
        return {name: _type(inner) for name, inner in properties.items()}
    values = schema.get("additionalProperties")
    return GenericAlias(dict, (str, type_of(_type(values)) if isinstance(values, dict) else Any))
