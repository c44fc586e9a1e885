"""Which conditions a Shoot has: its own, and those of the Seed that runs on it."""

from collections.abc import Sequence

from gardener.conditions import SHOOT_CONDITIONS
from kube.objects import Object

OWN = frozenset(SHOOT_CONDITIONS)


def merged(present: Sequence[Object], of_seed: Sequence[Object]) -> list[Object]:
    """What a Shoot shows, given the conditions of its Seed: each in its place, new ones at the end, no others."""
    added = {each.get("type"): each for each in of_seed}
    result = [
        added.pop(kind) if kind in added else condition
        for condition in present
        if (kind := condition.get("type")) in OWN or kind in added
    ]
    return [*result, *added.values()]
