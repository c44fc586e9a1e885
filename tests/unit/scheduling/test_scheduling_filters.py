"""The filters of the scheduler, one by one and in their order, with what is reported if no Seed is left."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardener.garden.scheduling import Decision, Filter, SeedCandidates, SeedInfo, Usage, decide, tolerates
from kit.scheduling import READY, schedulable, seed, toleration
from kit.webhooks.shoots import with_fields
from kube.objects import Object

NOW = datetime(2026, 1, 2, tzinfo=UTC)
HA_ZONE = {"highAvailability": {"failureTolerance": {"type": "zone"}}}
PROGRESSING = {"type": "GardenletReady", "status": "Progressing"}


def decided(
    wanted: Object, *seeds: Object, profile: Object | None = None, usage: Usage | None = None, **options: Any
) -> Decision:
    infos = sorted((SeedInfo.of(each) for each in seeds), key=lambda info: info.name)
    garden = SeedCandidates(seeds=infos, usage=usage or Usage(), now=NOW, **options)
    return decide(wanted, {"type": "local"} if profile is None else profile, garden)


def selecting(**selector: Any) -> Object:
    return {"seedSelector": selector}


# --- which Seeds are usable


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, ""),
        ({"metadata__deletionTimestamp": "2026-01-01T00:00:00Z"}, "it is being deleted"),
        ({"spec__settings": {"scheduling": {"visible": False}}}, "spec.settings.scheduling.visible is false"),
        ({"metadata__annotations": {"seedmanagement.gardener.cloud/cordoned": "true"}}, "it is cordoned"),
        ({"status__lastOperation": None}, "its gardenlet has not started its reconciliation"),
        ({"status__lastOperation": {"type": "Reconcile", "state": "Failed"}}, ""),
        ({"status__conditions": []}, "condition GardenletReady is missing"),
        ({"status__conditions": [{**READY, "status": "Unknown"}]}, "condition GardenletReady is Unknown"),
        ({"status__conditions": [READY, {"type": "ExtensionsReady", "status": "False"}]}, ""),
        ({"spec__backup": {"provider": "local"}}, "condition BackupBucketsReady is missing"),
        ({"spec__backup": {"provider": "local"},
          "status__conditions": [READY, {"type": "BackupBucketsReady", "status": "True"}]}, ""),
        ({"status__conditions": [PROGRESSING]}, "condition GardenletReady is Progressing"),
        ({"status__conditions": [{**PROGRESSING, "lastTransitionTime": "2026-01-01T23:54:00Z"}]},
         "condition GardenletReady is Progressing"),
        ({"status__conditions": [{**PROGRESSING, "lastTransitionTime": "2026-01-01T23:56:00Z"}]}, ""),
    ],
)  # fmt: skip
def test_a_seed_is_usable_if_it_is_visible_and_ready(fields: dict[str, Any], reason: str) -> None:
    decision = decided(schedulable(), with_fields(seed("a"), **fields))
    if not reason:
        assert decision.seed == "a"
        return
    message = "none of the 1 seeds is valid for scheduling (not deleting, visible and ready)"
    assert (decision.seed, decision.message) == ("", message)
    assert decision.excluded["a"].by == Filter.USABLE
    assert decision.excluded["a"].reason.startswith(reason)


def test_without_grace_a_seed_that_is_progressing_is_not_usable() -> None:
    just_now = [{**PROGRESSING, "lastTransitionTime": "2026-01-01T23:59:59Z"}]
    assert not decided(schedulable(), with_fields(seed("a"), status__conditions=just_now), grace=timedelta()).seed


# --- the profile


def test_a_shoot_without_profile_is_not_scheduled() -> None:
    assert decided(schedulable(cloudProfile=None), seed("a")).message == "could not determine cloudprofile from shoot"


def test_a_profile_that_does_not_exist_is_named() -> None:
    garden = SeedCandidates(seeds=[SeedInfo.of(seed("a"))], usage=Usage(), now=NOW)
    assert decide(schedulable(), None, garden).message == 'cloudprofiles.core.gardener.cloud "profile" not found'
    own = schedulable(cloudProfile={"kind": "NamespacedCloudProfile", "name": "own"})
    message = 'namespacedcloudprofiles.core.gardener.cloud "own" has not been rendered yet'
    assert decide(own, {}, garden).message == message


# --- filters


@pytest.mark.parametrize(
    ("wanted", "profile", "fields", "by", "message"),
    [
        ({}, selecting(matchLabels={"tier": "gold"}), {}, Filter.PROFILE_SELECTOR,
         ("none out of the 1 seeds has the matching labels required by seed selector of 'CloudProfile'"
         " (selector: 'tier=gold')")),
        ({"seedSelector": {"matchLabels": {"z": "1"}, "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["silver", "gold"]}]}}, {"type": "local"}, {},
         Filter.SHOOT_SELECTOR,
         ("none out of the 1 seeds has the matching labels required by seed selector of 'Shoot'"
         " (selector: 'tier in (gold,silver),z=1')")),
        ({}, {"type": "local"}, {"spec__provider__type": "aws"}, Filter.PROVIDER,
         'none out of the 1 seeds has a matching provider for "local"'),
        ({}, selecting(providerTypes=["gcp"]), {}, Filter.PROVIDER,
         'none out of the 1 seeds has a matching provider for "local"'),
        ({"controlPlane": HA_ZONE}, {"type": "local"}, {"spec__provider__zones": ["a", "b"]}, Filter.ZONES,
         ("none of the 1 seeds has at least 3 zones for hosting a shoot control plane with failure tolerance type"
         " 'zone'")),
        ({}, {"type": "local"}, {"spec__networks__nodes": "10.250.7.0/24"}, Filter.NETWORKS,
         ('0/1 seed cluster candidate(s) are eligible for scheduling: {a => invalid networks: [Invalid value:'
         ' "10.250.0.0/16": shoot node network intersects with seed node network]}')),
        ({}, {"type": "local"}, {"spec__taints": [{"key": "k"}]}, Filter.TAINTS,
         "0/1 seed cluster candidate(s) are eligible for scheduling: {a => shoot does not tolerate the seed's taints}"),
        ({}, {"type": "local"}, {"status__allocatable": {"shoots": "0"}}, Filter.CAPACITY,
         ("0/1 seed cluster candidate(s) are eligible for scheduling: {a => seed does not have available capacity for"
         " shoots}")),
        ({}, {"type": "local"}, {"spec__provider__region": "asia"}, Filter.STRATEGY,
         ("no matching seed candidate found for Configuration (Cloud Profile 'profile', Region 'europe',"
         " SeedDeterminationStrategy 'SameRegion')")),
    ],
)  # fmt: skip
def test_what_excludes_the_last_seed_is_reported(
    wanted: dict[str, Any], profile: Object, fields: dict[str, Any], by: Filter, message: str
) -> None:
    decision = decided(schedulable(**wanted), with_fields(seed("a"), **fields), profile=profile)
    assert decision.message == message
    assert decision.excluded["a"].by == by
    assert decision.lacks_room is (by == Filter.CAPACITY)


@pytest.mark.parametrize(
    ("wanted", "profile", "fields"),
    [
        ({}, selecting(), {}),
        ({"seedSelector": {}}, {"type": "local"}, {}),
        ({"seedSelector": {"providerTypes": ["gcp"]}}, {"type": "local"}, {}),
        ({"purpose": "testing"}, {"type": "local"}, {"spec__provider__region": "asia"}),
        ({"controlPlane": {"highAvailability": {"failureTolerance": {"type": "node"}}}}, {"type": "local"},
         {"spec__provider__zones": ["a"]}),
        ({"networking": None}, {"type": "local"}, {"spec__networks__nodes": "10.250.7.0/24"}),
        ({"networking": {"services": "100.64.0.0/13"}, "provider": {"type": "local"}}, {"type": "local"}, {}),
        ({}, {"type": "local"}, {"status__allocatable": {"persistent-volumes": "0"}}),
        ({}, {"type": "local"}, {"status__allocatable": {"shoots": "1m"}}),
    ],
)  # fmt: skip
def test_what_does_not_matter_excludes_no_seed(wanted: dict[str, Any], profile: Object, fields: dict[str, Any]) -> None:
    assert decided(schedulable(**wanted), with_fields(seed("a"), **fields), profile=profile).seed == "a"


@pytest.mark.parametrize("types", [["*"], ["aws", "gcp"]])
def test_a_profile_may_allow_seeds_of_other_providers(types: list[str]) -> None:
    other = seed("a", provider="aws")
    found = decided(schedulable(purpose="production"), other, profile=selecting(providerTypes=types))
    assert found.excluded["a"].by == Filter.STRATEGY


def test_a_selector_that_can_not_be_understood_is_shown() -> None:
    broken = {"matchExpressions": [{"key": "a", "operator": "Is"}]}
    message = decided(schedulable(seedSelector=broken), seed("a")).message
    assert message == (
        'label selector conversion failed: {"matchExpressions": [{"key": "a", "operator": "Is"}]} for seedSelector:'
        ' "Is" is not a valid label selector operator'
    )


def test_each_filter_counts_what_the_one_before_has_left() -> None:
    gone = with_fields(seed("a"), metadata__deletionTimestamp="2026-01-01T00:00:00Z")
    foreign, full = seed("b", provider="aws"), seed("d", room=0)
    tainted = with_fields(seed("c"), spec__taints=[{"key": "k"}])
    decision = decided(schedulable(), full, tainted, foreign, gone)
    assert decision.message == (
        "0/2 seed cluster candidate(s) are eligible for scheduling: {c => shoot does not tolerate the seed's taints,"
        " d => seed does not have available capacity for shoots}"
    )
    assert [decision.excluded[name].by for name in "abcd"] == ["usable", "provider", "taints", "capacity"]
    assert decision.lacks_room


def test_a_seed_that_would_not_be_chosen_anyway_is_not_what_lacks_room() -> None:
    assert not decided(schedulable(), seed("a", room=0, region="asia")).lacks_room


def test_of_many_seeds_the_first_are_named() -> None:
    message = decided(schedulable(), *(seed(f"s{number:03}", room=0) for number in range(120))).message
    assert message.startswith("0/120 seed")
    assert message.endswith("s099 => seed does not have available capacity for shoots, and 20 more}")


# --- networks


@pytest.mark.parametrize(
    ("networking", "problems"),
    [
        ({"nodes": "10.250.0.0/16"}, ["Required value: services is required", "Required value: pods is required"]),
        ({"nodes": "10.10.128.0/17", "pods": "10.0.0.0/9", "services": "192.168.123.0/25"}, [
            'Invalid value: "10.10.128.0/17": shoot node network intersects with seed node network',
            ('Invalid value: "192.168.123.0/25": shoot service network intersects with default vpn network'
            " (192.168.123.0/24)"),
            'Invalid value: "10.0.0.0/9": shoot pod network intersects with seed service network',
            'Invalid value: "10.0.0.0/9": shoot pod network intersects with seed pod network',
            'Invalid value: "10.0.0.0/9": shoot pod network intersects with seed node network']),
        ({"pods": "fd00:10::/64", "services": "fd8f:6d53:b97a:1::/112"}, [
            ('Invalid value: "fd8f:6d53:b97a:1::/112": shoot service network intersects with default vpn network'
            " (fd8f:6d53:b97a:1::/96)")]),
    ],
)  # fmt: skip
def test_networks_of_shoot_and_seed_are_apart(networking: Object, problems: list[str]) -> None:
    message = decided(schedulable(networking=networking), seed("a")).excluded["a"].reason
    assert message == f"invalid networks: [{' '.join(problems)}]"


def test_a_seed_proposes_networks() -> None:
    proposing = with_fields(
        seed("a"), spec__networks__shootDefaults={"pods": "10.0.0.0/9", "services": "10.200.0.0/24"}
    )
    message = decided(schedulable(networking={"nodes": "10.250.0.0/16"}), proposing).excluded["a"].reason
    assert "services is required" not in message
    assert "shoot pod network intersects" in message


def test_networks_that_a_shoot_has_count_besides() -> None:
    moving = with_fields(schedulable(), status__networking={"pods": ["10.20.1.0/24"], "nodes": ["10.99.0.0/16"]})
    message = decided(moving, seed("a")).excluded["a"].reason
    assert message.count("intersects") == 1
    assert '"10.20.1.0/24": shoot pod network' in message


# --- taints


@pytest.mark.parametrize(
    ("taints", "tolerations", "is_tolerated"),
    [
        ([], [], True),
        ([], ["k"], True),
        (["k=v"], ["k"], False),
        (["k=v"], ["k=v"], True),
        (["k=v"], ["k=w"], False),
        (["k"], ["k=w"], True),
        (["k"], ["l"], False),
        (["k", "l"], ["k"], False),
        (["k", "l"], ["l", "k"], True),
        (["k=v", "k=w"], ["k=w", "k=v"], True),
        (["k=v", "k"], ["k=v"], True),
    ],
)
def test_each_taint_needs_a_toleration(taints: list[str], tolerations: list[str], is_tolerated: bool) -> None:
    tainted = with_fields(seed("a"), spec__taints=[toleration(each) for each in taints])
    assert tolerates(map(toleration, tolerations), SeedInfo.of(tainted).taints) is is_tolerated


# --- which of those that fit


def test_the_seed_with_the_fewest_shoots_is_chosen_among_those_with_room() -> None:
    a, b, c = seed("a", room=3), with_fields(seed("b", room=10), spec__taints=[{"key": "x"}]), seed("c")
    usage = Usage({"a": 3, "b": 5, "c": 7})
    assert decided(schedulable(), a, b, c, usage=usage).seed == "c"
    assert decided(schedulable(tolerations=[{"key": "x"}]), a, b, c, usage=usage).seed == "b"
    message = decided(schedulable(), a, b, usage=usage).message
    assert message == (
        "0/2 seed cluster candidate(s) are eligible for scheduling: {a => seed does not have available capacity for"
        " shoots, b => shoot does not tolerate the seed's taints}"
    )


def test_of_equal_seeds_the_first_by_name_is_chosen() -> None:
    assert decided(schedulable(), seed("c"), seed("b"), usage=Usage({"b": 1, "c": 1})).seed == "b"


def test_a_shoot_that_moves_counts_on_both_seeds() -> None:
    moving = with_fields(schedulable("m", on="b"), status__seedName="a")
    assert Usage.of([moving, schedulable("n", on="a"), schedulable()]) == {"a": 2, "b": 1}


def test_a_selector_with_very_many_values_costs_little_and_is_cut_in_messages() -> None:
    """What was stored before selectors had bounds: they are compared with each Seed, in each decision."""
    values = [f"v{number}" for number in range(20_000)]
    expressions = [
        {"key": "a", "operator": "NotIn", "values": values},
        {"key": "b", "operator": "In", "values": values},
    ]
    seeds = [with_fields(seed(f"s{number}"), metadata__labels={"a": "x", "b": "x"}) for number in range(300)]
    before = time.thread_time()
    decision = decided(schedulable(**selecting(matchExpressions=expressions)), *seeds)
    assert time.thread_time() - before < 1.5
    assert decision.seed == ""
    assert len(decision.message) < 2000
    assert all(len(each.reason) < 2000 for each in decision.excluded.values())
