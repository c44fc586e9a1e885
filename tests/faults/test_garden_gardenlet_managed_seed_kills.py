"""kill -9 at a write while a gardenlet deploys the one of a ManagedSeed, and while it removes it: the next one ends it.

Connections to garden, seed and the cluster of the Shoot are cut, all at the same moment. Each life writes in the same
order. Both deaths come in the same play. Every eleventh moment is met, since each takes seconds; with CRASH_SWEEP=full all,
before and after each write.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

import pytest

from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api.garden import MANAGED_SEEDS, SEEDS
from kit.crash.lives import moments
from kit.crash.loop_lives import Lives
from kit.crash.sweep import FULL, Moment
from kit.garden import Garden
from kit.installed_gardenlets import GARDEN
from kit.managed_seeds import ManagedSeedPlay
from kube.objects import Object, finalizers
from kube.paths import at
from kube.resources import NAMESPACES

pytestmark = pytest.mark.timeout(7200 if FULL else 900)

_STEP = 1 if FULL else 11
_AGAIN = 20
"""Writes beyond those of an undisturbed life: a life that knows nothing of earlier ones writes each object once, though
nothing in it changes."""


@pytest.fixture(scope="module")
def cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


def state(play: ManagedSeedPlay) -> Object:
    live = play.managed_seed
    return {
        "in the cluster": play.installed(),
        "namespace": play.find(NAMESPACES, GARDEN) is not None,
        "token": play.token() is not None,
        "backup": play.backup() is not None,
        "managed seed": None
        if live is None
        else (finalizers(live), play.reported()[:2], at(live, "status", "observedGeneration")),
    }


def is_deployed(play: ManagedSeedPlay) -> bool:
    return play.reported()[:2] == ("True", "Reconciled")


def is_gone(play: ManagedSeedPlay) -> bool:
    """Meanwhile, its gardenlet does its part."""
    seed = play.place.find(SEEDS, play.name)
    if seed is not None and at(seed, "metadata", "deletionTimestamp"):
        play.clean_up()
    return play.managed_seed is None


def _sampled(writes: Sequence[str]) -> list[Moment]:
    return moments(len(writes))[::_STEP]  # before and after in turn


async def test_a_gardenlet_is_deployed_and_removed_if_processes_die_meanwhile(
    garden: Garden, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def played(to_deploy: Moment | None, to_remove: Moment | None) -> tuple[list[str], list[str], list[Object]]:
        play = ManagedSeedPlay(garden, cluster)
        lives = Lives(monkeypatch=monkeypatch, at_work=play.parent_at_work, reported=play.reported)
        try:
            play.create()
            deploying = await lives.lived(lambda: is_deployed(play), to_deploy)
            deployed = state(play)
            play.register()
            play.place.delete(MANAGED_SEEDS, play.name)
            removing = await lives.lived(lambda: is_gone(play), to_remove)
            return deploying, removing, [deployed, state(play)]
        finally:
            play.remove()

    deploying, removing, whole = await played(None, None)
    assert whole[0]["in the cluster"]["deployments"] == ["gardenlet"]
    assert whole[0]["in the cluster"]["configurations"] == 1
    assert whole[1]["managed seed"] is None
    assert not whole[1]["namespace"]
    assert not whole[1]["backup"]
    for to_deploy, to_remove in zip_longest(_sampled(deploying), _sampled(removing)):
        deployed, removed, found = await played(to_deploy, to_remove)
        assert found == whole, (to_deploy, to_remove)
        assert len(deployed) <= len(deploying) + _AGAIN, (to_deploy, deployed)
        assert len(removed) <= len(removing) + _AGAIN, (to_remove, removed)
