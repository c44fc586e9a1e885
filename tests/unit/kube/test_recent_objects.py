"""The memory for whole objects: bounded, and never of another version."""

import random
import string

import pytest

from kube.objects import Object
from kube.packing import RecentObjects, compact, digest, packed, unpacked


def thing(name: str, version: int, *, size: int = 0) -> Object:
    return {
        "metadata": {"name": name, "resourceVersion": str(version)},
        # Such data do not compress to less than three quarters.
        "data": {"text": "".join(random.Random(name).choices(string.ascii_letters, k=size))},
    }


@pytest.mark.parametrize("size", [0, 100, 5000])
def test_an_object_comes_back_as_it_was(size: int) -> None:
    bodies = RecentObjects(limit=100_000)
    bodies.put("a", thing("a", 7, size=size))
    assert bodies.get("a", version=7) == thing("a", 7, size=size)


@pytest.mark.parametrize(
    ("size", "is_smaller"), [(0, False), (200, False), (1000, True), (60_000, True), (70_000, False)]
)
def test_json_is_compressed_where_that_pays(size: int, is_smaller: bool) -> None:
    body = compact(thing("a", 1, size=size))
    assert (len(packed(body)) < len(body)) is is_smaller
    assert unpacked(packed(body)) == thing("a", 1, size=size)


def test_another_version_is_not_given_out() -> None:
    bodies = RecentObjects(limit=10_000)
    for version in (7, 8):
        bodies.put("a", thing("a", version))
        assert bodies.get("a", version=version) == thing("a", version)
        assert bodies.get("a", version=version - 1) is bodies.get("a", version=version + 1) is None


def test_changes_to_what_was_given_out_are_not_remembered() -> None:
    bodies = RecentObjects(limit=10_000)
    bodies.put("a", thing("a", 7))
    given = bodies.get("a", version=7)
    assert given is not None
    given["data"]["text"] = "changed"
    assert bodies.get("a", version=7) == thing("a", 7)


def test_the_oldest_go_when_it_gets_too_much() -> None:
    bodies = RecentObjects(limit=4000)
    for number in range(20):
        bodies.put(number, thing(str(number), 1, size=900))
    kept = [number for number in range(20) if bodies.get(number, version=1)]
    assert kept in ([16, 17, 18, 19], [15, 16, 17, 18, 19])


def test_a_new_version_takes_the_place_of_the_old_one() -> None:
    bodies = RecentObjects(limit=4000)
    for version in range(1, 50):
        bodies.put("a", thing("a", version, size=900))
    bodies.put("b", thing("b", 1, size=900))
    assert all(bodies.get(name, version=version) for name, version in (("a", 49), ("b", 1)))


def test_what_is_too_big_alone_is_not_kept_and_breaks_nothing() -> None:
    bodies = RecentObjects(limit=1500)
    bodies.put("big", thing("big", 1, size=100_000))
    assert bodies.get("big", version=1) is None
    bodies.put("a", thing("a", 1, size=900))
    assert bodies.get("a", version=1) == thing("a", 1, size=900)


def test_what_compresses_well_takes_little_room() -> None:
    bodies = RecentObjects(limit=3000)
    for number in range(10):
        obj = thing(str(number), 1)
        obj["data"]["text"] = "x" * 20_000
        bodies.put(number, obj)
    assert all(bodies.get(number, version=1) for number in range(10))


def test_what_is_dropped_is_gone_and_makes_room() -> None:
    bodies = RecentObjects(limit=2000)
    for name in "ab":
        bodies.put(name, thing(name, 1, size=900))
    bodies.drop("b")
    bodies.drop("never seen")
    assert bodies.get("b", version=1) is None
    bodies.put("c", thing("c", 1, size=900))
    assert all(bodies.get(name, version=1) for name in "ac")


def test_what_nests_deeply_is_compared_but_not_kept() -> None:
    def deep(value: str) -> Object:
        obj: Object = {"a": value, "b": 1.5, "c": [None, True]}
        for _ in range(900):
            obj = {"a": obj}
        return obj

    assert digest(deep("x")) == digest(deep("x")) != digest(deep("y"))
    bodies = RecentObjects(limit=10_000)
    bodies.put("a", thing("a", 7))
    bodies.put("a", thing("a", 8) | {"spec": deep("x")})
    assert bodies.get("a", version=7) is bodies.get("a", version=8) is None
