"""kill -9 at a write while a gardenlet deploys the one of a ManagedSeed, and while it removes it: the next one ends it.

Connections to garden, seed and the cluster of the Shoot are cut in the process, all at the same moment. Each life writes
in the same order. Every eleventh moment is met, since each takes seconds; with CRASH_SWEEP=full all, before and after each write.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from devcluster.cluster import Cluster
from devcluster.pytest_plugin import RunClusters
from gardener.api.garden import MANAGED_SEEDS, SEEDS
from kit import world
from kit.crash.lives import Killed, Life, MortalTransport, begin, moments
from kit.crash.sweep import FULL, Moment
from kit.eventually import soon
from kit.garden import Garden
from kit.managed_seeds import GARDEN, ManagedSeedPlay
from kube.errors import Unreachable
from kube.objects import Object, finalizers
from kube.paths import at
from kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from process import clusters

pytestmark = pytest.mark.timeout(900)

_STEP = 1 if FULL else 11
_AGAIN = 20
"""Writes beyond those of an undisturbed life: a life that knows nothing of earlier ones writes each object once, though
nothing in it changes."""


class CutTransport(MortalTransport):
    """Control loops go on without an API server; they are ended by who plays."""

    @asynccontextmanager
    async def send(self, method: str, path: str, **options: Any) -> AsyncIterator[Any]:
        try:
            async with super().send(method, path, **options) as response:
                yield response
        except Killed as error:
            message = "this life is over"
            raise Unreachable(message) from error


@pytest.fixture(scope="module")
def cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


async def lived(
    play: ManagedSeedPlay, is_done: Callable[[], bool], monkeypatch: pytest.MonkeyPatch, moment: Moment | None
) -> list[str]:
    """What was written in a life that ends at the moment, and in the next one."""
    first = await _life(play, is_done, monkeypatch, moment)
    if moment is None:
        return first.writes
    assert first.is_over, f"it did not come {moment}"
    return [*first.writes, *(await _life(play, is_done, monkeypatch, None)).writes]


async def _life(
    play: ManagedSeedPlay, is_done: Callable[[], bool], monkeypatch: pytest.MonkeyPatch, moment: Moment | None
) -> Life:
    with monkeypatch.context() as patched:
        life = begin(patched, moment)
        patched.setattr(clusters, "Transport", CutTransport)
        patched.setattr(world, "Transport", CutTransport)
        async with play.parent_at_work() as (loop,):
            await soon(
                lambda: life.is_over or (loop.queue.is_idle and is_done()), "the end of this life", state=play.said
            )
            life.is_over = life.is_over or moment is not None
    return life


def state(play: ManagedSeedPlay) -> Object:
    kinds = (DEPLOYMENTS, SERVICES, SERVICE_ACCOUNTS, SECRETS, ROLES, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
    live = play.managed_seed
    return {
        "in the cluster": {each.plural: play.of_gardenlet(each) for each in kinds},
        "configurations": len(play.of_gardenlet(CONFIG_MAPS)),
        "namespace": play.find(NAMESPACES, GARDEN) is not None,
        "token": play.token() is not None,
        "backup": play.backup() is not None,
        "managed seed": None
        if live is None
        else (finalizers(live), play.said()[:2], at(live, "status", "observedGeneration")),
    }


def is_deployed(play: ManagedSeedPlay) -> bool:
    return play.said()[:2] == ("True", "Reconciled")


def is_gone(play: ManagedSeedPlay) -> bool:
    """Meanwhile, its gardenlet does its part."""
    seed = play.place.find(SEEDS, play.name)
    if seed is not None and at(seed, "metadata", "deletionTimestamp"):
        play.clean_up()
    return play.managed_seed is None


def _sampled(writes: Sequence[str]) -> list[Moment]:
    return moments(len(writes))[::_STEP]  # before and after in turn


async def test_a_gardenlet_is_deployed_and_removed_whoever_dies_meanwhile(
    garden: Garden, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def played(to_deploy: Moment | None, to_remove: Moment | None) -> tuple[list[str], list[str], list[Object]]:
        play = ManagedSeedPlay(garden, cluster)
        try:
            play.create()
            deploying = await lived(play, lambda: is_deployed(play), monkeypatch, to_deploy)
            deployed = state(play)
            play.register()
            play.place.delete(MANAGED_SEEDS, play.name)
            removing = await lived(play, lambda: is_gone(play), monkeypatch, to_remove)
            return deploying, removing, [deployed, state(play)]
        finally:
            play.remove()

    deploying, removing, whole = await played(None, None)
    assert whole[0]["in the cluster"]["deployments"] == ["gardenlet"]
    assert whole[0]["configurations"] == 1
    assert whole[1]["managed seed"] is None
    assert not whole[1]["namespace"]
    assert not whole[1]["backup"]
    for moment in _sampled(deploying):
        written, _, found = await played(moment, None)
        assert found == whole, moment
        assert len(written) <= len(deploying) + _AGAIN, (moment, written)
    for moment in _sampled(removing):
        _, written, found = await played(None, moment)
        assert found == whole, moment
        assert len(written) <= len(removing) + _AGAIN, (moment, written)
