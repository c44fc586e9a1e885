"""A garden on loopback with two Seeds, and attacks that are a few requests each."""

from collections.abc import Callable, Mapping

from devcluster.cluster import Cluster
from devcluster.garden.box import GardenBox
from kit.garden import Garden
from kit.seed_rights import TwoSeeds, two_seeds
from kube.errors import ApiError, Forbidden, Invalid

Attempt = Callable[[], object]
Attack = Callable[[TwoSeeds], Attempt]
"""Prepares an attempt. What is refused before it ends the program: that is no attack."""


def try_all(attacks: Mapping[str, Attack]) -> int:
    """Print a table of outcomes, with the reason of each refusal."""
    with Cluster() as cluster:
        GardenBox(cluster).install()
        garden = Garden(cluster)
        print("| Attack | Outcome |\n|---|---|", flush=True)
        for name, attack in attacks.items():
            attempt = attack(two_seeds(garden))
            try:
                attempt()
            except (Forbidden, Invalid) as error:
                outcome = f"refused: {error}"
            except ApiError as error:
                outcome = f"error: {error}"
            else:
                outcome = "done"
            print(f"| {name} | {outcome} |", flush=True)
    return 0
