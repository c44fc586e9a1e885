"""Large objects in stores: packed if they are JSON, and otherwise not known; readers see no difference."""

from collections.abc import Hashable
from typing import Any, NamedTuple

import orjson
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from kit.hostile import retained
from kube import packing
from kube.objects import Key, Object, labels
from kube.resources import SECRETS
from kube.runtime.cache import Change, Store, View, without_managed_fields
from kube.runtime.watch import Deleted, ListBegins, ListEnds, Present

FEW, MANY = 3, 20_000


def secret(name: str, version: int, fields: int = FEW, mark: str = "") -> Object:
    meta = {"name": name, "namespace": "ns", "resourceVersion": str(version), "labels": {"mark": mark}}
    return {"metadata": meta, "data": {f"k{number}": {} for number in range(fields)}}


def _marks(obj: Object) -> list[Hashable]:
    return [labels(obj)["mark"]]


WHOLE = View(SECRETS, without_managed_fields, indexes=(("mark", _marks),))


class Labelled(NamedTuple):
    labels: dict[str, str]

    @classmethod
    def of(cls, obj: Object) -> "Labelled":
        return cls(obj["data"])


def filled(view: View[Any], *objects: Object) -> Store[Any]:
    store = Store(view)
    source = store.source("")
    source.apply(ListBegins(1))
    for obj in objects:
        source.apply(Present(obj))
    source.apply(ListEnds(1))
    return store


def test_what_is_kept_of_a_large_object_takes_no_more_than_its_text() -> None:
    large = secret("large", 1, MANY)
    store = filled(WHOLE, secret("large", 1, MANY))
    assert store.get(Key("ns", "large")) == large
    assert retained(store._objects) < len(orjson.dumps(large)) < retained(large) / 5


def test_of_the_large_objects_that_are_read_few_stay_unpacked() -> None:
    store = filled(WHOLE, *(secret(f"s{number}", number + 1, MANY) for number in range(30)))
    for _ in store.values():
        pass
    assert retained(packing._recent) < 8 * retained(secret("s", 1, MANY))
    assert store.get(Key("ns", "s1")) is store.get(Key("ns", "s1")), "what is read again is not unpacked again"


def test_what_is_too_large_and_no_json_is_not_known_and_named() -> None:
    with structlog.testing.capture_logs() as logs:
        store = filled(View(SECRETS, Labelled.of), secret("large", 1, MANY), secret("small", 2))
    assert list(store.all_keys()) == [Key("ns", "small")]
    assert store.synced.is_set()
    assert [(entry["object"], str(entry["error"])) for entry in logs] == [
        ("Secret ns/large", "145 KiB would be stored, the limit is 16 KiB")
    ]


def test_an_object_is_found_by_a_bounded_number_of_values() -> None:
    view = View(SECRETS, without_managed_fields, indexes=(("field", lambda obj: obj["data"]),))
    store = filled(view, secret("large", 1, MANY), secret("small", 2))
    assert len(store._indexes["field"]) == 1000
    assert store.keys_by_index("field", "k0") == [Key("ns", "large"), Key("ns", "small")]
    store.source("").apply(Deleted(secret("large", 3, MANY)))
    assert store.keys_by_index("field", "k0") == [Key("ns", "small")]
    assert store.count("field", "k999") == 0


@pytest.mark.parametrize("fields", [FEW, MANY])
def test_handlers_get_objects_as_they_were_and_are(fields: int) -> None:
    store = filled(WHOLE, secret("s", 1, fields))
    changes: list[Change[Object]] = []
    store.subscribe(changes.append)
    store.observe(secret("s", 2, fields, "x"))
    store.resync()
    store.source("").apply(Deleted(secret("s", 3, fields)))
    first, second = secret("s", 1, fields), secret("s", 2, fields, "x")
    assert [(each.old, each.new) for each in changes] == [
        (None, first),
        (first, second),
        (second, second),
        (second, None),
    ]


_NAMES = st.sampled_from("abcd")
_WRITES = st.tuples(_NAMES, st.sampled_from((FEW, 3000, 9000)), st.sampled_from(("x", "y")))


@given(st.lists(st.one_of(_WRITES, _NAMES), max_size=12))
def test_a_store_reads_as_if_nothing_were_packed(steps: list[Any]) -> None:
    store = filled(WHOLE)
    source, expected = store.source(""), dict[Key, Object]()
    for version, step in enumerate(steps, start=2):
        if isinstance(step, str):
            source.apply(Deleted(secret(step, version)))
            expected.pop(Key("ns", step), None)
        else:
            name, fields, mark = step
            source.apply(Present(secret(name, version, fields, mark)))
            expected[Key("ns", name)] = secret(name, version, fields, mark)
    assert dict(store.items()) == expected
    assert list(store.values()) == [value for _, value in store.items()]
    for mark in "xy":
        found = {k: obj for k, obj in expected.items() if labels(obj)["mark"] == mark}
        assert store.keys_by_index("mark", mark) == sorted(found)
        assert dict(store.by_index("mark", mark)) == found
        values = store.values_by_index("mark", mark)
        assert list(values) == [found[k] for k in sorted(found)]
        assert len(values) == store.count("mark", mark) == len(found)
        assert list(values[1:]) == list(values)[1:]


@pytest.mark.parametrize("fields", [FEW, MANY])
def test_what_nests_too_deeply_to_be_packed_is_known_in_part(fields: int) -> None:
    deep: Object = {}
    for _ in range(1015):
        deep = {"a": deep}
    store = filled(WHOLE, {**secret("deep", 1, fields), "deep": deep}, secret("other", 2))
    known = store.get(Key("ns", "deep"))
    assert known is not None
    assert len(known["data"]) == fields
    assert store.get(Key("ns", "other")) is not None
