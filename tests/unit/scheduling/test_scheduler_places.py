"""Places that are taken before the caches show it, and the configuration of the scheduler."""

import asyncio
from typing import Any

import pytest

from agent.scheduler.shoot.assumed import Assumed
from config.scheduler import decode
from config.scheduler.schema import SchedulerConfiguration
from kit.scheduling import schedulable
from kube.objects import Object
from process.configuration.component import check
from process.configuration.errors import ConfigError

HEAD = "apiVersion: scheduler.config.gardener.cloud/v1alpha1\nkind: SchedulerConfiguration\n"


def known(name: str) -> Object:
    obj = schedulable(name)
    obj["metadata"]["uid"] = f"uid-of-{name}"
    return obj


async def test_a_place_is_taken_until_it_is_given_back_or_seen() -> None:
    freed: list[str] = []
    assumed = Assumed(on_free=lambda: freed.append("free"))
    assumed.take(known("a"), "seed")
    assumed.take(known("a"), "seed")
    assumed.take(known("b"), "seed")
    assert (assumed.count("seed"), assumed.count("other")) == (2, 0)
    assumed.seen(known("a"), ["seed"])
    assert (assumed.count("seed"), freed) == (1, [])
    assumed.give_back(known("b"), "seed")
    assert (assumed.count("seed"), freed) == (0, ["free"])


async def test_a_shoot_may_have_places_on_two_seeds_while_the_outcome_is_unknown() -> None:
    assumed = Assumed(on_free=lambda: None)
    for seed in ("a", "b"):
        assumed.take(known("s"), seed)
    assert (assumed.count("a"), assumed.count("b")) == (1, 1)
    await assumed.close()
    assert (assumed.count("a"), assumed.count("b")) == (0, 0)


async def test_what_never_comes_is_given_back() -> None:
    freed = asyncio.Event()
    assumed = Assumed(on_free=freed.set, seconds=0.01)
    assumed.take(known("s"), "seed")
    await asyncio.wait_for(freed.wait(), 300)
    assert assumed.count("seed") == 0


def test_without_a_setting_the_configuration_is_that_of_the_original() -> None:
    config = decode(HEAD).config
    assert config == SchedulerConfiguration()
    assert (config.client_connection.qps, config.client_connection.burst) == (50, 100)
    election = config.leader_election
    assert (election.resource_namespace, election.resource_name) == ("garden", "gardener-scheduler-leader-election")
    assert (config.server.health_probes.port, config.server.metrics.port) == (10251, 19251)
    shoots = config.schedulers.shoot
    assert (shoots.concurrent_syncs, shoots.candidate_determination_strategy) == (5, "SameRegion")


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("candidateDeterminationStrategy: Near", 'supported values: "SameRegion", "MinimalDistance"'),
        ("concurrentSyncs: 0", "schedulers.shoot.concurrentSyncs"),
        ("progressingSeedGracePeriod: -1s", "must be non-negative"),
    ],
)
def test_a_wrong_setting_is_explained(setting: str, problem: str) -> None:
    decoded: Any = decode(f"{HEAD}schedulers:\n  shoot:\n    {setting}\n")
    with pytest.raises(ConfigError) as error:
        check(decoded.config, conflicts=decoded.conflicts)
    assert problem in str(error.value)
