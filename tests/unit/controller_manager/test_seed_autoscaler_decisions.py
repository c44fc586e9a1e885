"""What a SeedAutoscaler decides: by examples, and what holds whatever it sees."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from agent.controller_manager.seed_autoscaler.rules.decision import Decision, Memory, decide
from agent.controller_manager.seed_autoscaler.rules.history import History
from agent.controller_manager.seed_autoscaler.rules.loads import Observation, SeedLoad, amount_of
from agent.controller_manager.seed_autoscaler.rules.observation import unit_of
from agent.controller_manager.seed_autoscaler.rules.pending import new_seed
from agent.controller_manager.seed_autoscaler.rules.settings import Direction, Metric, Settings
from kube.objects import Object

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
HALF = Metric(resource="shoots", utilization=Fraction(1, 2))
DEFAULTS = Settings(
    min_replicas=1,
    max_replicas=10,
    metrics=(HALF,),
    min_free_shoots=0,
    scale_out=Direction(window=timedelta(0), max_step=2, cooldown=timedelta(0)),
    scale_in=Direction(window=HOUR, max_step=1, cooldown=HOUR / 2),
    tolerance=Fraction(1, 10),
)


def load(usage: int, *, ready: bool = True, protected: bool = False, allocatable: int | None = 100) -> SeedLoad:
    return SeedLoad(
        name="s",
        usage={"shoots": Fraction(usage)},
        allocatable={} if allocatable is None else {"shoots": Fraction(allocatable)},
        is_ready=ready,
        is_deletable=not usage and not protected,
    )


def seen(*usages: int | SeedLoad, **fields: Any) -> Observation:
    loads = [each if isinstance(each, SeedLoad) else load(each) for each in usages]
    seeds = [replace(each, name=f"s-{number}") for number, each in enumerate(loads)]
    present = len(seeds) + fields.get("coming", 0)
    whole = {"replicas": present, "existing": present, "unit": {"shoots": Fraction(100)}, "now": START, **fields}
    return Observation(seeds=seeds, **whole)


SEED = {"metadata": {"labels": {"a": "b"}}, "spec": {"taints": [{"key": "k"}]}}


@pytest.mark.parametrize(
    ("managed_seed", "unit"),
    [
        ({"gardenlet": {"config": {"seedConfig": SEED}}}, {"shoots": 250}),
        ({"gardenlet": {"config": {"seedConfig": SEED, "resources": {"capacity": {"shoots": 3}}}}}, {"shoots": 3}),
        ({"seedTemplate": SEED}, {}),
    ],
)
def test_a_new_seed_is_what_the_templates_state(managed_seed: Object, unit: dict[str, int]) -> None:
    shoot = {"spec": {"region": "r", "provider": {"type": "local"}}}
    seed_set = {"metadata": {"name": "s"}, "spec": {"template": {"spec": managed_seed}, "shootTemplate": shoot}}
    found = new_seed(seed_set)
    assert unit_of(seed_set) == unit
    assert found.allocatable == unit.get("shoots")
    assert (found.name, found.labels, found.taints) == ("s", {"a": "b"}, (("k", ""),))
    assert (found.provider, found.region) == ("local", "r")


def reasons(decision: Decision) -> dict[str, str]:
    return {each.type: each.reason for each in decision.conditions}


def long_wanted(settings: Settings, observation: Observation) -> Memory:
    """As if it had been so for a long time."""
    return decide(settings, replace(observation, now=observation.now - 2 * HOUR), Memory(), paused=True).memory


@pytest.mark.parametrize(
    ("observation", "changes", "replicas", "limited"),
    [
        (seen(80, 70, 60), {}, 5, "DesiredWithinRange"),
        (seen(80, 70, 60), {"max_replicas": 4}, 4, "TooManyReplicas"),
        (seen(80, 70, 60, coming=2), {}, 5, "DesiredWithinRange"),
        (seen(52, 53), {}, 2, "DesiredWithinRange"),
        (seen(30, 0, 0), {}, 2, "ScaleDownLimit"),
        (seen(30, 30, 30), {}, 3, "NoDeletableReplicas"),
        (seen(45, pending=60), {}, 3, "DesiredWithinRange"),
        (seen(load(40, ready=False), 40), {}, 2, "DesiredWithinRange"),
        # Shoots that wait are given room even while utilization is on target.
        (seen(load(50, ready=False), pending=1), {}, 2, "DesiredWithinRange"),
        (seen(52, 48), {"min_free_shoots": 150}, 3, "DesiredWithinRange"),
        (seen(30, 0, 0), {"min_free_shoots": 250}, 3, "DesiredWithinRange"),
        (seen(100, 100, 100, 100), {}, 6, "ScaleUpLimit"),
        # Nothing reports yet.
        (seen(coming=1), {}, 1, "DesiredWithinRange"),
        (seen(load(0, ready=False, allocatable=None)), {}, 1, "DesiredWithinRange"),
        # Bounds.
        (seen(0), {"min_replicas": 3}, 3, "TooFewReplicas"),
        (seen(0, 0), {"min_replicas": 2}, 2, "TooFewReplicas"),
        (seen(90, 45, 0), {"max_replicas": 2}, 2, "TooManyReplicas"),
        (seen(45, 45, 45), {"max_replicas": 2}, 3, "NoDeletableReplicas"),
        # What stands in the way of fewer.
        (seen(30, load(0, protected=True)), {}, 2, "NoDeletableReplicas"),
        (seen(30, 0, 0, pending=1), {}, 3, "ScaleDownLimit"),
        (seen(30, 0, 0, unsettled="a replica is pending"), {}, 3, "ScaleDownLimit"),
        (seen(30, 0, 0), {"scale_in": replace(DEFAULTS.scale_in, disabled=True)}, 3, "ScaleDownLimit"),
        # A value for each Seed.
        (seen(45, 45), {"metrics": (Metric(resource="shoots", average=Fraction(30)),)}, 3, "DesiredWithinRange"),
        (seen(45, 0, 0), {"metrics": (Metric(resource="shoots", average=Fraction(30)),)}, 2, "DesiredWithinRange"),
        # A user has requested fewer: that is not undone, unless there is demand.
        (seen(30, 0, replicas=1), {}, 1, "DesiredWithinRange"),
        (seen(45, 45, replicas=1), {}, 1, "DesiredWithinRange"),
        (seen(80, 0, replicas=1), {}, 2, "DesiredWithinRange"),
    ],
)
def test_examples(observation: Observation, changes: dict[str, Any], replicas: int, limited: str) -> None:
    chosen = replace(DEFAULTS, **changes)
    decision = decide(chosen, observation, long_wanted(chosen, observation))
    assert (decision.replicas, reasons(decision)["ScalingLimited"]) == (replicas, limited)
    assert bool(decision.why) == (replicas != observation.replicas)


def test_seeds_go_one_by_one_after_a_window_and_a_pause() -> None:
    memory = decide(DEFAULTS, seen(30, 0, 0), Memory()).memory
    waiting = decide(DEFAULTS, seen(30, 0, 0, now=START + HOUR / 2), memory)
    assert (waiting.replicas, waiting.desired, waiting.again_at) == (3, 1, START + HOUR)
    assert reasons(waiting)["ScalingLimited"] == "ScaleDownStabilized"
    first = decide(DEFAULTS, seen(30, 0, 0, now=START + HOUR), waiting.memory)
    assert (first.replicas, first.why) == (2, "all metrics are below their targets")
    later = seen(30, 0, now=START + HOUR, last_scale_time=START + HOUR)
    cooling = decide(DEFAULTS, later, first.memory)
    assert (cooling.replicas, cooling.again_at) == (2, START + 3 * HOUR / 2)
    assert reasons(cooling)["AbleToScale"] == "BackoffBoth"
    assert decide(DEFAULTS, replace(later, now=START + 3 * HOUR / 2), cooling.memory).replicas == 1


def test_a_peak_within_the_window_keeps_the_seeds() -> None:
    memory = decide(DEFAULTS, seen(30, 0, 0), Memory()).memory
    peak = decide(DEFAULTS, seen(75, 75, 0, now=START + HOUR / 2), memory)
    assert peak.replicas == 3
    after = decide(DEFAULTS, seen(30, 0, 0, now=START + HOUR), peak.memory)
    assert (after.replicas, after.again_at) == (3, START + 2 * HOUR)


def test_more_are_wanted_for_a_window_if_that_is_demanded() -> None:
    patient = replace(DEFAULTS, scale_out=Direction(window=HOUR, max_step=2, cooldown=HOUR))
    first = decide(patient, seen(80), Memory())
    assert (first.replicas, first.again_at) == (1, START + HOUR)
    grown = decide(patient, seen(80, now=START + HOUR), first.memory)
    assert grown.replicas == 2
    # Of these two it is not known yet that they are too few.
    assert decide(patient, seen(80, 80, now=START + HOUR), grown.memory).again_at == START + 2 * HOUR
    cool = replace(DEFAULTS, scale_out=Direction(window=timedelta(0), max_step=2, cooldown=HOUR))
    assert decide(cool, seen(80, last_scale_time=START - HOUR / 2), Memory()).again_at == START + HOUR / 2


def test_a_set_without_replicas_is_left_alone() -> None:
    decision = decide(DEFAULTS, seen(pending=5), Memory())
    assert (decision.replicas, reasons(decision)) == (0, {"ScalingActive": "ScalingDisabled"})


def test_what_is_not_known_leads_to_more_seeds_only() -> None:
    both = replace(DEFAULTS, metrics=(HALF, Metric(resource="volumes", utilization=Fraction(1, 2))))
    empty = seen(30, 0, 0)
    assert decide(both, empty, long_wanted(both, empty)).replicas == 3
    assert decide(both, seen(80, 80), Memory()).replicas > 2
    one = replace(both, metrics=both.metrics[1:], max_replicas=2)
    decision = decide(one, empty, long_wanted(one, empty))
    assert (decision.replicas, reasons(decision)["ScalingActive"]) == (3, "FailedGetResourceMetric")


def test_another_resource_counts_as_far_as_it_is_measured() -> None:
    def both(volumes: int | None) -> SeedLoad:
        usage = {"shoots": Fraction(30)} | ({} if volumes is None else {"volumes": Fraction(volumes)})
        return replace(load(30), usage=usage, allocatable=dict.fromkeys(("shoots", "volumes"), Fraction(100)))

    def recommended(*usages: int | None, **fields: Any) -> tuple[int, str]:
        whole = {"unit": {"volumes": Fraction(100)}, "sources": {"shoots": "", "volumes": ""}} | fields
        decision = decide(volumes, seen(*map(both, usages), **whole), Memory())
        return decision.replicas, next(each.message for each in decision.conditions if each.type == "ScalingActive")

    volumes = replace(DEFAULTS, metrics=(Metric(resource="volumes", utilization=Fraction(1, 2)),))
    assert recommended(80, 80)[0] == 4
    assert recommended(80, None) == (2, "No metric can be computed: usage of volumes of Seed s-1 is unknown.")
    silent = "No metric can be computed: usage of volumes of Seed s-0 is unknown (Prometheus does not answer)."
    assert recommended(None, sources={"volumes": "Prometheus does not answer"}) == (1, silent)
    unmeasured = "No metric can be computed: usage of volumes is unknown: the configuration has no source for it."
    assert recommended(coming=1, sources={"shoots": ""}) == (1, unmeasured)


def test_while_paused_all_is_computed_and_nothing_written() -> None:
    decision = decide(DEFAULTS, seen(80, 70, 60), Memory(), paused=True)
    assert (decision.replicas, decision.desired, decision.again_at) == (3, 5, None)
    assert reasons(decision)["AbleToScale"] == "Paused"


def test_a_removal_that_is_not_possible_any_more_is_taken_back() -> None:
    empty = seen(30, 0)
    memory = decide(DEFAULTS, empty, long_wanted(DEFAULTS, empty)).memory
    taken = seen(30, 1, replicas=1, now=START + timedelta(seconds=1))
    waiting = decide(DEFAULTS, taken, memory)
    assert (waiting.replicas, waiting.again_at) == (1, taken.now + timedelta(minutes=5))
    late = replace(taken, now=taken.now + timedelta(minutes=5))
    decision = decide(DEFAULTS, late, waiting.memory)
    assert (decision.replicas, decision.is_cancelled) == (2, True)
    # Another client that wanted fewer is not contradicted.
    by_hand = decide(DEFAULTS, taken, Memory())
    assert decide(DEFAULTS, late, by_hand.memory).replicas == 1


@pytest.mark.parametrize(
    ("quantity", "amount"),
    [("100", 100), (3, 3), ("500m", Fraction(1, 2)), ("x", None), (None, None), ("-1", None), ("1e99", None), ("0", 0)],
)
def test_amounts(quantity: object, amount: Fraction | int | None) -> None:
    assert amount_of(quantity) == amount


# --- whatever it sees

SHARES = st.sampled_from([Fraction(each, 20) for each in range(1, 21)])
METRICS = st.builds(Metric, resource=st.just("shoots"), utilization=SHARES) | st.builds(
    Metric, resource=st.just("shoots"), average=st.integers(1, 200).map(Fraction)
)
DIRECTIONS = st.builds(
    Direction,
    window=st.sampled_from([timedelta(0), HOUR]),
    max_step=st.integers(1, 4),
    cooldown=st.sampled_from([timedelta(0), HOUR]),
    disabled=st.booleans(),
)
SETTINGS = st.builds(
    lambda least, more, **fields: Settings(min_replicas=least, max_replicas=least + more, **fields),
    st.integers(1, 4),
    st.integers(0, 8),
    metrics=st.lists(METRICS, min_size=1, max_size=2),
    min_free_shoots=st.integers(0, 300),
    scale_out=DIRECTIONS,
    scale_in=DIRECTIONS,
    tolerance=st.sampled_from([Fraction(0), Fraction(1, 10)]),
)
LOADS = st.builds(
    load,
    st.just(0) | st.integers(0, 120),
    ready=st.booleans(),
    protected=st.booleans(),
    allocatable=st.none() | st.integers(0, 200),
)
OBSERVATIONS = st.builds(
    lambda loads, coming, replicas, **fields: seen(
        *loads, coming=max(coming, replicas - len(loads)), replicas=replicas, **fields
    ),
    st.lists(LOADS, max_size=8),
    st.integers(0, 3),
    st.integers(0, 10),
    pending=st.just(0) | st.integers(0, 200),
    unsettled=st.sampled_from(["", "x"]),
    unit=st.sampled_from([{}, {"shoots": Fraction(100)}, {"shoots": Fraction(0)}]),
    last_scale_time=st.none() | st.just(START - HOUR / 2),
)


@settings(max_examples=300)
@given(chosen=SETTINGS, observation=OBSERVATIONS, long=st.booleans())
def test_what_always_holds(chosen: Settings, observation: Observation, *, long: bool) -> None:
    memory = long_wanted(chosen, observation) if long else Memory()
    decision = decide(chosen, observation, memory)
    present = observation.replicas
    deletable = sum(seed.is_deletable for seed in observation.seeds)
    if decision.replicas > present:
        assert decision.replicas <= chosen.max_replicas
        assert decision.replicas <= present + chosen.scale_out.max_step or present < chosen.min_replicas
    if decision.replicas < present:
        assert decision.replicas >= chosen.min_replicas
        assert present - decision.replicas <= min(chosen.scale_in.max_step, deletable)
        assert not observation.pending
        assert not observation.unsettled
        assert not chosen.scale_in.disabled
        assert long or not chosen.scale_in.window or present > chosen.max_replicas
    assert bool(decision.why) == (decision.replicas != present)
    assert decision.again_at is None or decision.again_at > observation.now
    assert len({each.type for each in decision.conditions}) == len(decision.conditions)


@settings(max_examples=20, suppress_health_check=[HealthCheck.filter_too_much])  # one of sixteen grows
@given(SETTINGS, OBSERVATIONS)
def test_what_was_added_is_not_removed_again(chosen: Settings, observation: Observation) -> None:
    """After more replicas were requested, their Seeds come, empty, and the same Shoots are on the others."""
    grown = decide(chosen, observation, long_wanted(chosen, observation))
    assume(grown.replicas > observation.replicas and observation.unit.get("shoots") and observation.seeds)
    new = grown.replicas - len(observation.seeds)
    more = [replace(load(0), name=f"new-{number}") for number in range(max(new, 0))]
    later = replace(observation, seeds=[*observation.seeds, *more], coming=0, replicas=grown.replicas, unsettled="")
    assert decide(chosen, later, long_wanted(chosen, later)).replicas >= min(grown.desired, grown.replicas)


# --- windows


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5)), min_size=1, max_size=30), st.integers(0, 60))
def test_windows_are_as_if_all_was_kept(looks: Sequence[tuple[int, int]], minutes: int) -> None:
    window, now, history = timedelta(minutes=minutes), START, History()
    spans: list[tuple[datetime, int]] = []
    for pause, value in looks:
        now += timedelta(minutes=pause)
        if spans:
            spans[-1] = (now, spans[-1][1])
        spans.append((now, value))
        history = history.recorded(value, now, keep=window)
    held = [value for until, value in spans if until > now - window] or [spans[-1][1]]
    assert (history.highest_in(window, now), history.lowest_in(window, now)) == (max(held), min(held))
    assert len(history.highest) <= 5
