"""Durations, times, quantities, selectors and access to parts of objects, as Go programs take and print them."""

import time
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.objects import config_map
from kube.clock import format_duration, format_micro_time, format_time, parse_duration, parse_time
from kube.objects import (
    Key,
    Object,
    annotations,
    condition,
    controller_of,
    finalizers,
    group_of,
    is_deleting,
    is_truthy,
    key,
    label_selector_text,
    labels,
    matches_label_selector,
    metadata,
    resource_version,
    selector_text,
    uid,
)
from kube.quantities import parse_quantity

# --- durations


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0), ("-0", 0), ("0s", 0), ("5s", 5), ("+5s", 5), ("-5s", -5), ("30s", 30), ("1478s", 1478), ("5.0s", 5),
        ("5.6s", 5.6), ("5.s", 5), (".5s", 0.5), ("1.004s", 1.004), ("10ns", 1e-8), ("11us", 1.1e-5), ("12µs", 1.2e-5),
        ("12μs", 1.2e-5), ("13ms", 0.013), ("15m", 900), ("16h", 57600), ("3h30m", 12600), ("10.5s4m", 250.5),
        ("-2m3.4s", -123.4), ("1h2m3s4ms5us6ns", 3723.004005006), ("0.100000000000000000000h", 360),
        ("2562047h47m16.854775807s", 9223372036.854775807), ("-2562047h47m16.854775808s", -9223372036.854775808),
    ],
)  # fmt: skip
def test_a_duration_reads_as_in_go(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds, rel=1e-15)


OVERFLOWING = ("2562047h47m16.854775808s", "-2562047h47m16.854775809s", "3000000h")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        *((text, "invalid") for text in ("", "-", ".", "-.", ".s", "+.s", "s", " 1s", "--1s", "٣s", *OVERFLOWING)),
        *((text, "missing unit in") for text in ("3", "00", "1h5", "1..s")),
        ("1s-2s", 'unknown unit "s-" in'),
        ("1d", 'unknown unit "d" in'),
        ("1S", 'unknown unit "S" in'),
        ("1sm", 'unknown unit "sm" in'),
        ("1 s", 'unknown unit " s" in'),
        ("1m5x3s", 'unknown unit "x" in'),
        ("1s\n", r'unknown unit "s\x0a" in'),
        ('1"', r'unknown unit "\"" in'),
        ("1\\", r'unknown unit "\\" in'),
        ("1ü", r'unknown unit "\xc3\xbc" in'),
    ],
)
def test_what_is_no_duration_is_refused_in_the_words_of_go(text: str, problem: str) -> None:
    quoted = {"1s\n": r"1s\x0a", '1"': r"1\"", "1\\": r"1\\", "1ü": r"1\xc3\xbc", "٣s": r"\xd9\xa3s"}.get(text, text)
    with pytest.raises(ValueError, match=r"^time: ") as refused:
        parse_duration(text)
    assert str(refused.value) == f'time: {problem} duration "{quoted}"'


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"), (-0.0, "0s"), (1e-9, "1ns"), (1.1e-6, "1.1µs"), (0.0022, "2.2ms"), (0.25, "250ms"),
        (0.999999999, "999.999999ms"), (1, "1s"), (1.5, "1.5s"), (3.3, "3.3s"), (60, "1m0s"), (100, "1m40s"),
        (100.5, "1m40.5s"), (245, "4m5s"), (245.001, "4m5.001s"), (3600, "1h0m0s"), (18367.001, "5h6m7.001s"),
        (86400, "24h0m0s"), (-1.5, "-1.5s"), (-0.0001, "-100µs"),
    ],
)  # fmt: skip
def test_a_duration_is_printed_as_by_go(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


# A float holds seconds to the nanosecond for so long: 13 days.
@settings(deadline=None)
@given(st.integers(min_value=-(2**50), max_value=2**50))
def test_what_is_printed_reads_as_the_same_duration(nanoseconds: int) -> None:
    text = format_duration(nanoseconds / 10**9)
    assert round(parse_duration(text) * 10**9) == nanoseconds
    assert format_duration(parse_duration(text)) == text


@settings(deadline=None)
@given(st.text(alphabet="0123456789.+-hmsnuµ x", max_size=12))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    try:
        seconds = parse_duration(text)
    except ValueError as refused:
        seconds = 0
        message = str(refused)
    else:
        message = "time: "
    assert message.startswith("time: ")
    assert abs(seconds) <= 2**63 / 10**9


# --- times


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-02-29T13:14:15Z", datetime(2024, 2, 29, 13, 14, 15, tzinfo=UTC)),
        ("2024-02-29T13:14:15.123456Z", datetime(2024, 2, 29, 13, 14, 15, 123456, tzinfo=UTC)),
        ("2024-02-29T13:14:15.123456789Z", datetime(2024, 2, 29, 13, 14, 15, 123456, tzinfo=UTC)),
        ("2024-02-29T13:14:15+02:00", datetime(2024, 2, 29, 11, 14, 15, tzinfo=UTC)),
        ("2024-02-29T13:14:15", datetime(2024, 2, 29, 13, 14, 15, tzinfo=UTC)),
    ],
)
def test_times_are_read_with_fractions_and_zones(text: str, moment: datetime) -> None:
    assert parse_time(text) == moment


@pytest.mark.parametrize("text", ["", "yesterday", "2023-02-29T00:00:00Z", "2024-01-01T25:00:00Z"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_time(text)


def test_times_are_written_in_utc() -> None:
    moment = datetime(2024, 2, 29, 1, 2, 3, 4567, tzinfo=timezone(timedelta(hours=2)))
    assert format_time(moment) == "2024-02-28T23:02:03Z"
    assert format_micro_time(moment) == "2024-02-28T23:02:03.004567Z"
    assert parse_time(format_micro_time(moment)) == moment


# --- quantities


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", "0"), ("1", "1"), ("-1", "-1"), ("+1.5", "1.5"), (".5", "0.5"), ("1.", "1"), ("100m", "0.1"),
        ("5u", "0.000005"), ("5n", "0.000000005"), ("1k", "1000"), ("1M", "1000000"), ("1G", "1000000000"),
        ("2T", "2000000000000"), ("1P", "1000000000000000"), ("1E", "1000000000000000000"), ("1Ki", "1024"),
        ("1.5Gi", "1610612736"), ("1Ei", "1152921504606846976"), ("1e3", "1000"), ("1E3", "1000"), ("12e-1", "1.2"),
        (3, "3"), (0.25, "0.25"),
    ],
)  # fmt: skip
def test_quantities_have_their_value(text: str, value: str) -> None:
    assert parse_quantity(text) == Decimal(value)


@pytest.mark.parametrize(
    "text",
    ["", "m", "1 Gi", "1K", "1gi", "1e", "0x1", "1_000", "١", "1Gi\n", "nan", True, None, "1e9999999", "1e99999999999"],
)
def test_what_is_no_quantity_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity") as refused:
        parse_quantity(text)
    assert repr(text) in str(refused.value)


def test_many_digits_that_are_no_quantity_are_refused_at_once() -> None:
    begin = time.thread_time()
    for text in (f"{'1' * (1 << 17)}x", f"1.{'1' * (1 << 17)}x", f"1e{'1' * (1 << 17)}x"):
        with pytest.raises(ValueError, match="is not a quantity"):
            parse_quantity(text)
    assert time.thread_time() - begin < 0.2


# --- selectors


def a(operator: str, *values: str) -> Object:
    """A selector with a requirement about the label `a`."""
    return {"matchExpressions": [{"key": "a", "operator": operator, "values": list(values) or None}]}


@pytest.mark.parametrize(
    ("selector", "having", "selects"),
    [
        (None, {}, False),
        (None, {"a": "b"}, False),
        ({}, {}, True),
        ({"matchLabels": None, "matchExpressions": None}, {"a": "b"}, True),
        ({"matchLabels": {"a": "b"}}, {"a": "b", "c": "d"}, True),
        ({"matchLabels": {"a": "b"}}, {"a": "c"}, False),
        ({"matchLabels": {"a": "b"}}, {}, False),
        ({"matchLabels": {"a": ""}}, {}, False),
        ({"matchLabels": {"a": ""}}, {"a": ""}, True),
        ({"matchLabels": {"a": "b", "c": "d"}}, {"a": "b"}, False),
        *((a("In", "x", "y"), {"a": "y"}, True), (a("In", "x", "y"), {"a": "z"}, False), (a("In", "x"), {}, False)),
        *((a("NotIn", "x"), {"a": "x"}, False), (a("NotIn", "x"), {"a": "y"}, True), (a("NotIn", "x"), {}, True)),
        *(
            (a("Exists"), {"a": ""}, True),
            ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"b": ""}, False),
        ),
        *((a("DoesNotExist"), {}, True), (a("DoesNotExist"), {"a": "b"}, False)),
        ({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}, {"a": "b"}, False),
    ],
)
def test_a_label_selector_selects(selector: Object | None, having: dict[str, str], selects: bool) -> None:
    assert matches_label_selector(selector, having) is selects


@pytest.mark.parametrize(("operator", "shown"), [("Gt", '"Gt"'), ("in", '"in"'), (None, '""')])
def test_an_unknown_operator_is_refused_by_name(operator: str | None, shown: str) -> None:
    with pytest.raises(ValueError, match=f"^{shown} is not a valid label selector operator$"):
        matches_label_selector({"matchExpressions": [{"key": "a", "operator": operator}]}, {"a": "b"})


def test_a_whole_selector_as_text() -> None:
    wanted: Object = {
        "matchLabels": {"b": "2", "z": ""},
        "matchExpressions": [
            {"key": "d", "operator": "NotIn", "values": ["y", "x"]},
            {"key": "c", "operator": "DoesNotExist"},
            {"key": "a", "operator": "In", "values": ["1"]},
            {"key": "e", "operator": "Exists"},
        ],
    }
    assert selector_text(wanted) == "a in (1),b=2,!c,d notin (x,y),e,z="
    assert selector_text({}) == ""
    with pytest.raises(ValueError, match="not a valid label selector operator"):
        selector_text({"matchExpressions": [{"key": "a", "operator": "Like"}]})


def test_a_selector_as_text_has_a_stable_order() -> None:
    assert label_selector_text({"b": "2", "a": ""}) == label_selector_text({"a": "", "b": "2"}) == "a=,b=2"
    assert label_selector_text({}) == ""


# --- parts of objects


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((value, True) for value in ("1", "t", "T", "true", "TRUE", "True")),
        *((value, False) for value in (None, "", "0", "false", "tRUE", "yes", "y", "on", " true", "2")),
    ],
)
def test_true_is_what_go_takes_for_true(value: str | None, expected: bool) -> None:
    assert is_truthy(value) is expected


FIELDS = ("name", "namespace", "labels", "annotations", "finalizers", "uid", "resourceVersion")
NULLS = dict.fromkeys((*FIELDS, "ownerReferences", "deletionTimestamp"))


@pytest.mark.parametrize(
    "obj",
    [
        {},
        {"metadata": None, "status": None},
        {"metadata": {}, "status": {}},
        {"metadata": NULLS, "status": {"conditions": None}},
    ],
)
def test_what_is_missing_or_null_reads_as_empty(obj: Object) -> None:
    assert key(obj) == Key("", "")
    assert labels(obj) == annotations(obj) == {}
    assert finalizers(obj) == []
    assert uid(obj) == ""
    assert resource_version(obj) == 0
    assert not is_deleting(obj)
    assert condition(obj, "Ready") is None
    assert controller_of(obj) is None
    assert not any((metadata(obj) or {}).values())


def test_what_is_there_is_read() -> None:
    owner = {"kind": "Deployment", "name": "d", "controller": True}
    ready = {"type": "Ready", "status": "False"}
    meta: Object = {
        "uid": "u",
        "resourceVersion": "12",
        "deletionTimestamp": "2024-01-01T00:00:00Z",
        "finalizers": ["f"],
    }
    meta |= {
        "labels": {"a": "b"},
        "annotations": {"c": "d"},
        "ownerReferences": [{"kind": "Other", "name": "o"}, owner],
    }
    obj = config_map("ns/n", **meta, status={"conditions": [{"type": "Other", "status": "True"}, ready]})
    assert key(obj) == Key("ns", "n")
    assert (labels(obj), annotations(obj), finalizers(obj), uid(obj)) == ({"a": "b"}, {"c": "d"}, ["f"], "u")
    assert resource_version(obj) == 12
    assert is_deleting(obj)
    assert condition(obj, "Ready") is ready
    assert controller_of(obj) is owner


def test_a_key_prints_as_its_path_and_sorts_by_namespace() -> None:
    assert str(Key("ns", "n")) == "ns/n"
    assert str(Key("", "n")) == "n"
    assert sorted([Key("b", "a"), Key("a", "z"), Key("", "x")]) == [Key("", "x"), Key("a", "z"), Key("b", "a")]


@pytest.mark.parametrize(("api_version", "group"), [("v1", ""), ("apps/v1", "apps"), ("a.b/v1beta1", "a.b"), ("", "")])
def test_the_group_of_an_api_version(api_version: str, group: str) -> None:
    assert group_of(api_version) == group
