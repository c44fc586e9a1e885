"""YAML of strangers: it is read in bounds, or refused in one line; and what was read can be written and read again."""

import json

import orjson

from kube.yaml import MAX_DEPTH, Budget, DialectError, load

_VALUES = 5_000
_LONGEST_LINE = 1_000
"""Longer keys can't be read in the flow style."""


def target(data: bytes) -> None:
    budget = Budget(_VALUES)
    try:
        value = load(data, budget=budget)
    except DialectError as error:
        assert str(error)
        assert "\n" not in str(error)
        return
    assert _count(value) <= _VALUES - budget.values + 1
    assert _depth(value) <= MAX_DEPTH + 1
    if _is_encodable(value):
        text = json.dumps(value, ensure_ascii=False, indent=1)
        if text.replace("\n", "").isprintable() and max(map(len, text.split("\n"))) < _LONGEST_LINE:
            assert load(text, budget=Budget(10 * _VALUES)) == value


def _is_encodable(value: object) -> bool:
    try:
        orjson.dumps(value)
    except TypeError:  # a character that is none, or an integer that is too large
        return False
    return True


def _count(value: object) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(_count, value.values()))
    return 1 + sum(map(_count, value)) if isinstance(value, list) else 1


def _depth(value: object) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return 1 + max(map(_depth, inner), default=0)
