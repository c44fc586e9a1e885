"""What scalars, keys and documents mean. The expected values were printed by sigs.k8s.io/yaml v1.6.0."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.yaml import MAX_DEPTH, Budget, DialectError, load

TRUE, FALSE = "y Y yes Yes YES on On ON true True TRUE", "n N no No NO off Off OFF false False FALSE"
UNCHANGED = """
yEs tRue nUll _1 0o8 ._5 inf nan NaN Infinity 0x1p4 0x1.8p1 1e400 -1e400 0x10000000000000000 0b2 0xg
2024-01-02 2024-01-02T03:04:05Z 12:30 190:20:30 1.2.3 010x = << + . .. e 1e .e3 5e -.inf1 1:30 +. -.
"""
NUMBERS: list[tuple[str, float]] = [
    ("0644", 420), ("0o644", 420), ("0O644", 420), ("0x1a", 26), ("0X1A", 26), ("0b11", 3), ("0B11", 3),
    ("1_000", 1000), ("1__0", 10), ("1_", 1), ("0x_1a", 26), ("-0b11", -3), ("-0x1a", -26), ("-0644", -420),
    ("+12", 12), ("+0x1", 1), ("-0o7", -7), ("0", 0), ("-0", 0), ("+0", 0), ("00", 0), ("08", 8), ("09", 9),
    ("0_7", 7), ("1e3", 1000), ("1E3", 1000), ("1e+3", 1000), ("1e-3", 0.001), ("1.0e3", 1000), (".5", 0.5),
    ("1.", 1), ("-.5", -0.5), ("+.5", 0.5), ("1._5", 1.5), ("1_0.5", 10.5), ("1.5_0", 1.5),
    ("1e1_0", 10000000000), ("12345678901", 12345678901), ("9223372036854775807", 9223372036854775807),
    ("9223372036854775808", 9223372036854775808), ("18446744073709551615", 18446744073709551615),
    ("-9223372036854775808", -9223372036854775808), ("0xffffffffffffffff", 18446744073709551615),
    ("1.e3", 1000), ("0.1e-7", 1e-08), ("1e21", 1e+21), ("123456789.0", 123456789), ("1.0", 1),
    ("100000000000000000000000", 1e+23), ("3.14159265358979", 3.14159265358979), ("0.000001", 1e-06),
    ("1e-7", 1e-07), ("0.", 0),
]  # fmt: skip
SCALARS: list[tuple[str, Any]] = [
    *((text, True) for text in TRUE.split()),
    *((text, False) for text in FALSE.split()),
    *((text, None) for text in ("~", "null", "Null", "NULL")),
    *((text, text) for text in UNCHANGED.split()),
    *NUMBERS,
]


def read(text: str | bytes, values: int = 10_000) -> Any:
    return load(text, budget=Budget(values))


@pytest.mark.parametrize(("text", "value"), SCALARS)
def test_a_plain_scalar_means_what_it_means_to_go(text: str, value: Any) -> None:
    found = read(f"a: {text}")["a"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", [".inf", "-.inf", "+.Inf", ".nan", ".NAN", "!!float .inf"])
def test_a_number_that_json_does_not_have_is_an_error(text: str) -> None:
    with pytest.raises(DialectError, match="JSON does not support"):
        read(f"a: {text}")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("y", "true"), ("off", "false"), ("1", "1"), ("0x10", "16"), ("0644", "420"), ("1_000", "1000"), ("-0", "0"),
        ("1.5", "1.5"), ("0.1", "0.1"), ("1e3", "1000"), ("1.0", "1"), ("1e21", "1e+21"), ("1e-7", "1e-07"),
        ("123456789.0", "1.2345679e+08"), ("123456.789", "123456.79"), ("0.000001", "1e-06"), ("-0.0", "-0"),
        ("3.14159265358979", "3.1415927"), (".inf", ".inf"), ("-.inf", "-.inf"), (".nan", ".nan"),
        ("2024-01-02", "2024-01-02"), ("''", ""), ("'1'", "1"), ("=", "="), ("!!str x", "x"),
    ],
)  # fmt: skip
def test_a_key_becomes_a_string(key: str, text: str) -> None:
    assert read(f"{key}: v") == {text: "v"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("null: a", "not null"),
        ("~: a", "not null"),
        ("? [a]\n: b", "not a list"),
        ("? {a: 1}\n: b", "not a list or a mapping"),
        ("1e39: a", "too great"),
    ],
)
def test_a_key_that_is_no_string_and_no_number_is_an_error(text: str, problem: str) -> None:
    with pytest.raises(DialectError, match=problem):
        read(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: !!binary aGVsbG8=", "hello"),
        ("a: !!binary /w==", "\ufffd"),
        ("a: !!str 5", "5"),
        ("a: !!str", ""),
        ("a: !!int '5'", 5),
        ("a: !!float 3", 3),
        ("a: !!float '3.5'", 3.5),
        ("a: !!bool 'yes'", True),
        ("a: !!null ''", None),
        ("a: !!timestamp 2024-01-02", "2024-01-02"),
        ("a: !!set {x, z}", {"x": None, "z": None}),
        ("a: !!omap [x: 1]", [{"x": 1}]),
        ("a: !foo bar", "bar"),
        ("a: !!foo 1", "1"),
        ("a: !foo {x: 1}", {"x": 1}),
    ],
)
def test_a_tag_is_obeyed_if_go_knows_it(text: str, value: Any) -> None:
    assert read(text) == {"a": value}


@pytest.mark.parametrize("text", ["!!int x", "!!int 1.0", "!!int", "!!bool x", "!!float x", "!!binary '***'"])
def test_a_value_that_is_not_of_its_tag_is_an_error(text: str) -> None:
    with pytest.raises(DialectError, match="tagged !!"):
        read(f"a: {text}")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: {<<: {x: 1}, x: 2, z: 3}", {"a": {"x": 2, "z": 3}}),
        ("a: &A {x: 1}\nb: {z: 2, <<: *A}", {"a": {"x": 1}, "b": {"z": 2, "x": 1}}),
        ("a: &A {x: 1}\nb: {x: 9, <<: *A}", {"a": {"x": 1}, "b": {"x": 1}}),
        (
            "a: &A {x: 1}\nb: &B {x: 2, z: 3}\nc: {<<: [*A, *B]}",
            {"a": {"x": 1}, "b": {"x": 2, "z": 3}, "c": {"x": 1, "z": 3}},
        ),
        ("a: {<<: {x: 1}, <<: {x: 2, z: 1}}", {"a": {"x": 2, "z": 1}}),
        ("a: {!!merge <<: {x: 1}}", {"a": {"x": 1}}),
        ("a: {'<<': {x: 1}}", {"a": {"<<": {"x": 1}}}),
    ],
)
def test_merge_keys_count_in_the_order_in_which_they_stand(text: str, value: Any) -> None:
    assert read(text) == value


@pytest.mark.parametrize("value", ["5", "[5]", "null", "x"])
def test_only_mappings_can_be_merged(value: str) -> None:
    with pytest.raises(DialectError, match="'<<' requires a mapping"):
        read(f"a: {{<<: {value}}}")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: 1, a: 2}", {"a": 2}),
        ("1: a\n'1': b", {"1": "b"}),
        ("yes: a\non: b", {"true": "b"}),
        ("a: &x 1\nb: &x 2\nc: *x", {"a": 1, "b": 2, "c": 2}),
    ],
)
def test_of_what_is_given_twice_the_last_counts(text: str, value: Any) -> None:
    assert read(text) == value


@pytest.mark.parametrize("text", ["", "# c", "\n\n", "---\n", "null", "~", "--- # c\n"])
def test_an_empty_document_is_null(text: str) -> None:
    assert read(text) is None


def test_text_after_a_document_end_line_is_not_read() -> None:
    assert read("a: 1\n...\nb: [") == {"a": 1}


@pytest.mark.parametrize("text", ['{"a": 1} {"b": 2}', "a: 1\n---\nb: 2", "{a: 1}\n{", "'a' 'b'"])
def test_text_after_the_end_of_a_document_is_an_error_and_not_lost_silently(text: str) -> None:
    with pytest.raises(DialectError):
        read(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [1,2", "line 2: did not find expected ',' or ']'"),
        ("a:\n\tb: 1", "line 2: found character that cannot start any token"),
        ("a: 1\n  b: 2\nc: [1]\n- x", "line 2: mapping values are not allowed in this context"),
        (
            "  a: 1\nb: 2",
            (
                "line 2: the document ends here, but there is more text; check the indentation, "
                "or put a line '---' between documents"
            ),
        ),
        ("a: x: y", "line 1: mapping values are not allowed in this context"),
        ("a: *nope", "line 1: found undefined alias"),
        ("a: \x01", "control characters are not allowed at position 3"),
        (b"a: \xff", "invalid leading UTF-8 octet at position 3"),
    ],
)
def test_an_error_names_its_line(text: str | bytes, problem: str) -> None:
    with pytest.raises(DialectError) as caught:
        read(text)
    assert str(caught.value) == problem


def test_lines_are_counted_from_where_the_document_begins() -> None:
    with pytest.raises(DialectError, match=r"^line 11: "):
        load("a:\n\tb: 1", budget=Budget(100), first_line=10)


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 10_000, 100_000])
def test_deep_nesting_is_an_error(opening: str, levels: int) -> None:
    with pytest.raises(DialectError, match="nested deeper than 200 levels"):
        read(opening * levels, values=1_000_000)


def test_nesting_up_to_the_limit_is_read() -> None:
    value = read("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    for _ in range(MAX_DEPTH - 1):
        (value,) = value
    assert value == []


@pytest.mark.parametrize("text", ["a: &x [1, *x]", "a: &x {b: *x}", "a: &x {<<: *x}"])
def test_an_anchor_that_contains_itself_is_an_error(text: str) -> None:
    with pytest.raises(DialectError):
        read(text)


def test_a_bomb_of_aliases_is_an_error() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    with pytest.raises(DialectError, match="too many values"):
        read("\n".join(lines))


def test_too_many_values_are_an_error_before_they_are_made() -> None:
    with pytest.raises(DialectError, match="too many values"):
        read("[" + "0," * 20_000 + "]")


@given(st.text(max_size=60) | st.binary(max_size=60) | st.text(alphabet="a:-?{}[]&*!|>'\"#%@ \n\t<=1e.~", max_size=40))
def test_whatever_the_text_nothing_but_a_dialect_error_is_raised(text: str | bytes) -> None:
    try:
        read(text)
    except DialectError as error:
        assert "\n" not in str(error)
