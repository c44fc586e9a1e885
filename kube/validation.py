"""Errors of fields in the wording of the Kubernetes API server, and the rules of parts that many kinds have.

An error reads `<path>: <kind>[: <value>][: <detail>]`, for example
`spec.replicas: Invalid value: -1: must be greater than or equal to 0`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kube.names import label_name_problems, label_value_problems
from kube.objects import Object

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

MOST_OF_ANNOTATIONS = 256 << 10
"""Limit for names and values together, in bytes."""

Value = str | int | float | bool | None | Sequence["Value"] | Mapping[str, "Value"]
"""JSON value."""


class ErrorKind(StrEnum):
    REQUIRED = "Required value"
    NOT_FOUND = "Not found"
    INVALID = "Invalid value"
    NOT_SUPPORTED = "Unsupported value"
    DUPLICATE = "Duplicate value"
    FORBIDDEN = "Forbidden"
    TOO_LONG = "Too long"
    TOO_MANY = "Too many"

    @property
    def reason(self) -> str:
        """Name of the kind among the causes of a Status."""
        return f"FieldValue{self.name.title().replace('_', '')}"


@dataclass(frozen=True, slots=True)
class FieldError:
    """Error in one field. `value` is the offending value in its displayed form."""

    kind: ErrorKind
    path: str
    value: str = ""
    detail: str = ""

    @property
    def body(self) -> str:
        """Error without the path."""
        return ": ".join(part for part in (self.kind, self.value, self.detail) if part)

    def __str__(self) -> str:
        return ": ".join(part for part in (self.path, self.body) if part)


def invalid_status(*, group: str, kind: str, name: str, errors: Sequence[FieldError]) -> Object:
    """Status by which an API server refuses an object, 422. Its message lists equal texts only once."""
    texts = list(dict.fromkeys(map(str, errors)))
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    causes = [{"reason": error.kind.reason, "message": error.body, "field": error.path} for error in errors]
    return {
        "status": "Failure",
        "message": f"{kind}.{group} {shown(name)} is invalid: {listed}",
        "reason": "Invalid",
        "details": {"name": name, "group": group, "kind": kind, "causes": causes},
        "code": 422,
    }


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(ErrorKind.REQUIRED, path, detail=detail)


def not_found(path: str, value: Value, detail: str = "") -> FieldError:
    return FieldError(ErrorKind.NOT_FOUND, path, shown(value), detail)


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError(ErrorKind.FORBIDDEN, path, detail=detail)


def invalid(path: str, value: Value, detail: str) -> FieldError:
    return FieldError(ErrorKind.INVALID, path, shown(value), detail)


def invalid_for(path: str, value: Value, problems: Iterable[str]) -> Iterator[FieldError]:
    """An error for each problem found by the functions of `kube.names`."""
    return (invalid(path, value, problem) for problem in problems)


def not_supported(path: str, value: Value, supported: Iterable[str]) -> FieldError:
    choices = ", ".join(map(shown, supported))
    return FieldError(ErrorKind.NOT_SUPPORTED, path, shown(value), f"supported values: {choices}")


def duplicate(path: str, value: Value) -> FieldError:
    return FieldError(ErrorKind.DUPLICATE, path, shown(value))


def duplicates(path: str, values: Iterable[str], *, field: str = "") -> Iterator[FieldError]:
    """An error for each value in a list, or in a field of its entries, that an earlier one has, too."""
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            yield duplicate(f"{path}[{index}].{field}" if field else f"{path}[{index}]", value)
        seen.add(value)


def too_long(path: str, *, most: int) -> FieldError:
    return FieldError(ErrorKind.TOO_LONG, path, detail=f"may not be more than {most} bytes")


def too_many(path: str, count: int, *, most: int) -> FieldError:
    items = "item" if most == 1 else "items"
    return FieldError(ErrorKind.TOO_MANY, path, shown(count), f"must have at most {most} {items}")


def shown(value: Value) -> str:
    """Format a value as Go prints it in such an error: quoted strings, whole numbers without fraction, compact JSON."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def label_selector_errors(path: str, selector: Mapping[str, Any]) -> Iterator[FieldError]:
    """Errors of a metav1.LabelSelector."""
    yield from label_errors(f"{path}.matchLabels", selector.get("matchLabels") or {})
    for index, expression in enumerate(selector.get("matchExpressions") or []):
        yield from _expression_errors(f"{path}.matchExpressions[{index}]", expression)


def label_errors(path: str, labels: Mapping[str, str]) -> Iterator[FieldError]:
    """Errors of a map of labels, all at the path of the map."""
    for name, value in labels.items():
        yield from _label_name(path, name)
        yield from _label_value(path, value)


def annotation_errors(path: str, annotations: Mapping[str, str]) -> Iterator[FieldError]:
    """Errors of a map of annotations, all at the path of the map."""
    for name in annotations:
        yield from _label_name(path, name.lower())
    if sum(len(name) + len(value) for name, value in annotations.items()) > MOST_OF_ANNOTATIONS:
        yield too_long(path, most=MOST_OF_ANNOTATIONS)


def _expression_errors(path: str, expression: Mapping[str, Any]) -> Iterator[FieldError]:
    values = expression.get("values") or []
    match operator := expression.get("operator") or "":
        case "In" | "NotIn":
            if not values:
                yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield forbidden(f"{path}.values", detail)
        case _:
            yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    yield from _label_name(f"{path}.key", expression.get("key") or "")
    for index, value in enumerate(values):
        yield from _label_value(f"{path}.values[{index}]", value)


def toleration_errors(path: str, toleration: Mapping[str, Any]) -> Iterator[FieldError]:
    name, value = toleration.get("key") or "", toleration.get("value") or ""
    operator, effect = toleration.get("operator") or "", toleration.get("effect") or ""
    if name:
        yield from _label_name(f"{path}.key", name)
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{path}.operator", operator, detail)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid(f"{path}.effect", effect, detail)
    match operator:
        case "" | "Equal":
            yield from _label_value(f"{path}.operator", value)
        case "Exists":
            if value:
                detail = "value must be empty when `operator` is 'Exists'"
                yield invalid(f"{path}.operator", value, detail)
        case _:
            yield not_supported(f"{path}.operator", operator, ("Equal", "Exists"))
    if effect and effect not in TAINT_EFFECTS:
        yield not_supported(f"{path}.effect", effect, TAINT_EFFECTS)


def _label_name(path: str, name: str) -> Iterator[FieldError]:
    return invalid_for(path, name, label_name_problems(name))


def _label_value(path: str, value: str) -> Iterator[FieldError]:
    return invalid_for(path, value, label_value_problems(value))
