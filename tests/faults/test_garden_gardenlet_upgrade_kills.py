"""kill -9 at a write while a gardenlet reinstalls itself, with a new kubeconfig: the next one ends it.

Connections to garden and seed are cut, at the same moment. Every eleventh moment is met, since each takes seconds; with
CRASH_SWEEP=full all, before and after each write.
"""

from collections.abc import Iterator

import pytest

from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from kit.chart_registry import FakeRegistry
from kit.crash.lives import moments
from kit.crash.loop_lives import Lives
from kit.crash.sweep import FULL, Moment
from kit.garden import Garden
from kit.gardenlet_upgrades import DEPLOYED, Upgraded
from kit.installed_gardenlets import GARDEN
from kube.objects import Object, annotations
from kube.paths import at
from kube.resources import NAMESPACES, SECRETS

pytestmark = pytest.mark.timeout(7200 if FULL else 900)

_STEP = 1 if FULL else 11
_AGAIN = 20
"""Writes beyond those of an undisturbed life, which a life that knows nothing of earlier ones makes again."""


@pytest.fixture(scope="module")
def seed_cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    with Cluster() as cluster:
        cluster.api.create(NAMESPACES.path(), {"metadata": {"name": GARDEN}})
        yield cluster


def state(upgraded: Upgraded) -> Object:
    return {
        "in the cluster": upgraded.installed(),
        "kubeconfig": upgraded.find(SECRETS, "gardenlet-kubeconfig"),
        "token": upgraded.token() is not None,
        "asked": annotations(upgraded.gardenlet),
        "said": upgraded.reported()[:2],
        "observed": at(upgraded.gardenlet, "status", "observedGeneration"),
    }


async def test_a_gardenlet_is_reinstalled_if_processes_die_meanwhile(
    garden: Garden, seed_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def played(moment: Moment | None) -> tuple[list[str], Object]:
        upgraded = Upgraded(garden, seed_cluster, registry)
        lives = Lives(monkeypatch=monkeypatch, at_work=upgraded.at_work, reported=upgraded.reported)
        try:
            upgraded.store_kubeconfig()
            upgraded.create(image={"repository": "r", "tag": "v1"})
            upgraded.renew()
            is_done = lambda: upgraded.reported()[:2] == DEPLOYED and not annotations(upgraded.gardenlet)  # noqa: E731
            return await lives.lived(is_done, moment), state(upgraded)
        finally:
            upgraded.remove()

    registry = FakeRegistry()
    async with registry.serving():
        written, whole = await played(None)
        assert whole["in the cluster"]["deployments"] == ["gardenlet"]
        assert whole["in the cluster"]["secrets"] == ["gardenlet-kubeconfig-bootstrap"]
        assert whole["in the cluster"]["configurations"] == 1
        assert whole["kubeconfig"] is None
        for moment in moments(len(written))[::_STEP]:  # before and after in turn
            in_two_lives, found = await played(moment)
            assert found == whole, moment
            assert len(in_two_lives) <= len(written) + _AGAIN, (moment, in_two_lives)
