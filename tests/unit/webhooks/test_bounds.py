"""What a review may hold: values of its JSON, and of each object in it."""

import json
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.webhooks.mutating import patiently
from webhooks import bounds
from webhooks.bounds import MAX_VALUES, TooManyValues, demand_few_values, demand_small_object, with_few_values
from webhooks.review import dumped

texts = st.text(alphabet='ab,[{}]:"\\\n\u00e9', max_size=6)
anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(texts, inner, max_size=6),
    max_leaves=40,
)


def values(of: Any) -> int:
    """How many there are; lists and objects without anything in them count twice."""
    inner = list(of.values()) if isinstance(of, dict) else of if isinstance(of, list) else None
    return 1 if inner is None else 1 + int(not inner) + sum(map(values, inner))


def is_refused(body: bytes) -> bool:
    try:
        demand_few_values(body)
    except TooManyValues:
        return True
    return False


@patiently
@given(anything, st.integers(min_value=1, max_value=40), st.booleans())
def test_values_are_counted_whatever_is_in_strings(value: Any, limit: int, ascii_only: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "MAX_VALUES", limit)
        body = json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":")).encode()
        assert is_refused(body) is (len(body) > 2 * limit and values(value) > limit)


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        pytest.param(lambda: b"[" + b",".join([b"{}"] * 2_300_000) + b"]", True, id="objects"),
        pytest.param(lambda: b"[" + b",".join([b"[]"] * 2_300_000) + b"]", True, id="lists"),
        pytest.param(lambda: b"[" + b",".join([b"0"] * 3_400_000) + b"]", True, id="numbers"),
        pytest.param(lambda: b"[" + b",".join([b'""'] * 2_300_000) + b"]", True, id="strings"),
        pytest.param(lambda: b"{" + b",".join([b'"":0'] * 1_300_000) + b"}", True, id="fields"),
        pytest.param(lambda: b"[" * 6_900_000, True, id="depth"),
        pytest.param(
            lambda: b'["\\\\\\"",' + b",".join([b"{}"] * MAX_VALUES) + b'"\\"', True, id="behind escapes, and broken"
        ),
        pytest.param(lambda: b'["' + b",[{" * 2_000_000 + b'"]', False, id="a long string"),
        pytest.param(lambda: b'["' + b'\\",' * 2_000_000 + b'"]', False, id="a long string with quotes"),
        pytest.param(lambda: orjson.dumps(["x" * 60] * (MAX_VALUES - 1)), False, id="as many as there may be"),
    ],
)
def test_millions_of_values_are_not_parsed_and_large_bodies_with_few_values_are(
    body: Callable[[], bytes], refused: bool
) -> None:
    assert is_refused(body()) is refused


objects = st.fixed_dictionaries({"spec": anything})


@patiently
@given(objects, st.lists(anything, max_size=20))
def test_what_can_be_created_can_be_updated(obj: Any, managed: list[Any]) -> None:
    """Its managed fields may have any number of values."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "MAX_VALUES_OF_OBJECT", 10)
        patch.setattr(bounds, "MAX_VALUES", 30)
        written = {"kind": "K", **obj}
        try:
            demand_small_object(1000, written, None)
        except TooManyValues:
            assert values(written) > 10
            return
        stored = {**written, "metadata": {"managedFields": managed}}
        demand_small_object(1000, stored, stored)
        sent = with_few_values(dumped({"request": {"object": stored, "oldObject": stored}}))
        assert json.loads(sent)["request"]["object"]["spec"] == written["spec"]


def test_an_object_that_has_too_many_values_already_does_not_grow() -> None:
    def obj(count: int) -> Any:
        return {"spec": [0] * count, "status": [0] * 200_000, "metadata": {"managedFields": [0] * 200_000}}

    most = bounds.MAX_VALUES_OF_OBJECT
    demand_small_object(1 << 20, obj(most - 10), None)
    demand_small_object(1 << 20, obj(most + 10), obj(most + 10))
    demand_small_object(1 << 20, obj(most + 10), obj(most + 20))
    for old in (None, obj(most), obj(most + 9)):
        with pytest.raises(TooManyValues, match="of an object"):
            demand_small_object(1 << 20, obj(most + 10), old)
