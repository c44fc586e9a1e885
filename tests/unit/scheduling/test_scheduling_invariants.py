"""What holds for each decision, whatever the garden looks like."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gardener.garden.scheduling import Decision, Filter, SeedCandidates, SeedInfo, Strategy, Usage, decide
from gardener.garden.scheduling.regions import distance
from kit.scheduling import schedulable, seed, toleration
from kit.webhooks.shoots import with_fields
from kube.objects import Object

NOW = datetime(2026, 1, 2, tzinfo=UTC)
REGIONS = st.sampled_from(["europe", "europe-west", "asia"])
KEYS = st.sampled_from(["k", "k=v", "l"])
LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"), max_size=2)


@st.composite
def seeds(draw: st.DrawFn) -> list[Object]:
    return [
        with_fields(
            seed(
                name,
                room=draw(st.none() | st.integers(0, 3)),
                region=draw(REGIONS),
                provider=draw(st.sampled_from(["local", "local", "aws"])),
            ),
            metadata__labels=draw(LABELS),
            spec__taints=[toleration(draw(KEYS))] if draw(st.integers(0, 3)) == 0 else [],
            spec__settings={"scheduling": {"visible": draw(st.integers(0, 4)) > 0}},
        )
        for name in draw(st.lists(st.sampled_from("abcdef"), unique=True))
    ]


@st.composite
def shoots(draw: st.DrawFn) -> Object:
    selector: dict[str, Any] = {"seedSelector": {"matchLabels": draw(LABELS)}} if draw(st.integers(0, 2)) == 0 else {}
    return schedulable(
        region=draw(REGIONS),
        purpose=draw(st.sampled_from(["production", "testing"])),
        tolerations=list(map(toleration, draw(st.lists(KEYS, unique=True)))),
        **selector,
    )


USAGE = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 4)).map(Usage)
STRATEGIES = st.sampled_from(Strategy)


def garden_of(found: list[Object], usage: Usage, strategy: Strategy) -> SeedCandidates:
    infos = sorted(map(SeedInfo.of, found), key=lambda info: info.name)
    return SeedCandidates(seeds=infos, usage=usage, now=NOW, strategy=strategy)


def decided(wanted: Object, garden: SeedCandidates) -> Decision:
    return decide(wanted, {"type": "local"}, garden)


@settings(max_examples=60)
@given(wanted=shoots(), found=seeds(), usage=USAGE, strategy=STRATEGIES)
def test_there_is_a_seed_or_a_reason(wanted: Object, found: list[Object], usage: Usage, strategy: Strategy) -> None:
    garden = garden_of(found, usage, strategy)
    decision = decided(wanted, garden)
    names = {info.name for info in garden.seeds}
    assert bool(decision.seed) != bool(decision.message)
    assert decision.excluded.keys() <= names
    assert (decision.excluded.keys() == names) is not bool(decision.seed)
    assert decision.seed not in decision.excluded
    assert not (decision.seed and decision.lacks_room)


@settings(max_examples=60)
@given(wanted=shoots(), found=seeds(), usage=USAGE, strategy=STRATEGIES)
def test_who_is_excluded_would_not_be_chosen_alone(
    wanted: Object, found: list[Object], usage: Usage, strategy: Strategy
) -> None:
    garden = garden_of(found, usage, strategy)
    decision = decided(wanted, garden)
    for info in garden.seeds:
        alone = decided(wanted, replace(garden, seeds=[info]))
        exclusion = decision.excluded.get(info.name)
        if exclusion is None:
            assert alone.seed == info.name
        elif exclusion.by != Filter.STRATEGY:
            assert alone.excluded[info.name] == exclusion


@settings(max_examples=60)
@given(wanted=st.lists(shoots(), max_size=12), found=seeds(), strategy=STRATEGIES)
def test_no_seed_ever_has_more_than_is_allocatable(
    wanted: list[Object], found: list[Object], strategy: Strategy
) -> None:
    usage = Usage()
    garden = garden_of(found, usage, strategy)
    for each in wanted:
        if chosen := decided(each, garden).seed:
            usage.add(chosen)
    for info in garden.seeds:
        assert info.allocatable is None or usage(info.name) <= info.allocatable


@settings(max_examples=60)
@given(wanted=shoots(), found=seeds(), usage=USAGE, strategy=STRATEGIES)
def test_with_room_everywhere_who_lacks_room_is_scheduled(
    wanted: Object, found: list[Object], usage: Usage, strategy: Strategy
) -> None:
    garden = garden_of(found, usage, strategy)
    roomy = [replace(info, allocatable=None) for info in garden.seeds]
    if decided(wanted, garden).lacks_room:
        assert decided(wanted, replace(garden, seeds=roomy)).seed


@settings(max_examples=60)
@given(st.text("aest-w", max_size=8), st.text("aest-w", max_size=8), st.text("aest-w", max_size=8))
def test_distances_are_symmetric_and_zero_only_for_the_same(one: str, other: str, third: str) -> None:
    assert distance(one, other, is_same_provider=True) == distance(other, one, is_same_provider=True)
    assert distance(one, one, is_same_provider=True) == 0
    if one != other:
        assert distance(one, other, is_same_provider=True) > 0
    around = distance(one, third, is_same_provider=True) + distance(third, other, is_same_provider=True)
    assert distance(one, other, is_same_provider=True) <= around
