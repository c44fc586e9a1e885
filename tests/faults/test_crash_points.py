"""kill -9 at any write of anything that writes; see `kit.crash.sweep`."""

import pytest

from devcluster.cluster import Cluster
from kit.crash.scenes_alone import SCENES as ALONE
from kit.crash.scenes_managed import SCENES as MANAGED
from kit.crash.scenes_of_agents import SCENES as AGENT
from kit.crash.sweep import Scene, Sweep, deaths_in
from kit.managed_resources import install_crd

SCENES: list[type[Scene]] = [*MANAGED, *AGENT, *ALONE]
DEATHS = deaths_in(SCENES)


@pytest.fixture(scope="session")
def managed_resources(cluster: Cluster) -> None:
    install_crd(cluster)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_killed_at_any_write(scene: type[Scene], cluster: Cluster, managed_resources: None) -> None:
    report = await Sweep(scene, cluster).run(DEATHS[scene])
    print(f"CRASHES {scene.__name__}: {report}")
