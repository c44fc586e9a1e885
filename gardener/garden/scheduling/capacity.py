"""How many Shoots a Seed has, and how many it may have.

A Shoot costs one, whatever its state: also one that is deleted, hibernated or failed. One that moves costs one on both
Seeds until it has left the first.
"""

from collections import Counter
from collections.abc import Iterable
from decimal import ROUND_CEILING

from gardener.garden.shoots import seeds_of
from kube.objects import Object
from kube.paths import at
from kube.quantities import parse_quantity


class Usage(Counter[str]):
    """Number of Shoots by the name of the Seed."""

    @classmethod
    def of(cls, shoots: Iterable[Object]) -> "Usage":
        return cls(seed for shoot in shoots for seed in seeds_of(shoot))

    def __call__(self, seed: str) -> int:
        return self[seed]

    def add(self, seed: str) -> None:
        self[seed] += 1


def allocatable_shoots(seed: Object) -> int | None:
    """How many Shoots it may have, rounded up; None: there is no limit, or it can't be understood."""
    value = at(seed, "status", "allocatable", "shoots")
    try:
        quantity = parse_quantity(value) if isinstance(value, str | int) else None
        return None if quantity is None else int(quantity.to_integral_value(ROUND_CEILING))
    except (ValueError, ArithmeticError):
        return None
