"""kill -9 at any write about things without a namespace; see `crash_sweep`. They have a cluster of their own."""

from collections.abc import Iterator

import pytest
from crash_scenes_cluster import SCENES, install_kinds
from crash_sweep import Scene, Sweep
from managed_world import install_crd

from devcluster.cluster import Cluster


@pytest.fixture(scope="module")
def own_cluster(devcluster_run: object) -> Iterator[Cluster]:
    with Cluster() as own:
        install_crd(own)
        install_kinds(own)
        yield own


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_killed_at_any_write(scene: type[Scene], own_cluster: Cluster) -> None:
    report = await Sweep(scene, own_cluster, at_once=1).run()
    print(f"CRASHES {scene.__name__}: {report}")
    assert scene.crosses <= report.reached(), "the sweep misses some"
