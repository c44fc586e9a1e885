"""Which Shoots are replicas of a ManagedSeedSet."""

from typing import Any

import pytest

from gardener.garden.managed_seed_sets import membership_of
from kit.garden_objects import shoot
from kube.objects import Object, key

SET: Object = {
    "metadata": {"name": "test", "namespace": "garden", "uid": "u"},
    "spec": {"selector": {"matchLabels": {"set": "test"}}},
}


def member(name: str, *, owner: str = "", label: str = "test", is_controller: bool = True, **metadata: Any) -> Object:
    owners = [{"kind": "ManagedSeedSet", "name": "test", "uid": owner, "controller": is_controller}] if owner else []
    return shoot(name, labels={"set": label}, ownerReferences=owners, **metadata)


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (member("test-0", owner="u"), "owned"),
        (member("other", owner="u"), "owned"),
        (member("test-0", owner="u", label="x"), ""),
        (member("test-0"), "adoptable"),
        (member("test-0", owner="u", is_controller=False), "adoptable"),
        (member("test-0", deletionTimestamp="2030-01-01T00:00:00Z"), ""),
        # A set of the same name that was removed.
        (member("test-0", owner="former"), "foreign"),
        (member("test"), "foreign"),
        (member("test-x"), "foreign"),
        (member("my-test-0"), "foreign"),
        (member("test-0-0"), "foreign"),
        (member("test-007"), "foreign"),
    ],
)
def test_whose_a_shoot_is(of: Object, expected: str) -> None:
    found = membership_of(SET, [of])
    groups = {"owned": found.owned, "adoptable": found.adoptable, "foreign": found.foreign}
    assert {name for name, shoots in groups.items() if shoots} == ({expected} if expected else set())
    assert sum(map(len, groups.values())) == bool(expected)


def test_all_shoots_are_sorted_out() -> None:
    shoots = [member("test-1", owner="u"), member("test-2"), member("x"), member("test-0", owner="u")]
    found = membership_of(SET, shoots)
    assert [key(each).name for each in found.owned] == ["test-1", "test-0"]
    assert [key(each).name for each in found.adoptable] == ["test-2"]
    assert [key(each).name for each in found.foreign] == ["x"]


def test_an_unknown_operator_is_an_error() -> None:
    odd: Object = {
        "metadata": {"name": "t"},
        "spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "?"}]}},
    }
    with pytest.raises(ValueError, match="not a valid label selector operator"):
        membership_of(odd, [member("t-0")])
