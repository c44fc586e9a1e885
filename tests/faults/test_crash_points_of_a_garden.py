"""kill -9 at any write about Projects; see `kit.crash.sweep`. A garden is one for all who work on it: one at a time."""

from collections.abc import Iterator

import pytest

from devcluster.cluster import Cluster
from devcluster.garden.box import Garden as Box
from devcluster.pytest_plugin import RunClusters
from kit.crash.scenes_of_a_garden import SCENES
from kit.crash.sweep import Scene, Sweep


@pytest.fixture(scope="module")
def garden(devcluster_run: RunClusters) -> Iterator[Cluster]:
    with Cluster() as cluster:
        Box(cluster).install()
        yield cluster


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_killed_at_any_write_in_a_garden(scene: type[Scene], garden: Cluster) -> None:
    report = await Sweep(scene, garden, at_once=1).run()
    print(f"CRASHES {scene.__name__}: {report}")
    assert scene.crosses <= report.reached(), "the sweep misses some"
