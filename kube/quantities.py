"""Resource quantities such as `100m` or `1Gi`."""

import re
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache

_QUANTITY = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:([eE][+-]?\d+)|(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])?)", re.ASCII)
_USUAL_LENGTH = 16
"""Longest value that is cached: most objects have the same few."""
_SUFFIX = {
    **{
        suffix: Decimal(10) ** exponent
        for suffix, exponent in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
    },
    **{suffix: Decimal(1024) ** (i + 1) for i, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))},
}


def parse_quantity(value: str | float) -> Decimal:
    """Value of a resource quantity such as `100m`, `1Gi`, `1e3`. Raises ValueError."""
    text = str(value)
    return _remembered(text) if len(text) <= _USUAL_LENGTH else _parsed(text)


def _parsed(value: str) -> Decimal:
    match = _QUANTITY.fullmatch(value)
    if match is None:
        raise ValueError(f"{value!r} is not a quantity; write a number with an optional suffix such as m, k, Mi")
    number = Decimal(match[1])
    if match[2]:
        try:
            return number.scaleb(int(match[2][1:]))
        except ArithmeticError as error:
            raise ValueError(f"{value!r} is not a quantity; its exponent is out of bounds") from error
    return number * _SUFFIX.get(match[3] or "", Decimal(1))


def added(one: str | float, other: str | float) -> str:
    """Sum, in the unit of one of both if it is a whole number of it. Raises ValueError."""
    return written(parse_quantity(one) + parse_quantity(other), like=(one, other))


def written(total: Decimal, *, like: Iterable[str | float]) -> str:
    """Quantity in the unit of one of these if it is a whole number of it."""
    for unit in (*map(_unit, like), "", "m", "u", "n"):
        amount = total / _SUFFIX.get(unit, Decimal(1))
        if amount == amount.to_integral_value():
            return f"{int(amount)}{unit}"
    return f"{total:f}"


def _unit(value: str | float) -> str:
    match = _QUANTITY.fullmatch(str(value))
    return (match[3] or "") if match else ""


_remembered = lru_cache(maxsize=1024)(_parsed)
