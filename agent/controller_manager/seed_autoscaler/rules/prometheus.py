"""Answers of Prometheus to an instant query, and the usage that they report.

    {"status": "success", "data": {"resultType": "vector", "result": [
        {"metric": {"seed": "a"}, "value": [1700000000.1, "12.5"]}, ...]}}

A value counts for a Seed if there is one, it is an amount, and it is recent. Otherwise the usage is unknown, also for a
Seed with two samples, since either could be meant.
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
"""Samples by the names of Seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Known usage of one resource.

    Attributes:
        problem: failure of the last query; empty for none.
    """

    by_seed: Amounts = field(default_factory=dict)
    problem: str = ""


def samples_of(body: bytes) -> Samples:
    """Parse the samples of an answer.

    Raises:
        ValueError: it is no answer to an instant query; the text has the reason.
    """
    data = mapping(_answer(body).get("data"))
    if data.get("resultType") != "vector":
        raise ValueError(f"the query returns a {_shortened(data.get('resultType'))}, not an instant vector")
    rows = mappings(data.get("result"))
    seeds = [text(at(row, "metric", SEED_LABEL)) for row in rows]
    numbers = Counter(seeds)
    found = {seed: _sample(row) for seed, row in zip(seeds, rows, strict=True) if seed and numbers[seed] == 1}
    return {seed: sample for seed, sample in found.items() if sample is not None}


def error_of(status: int, body: bytes) -> str:
    """Text of a failed answer; only Prometheus itself is quoted."""
    try:
        _answer(body)
    except ValueError as error:
        return f"HTTP {status}: {error}"
    return f"HTTP {status}"


def fresh(samples: Samples, now: float) -> Amounts:
    """Recent amounts, without those from the future if clocks differ; `now` in seconds since the epoch."""
    return {seed: each.amount for seed, each in samples.items() if abs(now - each.time) <= OLDEST_SECONDS}


def _answer(body: bytes) -> Object:
    try:
        answer = mapping(orjson.loads(body))
    except orjson.JSONDecodeError:
        answer = {}
    if answer.get("status") == "error":
        raise ValueError(f"{_shortened(answer.get('errorType'))}: {_shortened(answer.get('error'))}")
    if answer.get("status") != "success":
        raise ValueError("the response is not from Prometheus")
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


def _shortened(reported: object) -> str:
    words = "".join(char for char in text(reported) if is_visible(char))
    return words if len(words) <= _LONGEST_ERROR else f"{words[:_LONGEST_ERROR]}…"
