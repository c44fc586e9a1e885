"""kill -9 at any write of anything that writes; see `crash_sweep`."""

import pytest
from crash_scenes_agent import SCENES as AGENT
from crash_scenes_alone import SCENES as ALONE
from crash_scenes_managed import SCENES as MANAGED
from crash_sweep import Scene, Sweep
from managed_world import install_crd

from devcluster.cluster import Cluster

SCENES: list[type[Scene]] = [*MANAGED, *AGENT, *ALONE]


@pytest.fixture(scope="session")
def managed_resources(cluster: Cluster) -> None:
    install_crd(cluster)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_killed_at_any_write(scene: type[Scene], cluster: Cluster, managed_resources: None) -> None:
    report = await Sweep(scene, cluster).run()
    print(f"CRASHES {scene.__name__}: {report}")
    assert scene.crosses <= report.reached(), "the sweep misses some"
