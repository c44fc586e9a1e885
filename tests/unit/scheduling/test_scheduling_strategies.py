"""Distances between regions, by name or by a ConfigMap, and which Seeds are candidates."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gardener.garden.scheduling import Decision, RegionConfig, SeedCandidates, SeedInfo, Strategy, Usage, decide
from gardener.garden.scheduling.regions import distance
from kit.scheduling import PROFILE, schedulable, seed
from kube.objects import Object

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def config(name: str = "regions", profiles: str = PROFILE, **regions: str) -> RegionConfig:
    named = {"scheduling.gardener.cloud/cloudprofiles": profiles}
    meta = {"name": name, "namespace": "garden", "annotations": named}
    return RegionConfig.of({"kind": "ConfigMap", "metadata": meta, "data": regions})


def decided(
    *seeds: Object, configs: list[RegionConfig] | None = None, usage: Usage | None = None, **spec: Any
) -> Decision:
    garden = SeedCandidates(
        seeds=[SeedInfo.of(each) for each in seeds],
        usage=usage or Usage(),
        now=NOW,
        region_configs=configs or [],
        strategy=Strategy.MINIMAL_DISTANCE,
    )
    return decide(schedulable(**spec), {"seedSelector": {"providerTypes": ["*"]}}, garden)


@pytest.mark.parametrize(
    ("one", "other", "far"),
    [
        ("europe-west", "europe-west", 0),
        ("europe-west", "europe-east", 2),
        ("europe-west", "europe-:", 1),
        ("europe", "asia", 12),
        ("europe-west", "asia-east", 14),
        ("europe-west", "asia-:", 13),
        ("southeast", "southwest", 4),
        ("southeast", "southeast", 0),
        ("eu-de-200", "eu-de-2xzxzzx", 12),
        ("eu-de-2111", "eu-de-2xzxzzx", 12),
        ("", "", 0),
        ("münchen", "munchen", 2),
    ],
)
def test_regions_are_as_far_apart_as_their_names(one: str, other: str, far: int) -> None:
    assert distance(one, other, is_same_provider=True) == far
    assert distance(other, one, is_same_provider=True) == far
    assert distance(one, other, is_same_provider=False) == far + 2


def test_another_provider_is_as_far_as_another_orientation() -> None:
    seeds = (seed("a", region="europe-west", provider="aws"), seed("b", region="europe-east"))
    assert decided(*seeds, region="europe-west", usage=Usage({"a": 1})).seed == "b"
    assert decided(*seeds, region="europe-west", usage=Usage({"b": 1})).seed == "a"


def test_the_least_used_of_the_nearest_is_chosen() -> None:
    seeds = (seed("a", region="eu-de-200"), seed("b", region="eu-de-2111"), seed("c", region="eu-nl-1"))
    decision = decided(*seeds, region="eu-de-2xzxzzx", usage=Usage({"a": 2, "b": 1}))
    assert (decision.seed, decision.distance) == ("b", 12)
    assert set(decision.excluded) == {"c"}


def test_the_farthest_seeds_are_no_candidates() -> None:
    assert not decided(seed("a", region="x" * 600), region="y").seed


# --- the ConfigMap


@pytest.mark.parametrize(
    ("regions", "chosen", "far"),
    [
        ({"europe": "{asia: 5, africa: 7}"}, "asia", 5),
        ({"europe": "{africa: 7}"}, "africa", 7),
        ({"europe": "{asia: 5, africa: -1}"}, "africa", -1),
        ({"europe": ""}, "afrope", 4),
        ({"asia": "{africa: 1}"}, "afrope", 4),
        ({"europe": "{mars: 1}", "asia": "broken"}, "afrope", 4),
    ],
)
def test_what_the_map_reports_wins(regions: dict[str, str], chosen: str, far: int) -> None:
    seeds = [seed(region, region=region) for region in ("africa", "afrope", "asia")]
    decision = decided(*seeds, configs=[config(**regions)])
    assert (decision.seed, decision.distance) == (chosen, far)


def test_the_own_region_is_nearest_unless_the_map_specifies_otherwise() -> None:
    seeds = (seed("a", region="asia"), seed("e"))
    assert decided(*seeds, configs=[config(europe="{asia: 1}")]).seed == "e"
    assert decided(*seeds, configs=[config(europe="{asia: 1, europe: 2}")]).seed == "a"


def test_the_map_does_not_look_at_providers() -> None:
    assert (
        decided(seed("a", provider="aws"), seed("b", region="asia"), configs=[config(europe="{asia: 3}")]).seed == "a"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[a]", "it is not a map from regions to distances"),
        ("{asia: near}", 'the distance to "asia" is not an integer'),
        ("{asia: 1.5}", 'the distance to "asia" is not an integer'),
        ("{asia: true}", 'the distance to "asia" is not an integer'),
        ("{asia", ""),
    ],
)
def test_a_map_that_can_not_be_understood_is_named(text: str, reason: str) -> None:
    decision = decided(seed("a"), configs=[config(europe=text)])
    head = 'failed to determine seed candidates. Wrong format in region ConfigMap garden/regions, Region "europe": '
    assert not decision.seed
    assert decision.message.startswith(head + reason)
    assert decided(seed("a"), configs=[config(europe=text)], purpose="testing").seed == "a"


def test_the_first_map_by_name_that_names_the_profile_counts() -> None:
    seeds = (seed("a", region="asia"), seed("b", region="africa"))
    configs = [
        config("z", europe="{africa: 1}"),
        config("b", f"other, {PROFILE}", europe="{asia: 1}"),
        config("a", "other", europe="{africa: 1}"),
    ]
    assert decided(*seeds, configs=configs).seed == "a"


def test_testing_shoots_run_in_any_region_of_their_provider() -> None:
    far, foreign = seed("far", region="mars"), seed("foreign", provider="aws")
    assert decided(far, foreign, purpose="testing").seed == "far"
