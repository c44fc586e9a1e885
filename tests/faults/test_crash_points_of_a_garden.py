"""kill -9 at any write of the controller manager; see `kit.crash.sweep`."""

from collections.abc import Iterator

import pytest

from devcluster.cluster import Cluster
from devcluster.garden.box import Garden as Box
from devcluster.pytest_plugin import RunClusters
from kit.crash import (
    scenes_of_a_garden,
    scenes_of_projects,
    scenes_of_seed_autoscalers,
    scenes_of_seed_sets,
    scenes_of_shoots,
)
from kit.crash.sweep import Scene, Sweep

SCENES: list[type[Scene]] = [
    *scenes_of_a_garden.SCENES,
    *scenes_of_projects.SCENES,
    *scenes_of_shoots.SCENES,
    *scenes_of_seed_sets.SCENES,
    *scenes_of_seed_autoscalers.SCENES,
]
_AT_ONCE = 4
"""Runs of a scene at the same time, in namespaces of their own."""


@pytest.fixture(scope="module")
def garden(devcluster_run: RunClusters) -> Iterator[Cluster]:
    with Cluster() as cluster:
        Box(cluster).install()
        yield cluster


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_killed_at_any_write_in_a_garden(scene: type[Scene], garden: Cluster) -> None:
    report = await Sweep(scene, garden, at_once=1 if scene.everywhere else _AT_ONCE).run()
    print(f"CRASHES {scene.__name__}: {report}")
    assert scene.crosses <= report.reached(), "the sweep misses some"
