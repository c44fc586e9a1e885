"""A Shoot shows its own conditions and those of the Seed that runs on it."""

from hypothesis import given
from hypothesis import strategies as st

from agent.controller_manager.shoot.conditions import OWN, merged
from kube.objects import Object

TYPES = st.sampled_from([*sorted(OWN), "GardenletReady", "ExtensionsReady", "Foreign"])


def conditions(*types: str, status: str = "True") -> list[Object]:
    return [{"type": each, "status": status} for each in types]


LISTS = st.lists(TYPES, unique=True).map(lambda types: conditions(*types))
OF_SEEDS = st.lists(TYPES, unique=True).map(lambda types: conditions(*types, status="False"))


def test_conditions_keep_their_places() -> None:
    present = conditions("GardenletReady", "APIServerAvailable", "Foreign", "EveryNodeReady")
    of_seed = conditions("ExtensionsReady", "GardenletReady", status="False")
    result = merged(present, of_seed)
    assert [each["type"] for each in result] == [
        "GardenletReady",
        "APIServerAvailable",
        "EveryNodeReady",
        "ExtensionsReady",
    ]
    assert [each["status"] for each in result] == ["False", "True", "True", "False"]


@given(present=LISTS, of_seed=OF_SEEDS)
def test_merging_twice_changes_nothing(present: list[Object], of_seed: list[Object]) -> None:
    once = merged(present, of_seed)
    assert merged(once, of_seed) == once
    assert {each["type"] for each in once} == {each["type"] for each in of_seed} | (
        OWN & {each["type"] for each in present}
    )
    assert merged(once, []) == [each for each in once if each["type"] in OWN]
