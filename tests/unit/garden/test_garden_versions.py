"""Semantic versions and constraints on them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardener.garden.versions import Version, has_prefix, parse_constraint, parse_version


def version(text: str) -> Version:
    found = parse_version(text)
    assert found is not None
    return found


def test_versions_are_ordered_as_semantic_versions() -> None:
    ordered = ["0.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0"]
    ordered += ["1.2", "1.9.9", "1.10.0"]
    assert all(version(one) < version(other) for one, other in pairwise(ordered))


def test_what_follows_a_plus_does_not_count() -> None:
    assert version("v1.2.3+gardener.1") == version("1.2.3")


@pytest.mark.parametrize("text", ["", "x", "1.", "1.2.3.4", "1.2.3-", "-1", "1.2.3 "])
def test_what_is_no_version(text: str) -> None:
    assert parse_version(text) is None


@pytest.mark.parametrize(
    ("text", "prefix", "expected"),
    [("1.30.5", "1.30", True), ("1.30.5", "1.3", False), ("1.30.5", "1", True), ("1.30.5", "", True), ("2", "2", True)],
)
def test_a_prefix_ends_with_a_whole_number(text: str, prefix: str, *, expected: bool) -> None:
    assert has_prefix(text, prefix) is expected


@pytest.mark.parametrize(
    ("constraint", "allowed", "refused"),
    [
        (">= 1.28, < 1.31", ["1.28.0", "1.30.9"], ["1.27.9", "1.31.0"]),
        (">=1.28 <1.31", ["1.28.0", "1.30.9"], ["1.27.9", "1.31.0"]),
        ("1.29.3", ["1.29.3"], ["1.29.4"]),
        ("1.29", ["1.29.0", "1.29.7"], ["1.28.9", "1.30.0"]),
        ("1.x", ["1.0.0", "1.99.0"], ["2.0.0"]),
        ("*", ["0.0.0", "9.9.9"], []),
        ("~1.2.3", ["1.2.3", "1.2.9"], ["1.2.2", "1.3.0"]),
        ("^1.2.3", ["1.2.3", "1.9.9"], ["1.2.2", "2.0.0"]),
        ("^0.2.3", ["0.2.9"], ["0.3.0"]),
        ("1.2 - 1.4", ["1.2.0", "1.4.9"], ["1.1.9", "1.5.0"]),
        ("< 1.2 || > 1.4", ["1.1.9", "1.5.0"], ["1.2.0", "1.4.9"]),
        ("!= 1.2", ["1.1.0", "1.3.0"], ["1.2.5"]),
        ("<= 1.2", ["1.2.9"], ["1.3.0"]),
    ],
)
def test_constraints(constraint: str, allowed: list[str], refused: list[str]) -> None:
    holds = parse_constraint(constraint)
    assert [text for text in allowed + refused if holds(version(text))] == allowed


@pytest.mark.parametrize("text", ["", "x.y.z", ">> 1", "1.2 ||", "latest", "a" * 300])
def test_what_is_no_constraint(text: str) -> None:
    with pytest.raises(ValueError, match="constraint|version"):
        parse_constraint(text)


@given(
    st.text(alphabet="0123456789.xX*<>=!~^|, -v+ab", max_size=40),
    st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){0,2}", fullmatch=True),
)
def test_every_text_is_a_constraint_or_a_value_error(text: str, of: str) -> None:
    try:
        holds = parse_constraint(text)
    except ValueError:
        return
    assert holds(version(of)) in {True, False}
