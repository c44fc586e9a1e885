"""What Prometheus answers to an instant query, and what is known of usage by that.

    {"status": "success", "data": {"resultType": "vector", "result": [
        {"metric": {"seed": "a"}, "value": [1700000000.1, "12.5"]}, ...]}}

A value counts for a Seed if there is one, it is an amount, and it is not old. All else leaves the usage unknown: so
does a Seed with two samples, since it is not known which of them is meant.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import orjson

from agent.controller_manager.seed_autoscaler.rules.loads import Amounts, reckoned
from kube.objects import Object, mapping, mappings, text
from kube.paths import at
from kube.visible_text import is_visible

SEED_LABEL = "seed"
OLDEST_SECONDS = 300.0
_LONGEST_ERROR = 200
_LONGEST_NUMBER = 64


@dataclass(frozen=True, slots=True)
class Sample:
    amount: Fraction
    time: float
    """Seconds since the epoch."""


Samples = Mapping[str, Sample]
"""By the names of Seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What is known of the usage of one resource.

    Attributes:
        problem: why it could not be measured the last time; empty: it was.
    """

    by_seed: Amounts = field(default_factory=dict)
    problem: str = ""


def samples_of(body: bytes) -> Samples:
    """Raises ValueError: it is no answer to such a query; the text says why."""
    data = mapping(_answer(body).get("data"))
    if data.get("resultType") != "vector":
        raise ValueError(f"the query gives a {_shortened(data.get('resultType'))}, not an instant vector")
    rows = mappings(data.get("result"))
    seeds = [text(at(row, "metric", SEED_LABEL)) for row in rows]
    numbers = Counter(seeds)
    found = {seed: _sample(row) for seed, row in zip(seeds, rows, strict=True) if seed and numbers[seed] == 1}
    return {seed: sample for seed, sample in found.items() if sample is not None}


def error_of(status: int, body: bytes) -> str:
    """What an answer of failure says; only Prometheus itself is quoted."""
    try:
        _answer(body)
    except ValueError as error:
        return f"HTTP {status}: {error}"
    return f"HTTP {status}"


def fresh(samples: Samples, now: float) -> Amounts:
    """Without what is old, or of a time to come, when the clocks differ. Args: now: seconds since the epoch."""
    return {seed: each.amount for seed, each in samples.items() if abs(now - each.time) <= OLDEST_SECONDS}


def _answer(body: bytes) -> Object:
    try:
        answer = mapping(orjson.loads(body))
    except orjson.JSONDecodeError:
        answer = {}
    if answer.get("status") == "error":
        raise ValueError(f"{_shortened(answer.get('errorType'))}: {_shortened(answer.get('error'))}")
    if answer.get("status") != "success":
        raise ValueError("the answer is not one of Prometheus")
    return answer


def _sample(row: Object) -> Sample | None:
    value = row.get("value")
    if not isinstance(value, list) or len(value) != 2:  # time and value
        return None
    time, number = value
    if isinstance(time, bool) or not isinstance(time, int | float) or not math.isfinite(time):
        return None
    if not isinstance(number, str) or len(number) > _LONGEST_NUMBER:
        return None
    try:
        amount = reckoned(Decimal(number))
    except InvalidOperation:
        return None
    return None if amount is None else Sample(amount, time)


def _shortened(said: object) -> str:
    words = "".join(char for char in text(said) if is_visible(char))
    return words if len(words) <= _LONGEST_ERROR else f"{words[:_LONGEST_ERROR]}…"
