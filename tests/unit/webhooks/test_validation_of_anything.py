"""Whatever an object is, validation ends in an answer."""

import copy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.webhooks.validating import BY_NAME, DELETING, SPECS, answer, errors, valid
from webhooks.admission import Allowed, Errored, Failure

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["a", "1", "-1", "1Gi", "1h", "eA==", "::1", "10.0.0.0/8", "http://a", "IPv4", "A", "*.a.b"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def objects(kind: str) -> st.SearchStrategy[Any]:
    """Valid objects in which some places hold anything."""

    @st.composite
    def mangled(draw: st.DrawFn) -> Any:
        obj = valid(kind, meta=draw(st.sampled_from([{}, DELETING])))
        for _ in range(draw(st.integers(0, 3))):
            parent, place = draw(st.sampled_from(places(obj)))
            parent[place] = draw(VALUES)
        return obj

    return mangled()


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every member and element, as container and key."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [place for key in keys for place in [(value, key), *places(value[key])]]


KINDS = st.sampled_from(sorted(SPECS))
patiently = settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])


@patiently
@given(KINDS, st.data())
def test_objects_that_are_partly_anything(kind: str, data: st.DataObject) -> None:
    new, old = data.draw(objects(kind)), data.draw(objects(kind))
    before = copy.deepcopy((new, old))
    for found in (answer(kind, new), answer(kind, new, old)):
        assert isinstance(found, Allowed | Errored | Failure)
        assert not isinstance(found, Errored) or found.code == 400
    assert (new, old) == before


@patiently
@given(KINDS, VALUES, VALUES)
def test_anything_at_all(kind: str, anything: Any, other: Any) -> None:
    assert isinstance(answer(kind, anything), Failure | Errored)
    assert isinstance(answer(kind, anything, {} if other is None else other), Failure | Errored)


@patiently
@given(KINDS, st.data())
def test_what_may_be_created_may_be_updated_with_itself(kind: str, data: st.DataObject) -> None:
    obj = data.draw(objects(kind))
    if answer(kind, obj) == Allowed():
        obj["metadata"]["resourceVersion"] = "1"
        assert errors(kind, obj, copy.deepcopy(obj)) == []


@patiently
@given(KINDS, st.data())
def test_an_update_finds_at_least_what_creation_finds(kind: str, data: st.DataObject) -> None:
    new = data.draw(objects(kind))
    found = answer(kind, new)
    if isinstance(found, Failure):
        assert set(errors(kind, new)) <= set(errors(kind, new, valid(kind)))


def test_every_kind_is_among_the_samples() -> None:
    assert set(SPECS) == set(BY_NAME)
