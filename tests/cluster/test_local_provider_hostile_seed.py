"""The owner of a seed that is a Shoot writes objects of all sorts in it: none reaches this computer."""

from pathlib import Path

from attacks.seed_owner import attack
from devcluster.cluster import Cluster


def test_the_owner_of_a_seed_reaches_nothing_of_this_computer(devcluster_run: object, tmp_path: Path) -> None:
    with Cluster() as cluster:
        assert set(attack(cluster, tmp_path, seconds=8).values()) == {""}
