"""Fields of custom objects that their CustomResourceDefinition does not have, determined without an API server.

By the rules of structural schemas: fields without a place in a schema are pruned, unless the schema preserves them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kube.differences import path_text
from kube.objects import Object, group_of, mappings, spec

_GROUP = "apiextensions.k8s.io"
_OF_ALL = frozenset({"apiVersion", "kind", "metadata"})
_KEEPS = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_DEEPEST = 64

Schemas = Mapping[tuple[str, str], Mapping[str, Any]]
"""Schemas by apiVersion and kind."""


def schemas_in(objects: Iterable[Object]) -> Schemas:
    """Schemas of the CustomResourceDefinitions among the objects."""
    found = {}
    for obj in objects:
        if obj.get("kind") != "CustomResourceDefinition" or group_of(str(obj.get("apiVersion"))) != _GROUP:
            continue
        of_crd = spec(obj)
        names = of_crd.get("names")
        for version in mappings(of_crd.get("versions")):
            of_version = version.get("schema")
            schema = of_version.get("openAPIV3Schema") if isinstance(of_version, dict) else None
            if isinstance(schema, dict) and isinstance(names, dict):
                found[f"{of_crd.get('group')}/{version.get('name')}", str(names.get("kind"))] = schema
    return found


def unknown_fields(obj: Object, schemas: Schemas) -> list[str]:
    """Warnings like those of API servers; empty if there is no schema for the object."""
    schema = schemas.get((str(obj.get("apiVersion")), str(obj.get("kind"))))
    if schema is None:
        return []
    rest = {name: value for name, value in obj.items() if name not in _OF_ALL}
    return [f'unknown field "{path_text(path)}"' for path in _unknown(rest, schema, ())]


def _unknown(value: Any, schema: Any, path: Sequence[str | int]) -> Iterator[Sequence[str | int]]:
    if not isinstance(schema, dict) or len(path) > _DEEPEST:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(item, schema.get("items"), (*path, index))
    elif isinstance(value, dict):
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        others = schema.get("additionalProperties")
        for name, inner in value.items():
            below = (*path, name)
            if name in properties:
                yield from _unknown(inner, properties[name], below)
            elif others:
                yield from _unknown(inner, others, below)
            elif not schema.get(_KEEPS) and not (schema.get(_EMBEDDED) and name in _OF_ALL):
                yield below
