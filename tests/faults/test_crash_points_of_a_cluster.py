"""What is about things without a namespace, in a cluster of its own.

kill -9 at any write (see `kit.crash.sweep`), and answers that no API server gave (see `kit.crash.answers`).
"""

from collections.abc import Iterator

import pytest

from devcluster.cluster import Cluster
from kit.crash.answers import Answers, answers_of
from kit.crash.scenes_of_a_cluster import SCENES, install_kinds
from kit.crash.sweep import Scene, Sweep, deaths_in
from kit.managed_resources import install_crd

DEATHS = deaths_in(SCENES)


@pytest.fixture(scope="module")
def own_cluster(devcluster_run: object) -> Iterator[Cluster]:
    with Cluster() as own:
        install_crd(own)
        install_kinds(own)
        yield own


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_killed_at_any_write(scene: type[Scene], own_cluster: Cluster) -> None:
    report = await Sweep(scene, own_cluster, at_once=1).run(DEATHS[scene])
    print(f"CRASHES {scene.__name__}: {report}")


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_nothing_follows_from_an_answer_that_no_api_server_gave(scene: type[Scene], own_cluster: Cluster) -> None:
    await Answers(scene, own_cluster, at_once=1).check(answers_of(SCENES.index(scene)))
