"""Recorded objects of the garden API with values replaced, lost and doubled: each gets an answer, and no rule raises.

What is made is the same each time; `tests/fuzz/garden_admission.py` goes on from there.
"""

import copy
import random
from typing import Any

import orjson
import pytest

from fuzz import garden_admission

ODD: tuple[Any, ...] = (
    *(None, "", 0, -1, 2**63, 1.5, True, [], {}, "a", "x" * 300, [None], {"a": None}, "Ü\u0000", ["a"], [{}]),
    *("2026-01-01T00:00:00Z", "1.30", "1.30.1.2", "10.0.0.0/8", "::/0", "@every 1h", "250000+0000", "1Ei", "-1m"),
)
TIMES = 40
"""How often each object is damaged."""

Place = tuple[Any, Any]
"""A mapping or list, and a key or index in it."""


def places(value: Any) -> list[Place]:
    found: list[Place] = []
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            found += [(value, key), *places(value[key])]
    return found


def damage(objects: list[Any], chance: random.Random) -> None:
    """One value in one of the objects, or the object as a whole."""
    within, key = chance.choice(places(objects))
    match chance.randrange(4):
        case 0 if isinstance(within, dict):
            del within[key]
        case 1 if isinstance(within, list) and within is not objects:
            within.append(copy.deepcopy(within[key]))
        case 2:
            other, its_key = chance.choice(places(objects))
            within[key] = copy.deepcopy(other[its_key])
        case _:
            within[key] = copy.deepcopy(chance.choice(ODD))


@pytest.mark.parametrize("index", range(len(garden_admission._ENDPOINTS)))
def test_a_damaged_object_gets_an_answer(index: int) -> None:
    chance = random.Random(index)
    for seed in garden_admission.seeds():
        if seed[0] == index:
            for _ in range(TIMES):
                objects = orjson.loads(seed[2:])
                for _ in range(chance.randint(1, 3)):
                    damage(objects, chance)
                garden_admission.target(seed[:2] + orjson.dumps(objects))
