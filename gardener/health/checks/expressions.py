"""Rules for custom resources that a configuration gives as expressions of CEL, as `healthCheckExprs` of Flux does.

An object whose status is about an earlier generation is in progress. Otherwise `inProgress`, `failed` and `current` are
evaluated in this order, and the first that is true decides; an object for which none is true is in progress.

The library is a binding of Google's implementation and is loaded when there is an expression. It blocks the
process while it evaluates, and it limits the steps of loops (10,000 in all) and the depth of nesting, but not the cost
of single steps, such as `split` of a long text. So a process that serves others passes `rule` an evaluation that can
be ended.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import orjson

from gardener.health.checks.kstatus import NotCurrent, assessed, not_yet_observed
from gardener.health.checks.rule import CheckError, Rule
from kube.objects import Object, metadata

IN_PROGRESS, FAILED, CURRENT = "inProgress", "failed", "current"
LONGEST_EXPRESSION = 2048
"""Characters."""
LARGEST_OBJECT = 64 << 10
"""Bytes of JSON, without `managedFields`."""
LONGEST_SECONDS = 0.2
"""Processor time, for all expressions of an object."""

_ORDER = IN_PROGRESS, FAILED, CURRENT
_VARIABLES = ("apiVersion", "kind", "metadata", "spec", "status")
_SHOWN = 200
_AT = re.compile(r"<input>:\d+:(\d+): ([^\n]*)")
_CODES = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")


class InvalidExpression(ValueError):
    """An expression is invalid; the message has the reason."""


class Expression:
    """A condition on an object.

    Raises:
        InvalidExpression: the text is invalid.
        ImportError: the library is not installed.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._program = _environment().compile(text)
        except RuntimeError as error:
            raise InvalidExpression(_what_is_wrong(str(error))) from None
        found = self._program.return_type().name()
        if found not in {"BOOL", "DYN"}:
            raise InvalidExpression(_not_boolean(found))

    def is_true(self, variables: Mapping[str, Any]) -> bool:
        """Evaluate the expression.

        Raises:
            CheckError: the evaluation failed, or its result is not a boolean.
        """
        try:
            value = self._program.eval(data=variables)
        except RuntimeError as error:
            raise CheckError(_CODES.sub("", str(error))) from None
        match value.type().name():
            case "BOOL":
                return bool(value.value())
            case "ERROR":
                raise CheckError(_CODES.sub("", value.value()))
            case other:
                raise CheckError(_not_boolean(other))


Evaluate = Callable[[Mapping[str, Expression], Mapping[str, Any]], str | None]
"""Returns the name of the first expression that is true of an object. Raises CheckError."""


def first_true(expressions: Mapping[str, Expression], variables: Mapping[str, Any]) -> str | None:
    return next((name for name in _ORDER if name in expressions and _is_true(name, expressions[name], variables)), None)


def rule(group: str, kind: str, expressions: Mapping[str, Expression], *, evaluate: Evaluate = first_true) -> Rule:
    """The rule for all versions of a kind, by its expressions: `current`, and perhaps the others."""

    def assess(obj: Object) -> NotCurrent | None:
        if pending := not_yet_observed(obj):
            return pending
        name = evaluate(expressions, _variables(obj))
        if name is None:
            return NotCurrent(f"{CURRENT} is not true: {expressions[CURRENT].text[:_SHOWN]}")
        reported = f"{name} is true: {expressions[name].text[:_SHOWN]}"
        return None if name == CURRENT else NotCurrent(reported, is_failure=name == FAILED)

    return assessed(group, kind, assess)


def _is_true(name: str, expression: Expression, variables: Mapping[str, Any]) -> bool:
    try:
        return expression.is_true(variables)
    except CheckError as error:
        # Most expressions expect a field that a new object does not have yet.
        if not variables["status"]:
            return False
        raise CheckError(f"expression {name} ({expression.text[:_SHOWN]}): {error}") from None


def _variables(obj: Object) -> dict[str, Any]:
    """Variables of the expressions.

    Raises:
        CheckError: the object is too large.
    """
    found = {name: obj.get(name) or {} for name in _VARIABLES}
    found["metadata"] = {name: value for name, value in metadata(obj).items() if name != "managedFields"}
    try:
        size = len(orjson.dumps(found))
    except TypeError:
        raise CheckError("expressions are not evaluated for objects with such deep nesting") from None
    if size > LARGEST_OBJECT:
        raise CheckError(f"expressions are evaluated for objects of up to {LARGEST_OBJECT} bytes, it has {size}")
    return found


@cache
def _environment() -> Any:
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_optional, ext_strings

    return cel.NewEnv(
        variables=dict.fromkeys(_VARIABLES, cel.Type.DYN),
        extensions=[ext_optional.ExtOptional(), ext_strings.ExtStrings()],
    )


def _not_boolean(found: str) -> str:
    return f"must be true or false, is of type {found.lower()}"


def _what_is_wrong(text: str) -> str:
    """The library's errors in one line, by column; without the expression, which the caller adds."""
    found = [f"at column {column}: {problem}" for column, problem in _AT.findall(text)]
    if any("undeclared reference" in problem for problem in found):
        found.append(f"fields of the object begin with one of {', '.join(_VARIABLES)}")
    return "; ".join(found) or _CODES.sub("", text)
