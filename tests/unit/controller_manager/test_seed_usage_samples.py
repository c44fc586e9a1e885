"""What is known of the usage of Seeds by an answer of Prometheus."""

import json
import re
from fractions import Fraction
from typing import Any

import pytest

from agent.controller_manager.seed_autoscaler.rules.prometheus import error_of, fresh, samples_of
from kit.prometheus import vector
from kube.objects import Object

NOW = 1_700_000_000.0


def row(value: Any, **labels: Any) -> Object:
    return {"metric": labels, "value": value}


def known(*rows: Any, now: float = NOW) -> dict[str, Fraction]:
    body = {"status": "success", "data": {"resultType": "vector", "result": list(rows)}}
    return dict(fresh(samples_of(json.dumps(body).encode()), now))


def test_each_seed_has_its_sample() -> None:
    body = json.dumps(vector({"a": "12.5", "b": "1e+03", "c": "0"}, at=NOW)).encode()
    amounts = {"a": Fraction(25, 2), "b": Fraction(1000), "c": Fraction(0)}
    assert fresh(samples_of(body), NOW) == amounts


@pytest.mark.parametrize(
    "value",
    [
        *([NOW, number] for number in ("NaN", "+Inf", "-1", "", "x", "1e99", "1Ki", "0" * 65, 3, None, True)),
        *([time, "1"] for time in ("1700000000", True, None)),
        *([NOW, "1", "2"], [NOW], "1", None, {}),
    ],
)
def test_what_is_no_amount_is_not_known(value: Any) -> None:
    assert known(row(value, seed="a"), row([NOW, "1"], seed="b")) == {"b": 1}


@pytest.mark.parametrize(("age", "counts"), [(0, True), (300, True), (301, False), (-300, True), (-301, False)])
def test_what_is_old_is_not_known(age: float, *, counts: bool) -> None:
    assert known(row([NOW, "0"], seed="a"), now=NOW + age) == ({"a": 0} if counts else {})


def test_a_sample_of_no_seed_or_of_two_is_not_known() -> None:
    rows = [row([NOW, "1"]), row([NOW, "1"], seed=""), row([NOW, "1"], seed=3), {"value": [NOW, "1"]}, 3]
    assert known(*rows, row([NOW, "1"], seed="a", zone="1"), row([NOW, "2"], seed="a", zone="2")) == {}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "the response is not from Prometheus"),
        (b"<html>", "the response is not from Prometheus"),
        (b"[" * 5000, "the response is not from Prometheus"),
        (b'{"status": "success"}', "the query returns a , not an instant vector"),
        (
            b'{"status": "success", "data": {"resultType": "scalar", "result": [1, "1"]}}',
            "the query returns a scalar, not an instant vector",
        ),
        (b'{"status": "error", "errorType": "bad_data", "error": "a\\nb"}', "bad_data: ab"),
        (json.dumps({"status": "error", "error": "x" * 1000}).encode(), f": {'x' * 200}…"),
    ],
)
def test_what_is_no_answer_reports_why(body: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(why)}$"):
        samples_of(body)


def test_only_prometheus_itself_is_quoted_in_an_error() -> None:
    assert error_of(503, b"<html>secret</html>") == "HTTP 503: the response is not from Prometheus"
    assert error_of(422, b'{"status": "error", "errorType": "execution", "error": "e"}') == "HTTP 422: execution: e"
    assert error_of(302, b'{"status": "success"}') == "HTTP 302"
