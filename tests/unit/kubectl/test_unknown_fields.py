"""What a CustomResourceDefinition prunes is known without an API server."""

from typing import Any

import pytest

from kit.kinds import custom_resource, definition
from kit.objects import obj
from kubectl.mr.schema import schemas_in, unknown_fields

WIDGET = custom_resource("example.com", "Widget")
TEXT = {"type": "string"}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("of_spec", "value", "unknown"),
    [
        (schema(size=TEXT), {"size": "s"}, []),
        (schema(size=TEXT), {"size": "s", "color": 1}, ["spec.color"]),
        (schema(a=schema(b=TEXT)), {"a": {"b": 1, "c": {"d": 1}}}, ["spec.a.c"]),
        (schema(a={"type": "array", "items": schema(b=TEXT)}), {"a": [{"b": 1}, {"c": 1}]}, ["spec.a[1].c"]),
        (schema(a={"type": "object", "additionalProperties": TEXT}), {"a": {"x": 1}}, []),
        (schema(a={"type": "object", "additionalProperties": schema()}), {"a": {"x": {"y": 1}}}, ["spec.a.x.y"]),
        (schema(a={"type": "object", "x-kubernetes-preserve-unknown-fields": True}), {"a": {"x": {"y": 1}}}, []),
        (
            schema(a={"x-kubernetes-embedded-resource": True, **schema(spec=schema())}),
            {"a": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"b": 1}, "c": 1}},
            ["spec.a.spec.b", "spec.a.c"],
        ),
        (schema(a=TEXT), {"a": {"b": 1}}, ["spec.a.b"]),
        ({"type": "object", "properties": "damaged", "items": "damaged"}, {"a": [1]}, ["spec.a"]),
    ],
)
def test_what_has_no_place_in_the_schema_is_unknown(of_spec: Any, value: Any, unknown: list[str]) -> None:
    crd = definition(WIDGET)
    crd["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": schema(spec=of_spec)}
    widget = obj("example.com/v1 Widget", "w", spec=value)
    assert unknown_fields(widget, schemas_in([crd, widget])) == [f'unknown field "{path}"' for path in unknown]


@pytest.mark.parametrize("damage", [{}, {"versions": None}, {"versions": [{"schema": None}, {}]}, {"names": 1}])
def test_without_a_schema_nothing_is_known(damage: Any) -> None:
    crd = {**definition(WIDGET), "spec": damage}
    assert unknown_fields(obj("example.com/v1 Widget", "w", spec={"a": 1}), schemas_in([crd])) == []
    assert unknown_fields(obj("v1 Pod", "p", spec={"a": 1}), {}) == []
