"""The CEL rules in a schema, evaluated offline as an API server does, by the library of the extra `cel`."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from gardener.api.schema import Rule, Schema, escaped
from kube.validation import ErrorKind, FieldError

_KINDS = {kind.reason: kind for kind in ErrorKind}


@cache
def rules_are_checked() -> bool:
    """Whether the library is installed."""
    try:
        import cel_expr_python.cel  # noqa: F401
    except ImportError:
        return False
    return True


def has_rules(schema: Schema) -> bool:
    """Whether there is a rule anywhere in the schema."""
    if "x-kubernetes-validations" in schema:
        return True
    below = (*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties"))
    return any(has_rules(inner) for inner in below if isinstance(inner, dict))


def failed_rules(schema: Schema, value: Any, old: Any = None) -> Iterator[FieldError]:
    """Findings of the rules on a value that is valid otherwise; none without the library."""
    if rules_are_checked():
        yield from _failed(schema, value, old, "")


def _failed(schema: Schema, value: Any, old: Any, path: str) -> Iterator[FieldError]:
    if rules := schema.get("x-kubernetes-validations"):
        yield from _failed_here(schema, rules, value, old, path)
    match value:
        case dict():
            before = old if isinstance(old, dict) else {}
            properties, others = schema.get("properties", {}), schema.get("additionalProperties")
            for field, inner in value.items():
                below = properties.get(field, others)
                if isinstance(below, dict):
                    yield from _failed(below, inner, before.get(field), f"{path}.{field}" if path else field)
        case list() if "items" in schema:
            before_of = _correlated(schema, old)
            for index, entry in enumerate(value):
                yield from _failed(schema["items"], entry, before_of(entry), f"{path}[{index}]")


def _correlated(schema: Schema, old: Any) -> Any:
    """Lookup of the old entry that corresponds to an entry; as in the API server, only in lists with keys."""
    keys = schema.get("x-kubernetes-list-map-keys")
    if not keys or not isinstance(old, list):
        return lambda _: None
    known = {tuple(map(repr, map(entry.get, keys))): entry for entry in old if isinstance(entry, dict)}
    return lambda entry: known.get(tuple(map(repr, map(entry.get, keys)))) if isinstance(entry, dict) else None


def _failed_here(schema: Schema, rules: list[Rule], value: Any, old: Any, path: str) -> Iterator[FieldError]:
    given = _as_declared(schema, value)
    before = None if old is None else _as_declared(schema, old)
    for rule in rules:
        if "oldSelf" in rule["rule"] and old is None:
            continue
        variables = {"self": given, "oldSelf": before}
        outcome = _evaluated(rule["rule"], variables)
        if outcome is not True:
            yield _finding(rule, path, outcome)


def _finding(rule: Rule, path: str, problem: str | bool) -> FieldError:
    """Finding in the wording of API servers 1.33 and later, without the value."""
    kind = _KINDS.get(rule.get("reason", ""), ErrorKind.INVALID)
    detail = rule["message"] if problem is False else f"{problem} evaluating rule: {rule['message']}"
    return FieldError(kind, f"{path}{rule.get('fieldPath', '')}".removeprefix("."), detail=detail)


def _evaluated(expression: str, variables: Mapping[str, Any]) -> bool | str:
    """True, false, or the error of the evaluation."""
    try:
        result = compiled(expression).eval(data=variables)
    except RuntimeError as error:
        return str(error)
    match result.type().name():
        case "BOOL":
            return bool(result.value())
        case _:
            return str(result.value())


@cache
def compiled(expression: str) -> Any:
    return _environment().compile(expression)


@cache
def _environment() -> Any:
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_strings

    return cel.NewEnv(variables={"self": cel.Type.DYN, "oldSelf": cel.Type.DYN}, extensions=[ext_strings.ExtStrings()])


def _as_declared(schema: Schema, value: Any) -> Any:
    """The value as rules receive it: fields under their escaped names, and numbers of their declared type.

    A value without a schema can only be compared as a whole, and may hold what the library cannot process.
    """
    match value:
        case _ if schema.get("x-kubernetes-preserve-unknown-fields"):
            return json.dumps(value, sort_keys=True)
        case dict():
            properties: Mapping[str, Schema] = schema.get("properties", {})
            others = schema.get("additionalProperties")
            inside = others if isinstance(others, dict) else {}
            return {
                (escaped(field) if field in properties else field): _as_declared(properties.get(field, inside), inner)
                for field, inner in value.items()
            }
        case list():
            return [_as_declared(schema.get("items", {}), entry) for entry in value]
        case int() if schema.get("type") == "number" and not isinstance(value, bool):
            return float(value)
        case float() if schema.get("type") == "integer" and value.is_integer():
            return int(value)
        case _:
            return value
