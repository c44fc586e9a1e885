from typing import Any

import pytest

from config.resource_manager.webhooks import HighAvailabilityConfig
from gardener import keys
from webhooks.admission import Denied, Refusal
from webhooks.handlers.high_availability_config import rules
from webhooks.handlers.high_availability_config.rules import (
    HOST,
    ZONE,
    Requirements,
    requirements_of,
)

IN_ZONES = {"key": ZONE, "operator": "In", "values": ["a", "b"]}
OTHER = {"key": "other", "operator": "Exists"}
SELECTOR = {"matchLabels": {"app": "x"}}
NOT_READY = {"key": rules.NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
UNREACHABLE = {"key": rules.UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}


@pytest.mark.parametrize(
    ("text", "zones"),
    [
        ("", ()),
        ("a", ("a",)),
        ("b,a", ("a", "b")),
        ("a,,b,", ("a", "b")),
        ("a,a", ("a",)),
        (" a , b ", ("a", "b")),
        (" ,", ()),
    ],
)
def test_zones_are_sorted_trimmed_and_unique(text: str, zones: tuple[str, ...]) -> None:
    assert requirements_of({keys.HIGH_AVAILABILITY_ZONES: text}).zones == zones


@pytest.mark.parametrize(
    ("annotations", "tolerance"),
    [
        ({}, None),
        ({keys.HIGH_AVAILABILITY_FAILURE_TOLERANCE: ""}, ""),
        ({keys.HIGH_AVAILABILITY_FAILURE_TOLERANCE: "zone"}, "zone"),
    ],
)
def test_no_failure_tolerance_and_an_empty_one_are_different(annotations: Any, tolerance: str | None) -> None:
    assert requirements_of(annotations).failure_tolerance == tolerance


@pytest.mark.parametrize(
    ("text", "pinned"), [("true", True), ("1", True), ("t", True), ("false", False), ("yes", False), ("", False)]
)
def test_zones_are_pinned_by_what_reads_as_true(text: str, pinned: bool) -> None:
    assert requirements_of({keys.HIGH_AVAILABILITY_ZONE_PINNING: text}).zone_pinning is pinned


def component(component_type: str | None, override: str | None = None) -> Any:
    labels = None if component_type is None else {keys.HIGH_AVAILABILITY_TYPE: component_type}
    return {
        "metadata": {
            "labels": labels,
            "annotations": {} if override is None else {keys.HIGH_AVAILABILITY_REPLICAS: override},
        }
    }


@pytest.mark.parametrize(
    ("component_type", "tolerance", "needed"),
    [
        ("controller", None, 2),
        ("controller", "", 1),
        ("controller", "node", 2),
        ("controller", "zone", 2),
        ("server", None, 2),
        ("server", "", 2),
        ("server", "node", 2),
        ("whatever", "", 2),
        ("Controller", "", 2),
        ("", None, None),
        (None, "zone", None),
    ],
)
def test_replicas_depend_on_type_and_failure_tolerance(
    component_type: str | None, tolerance: str | None, needed: int | None
) -> None:
    assert rules.needed_replicas(component(component_type), 7, failure_tolerance=tolerance) == needed


@pytest.mark.parametrize(
    ("override", "needed"), [("", 1), ("5", 5), ("+4", 4), ("0", 0), ("007", 7), ("2147483647", 2147483647)]
)
def test_an_annotation_overrides_them(override: str, needed: int) -> None:
    assert rules.needed_replicas(component("controller", override), 1, failure_tolerance="") == needed


@pytest.mark.parametrize(("component_type", "current"), [("server", None), ("server", 0), (None, 1)])
def test_an_annotation_is_ignored_for_what_is_hibernated_or_has_no_type(
    component_type: str | None, current: int | None
) -> None:
    assert rules.needed_replicas(component(component_type, "x"), current, failure_tolerance="zone") is None


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        *((text, f'strconv.Atoi: parsing "{text}": invalid syntax') for text in ("x", "1.0", " 1", "1_0")),
        ('"', 'strconv.Atoi: parsing "\\"": invalid syntax'),
        ("99999999999999999999", 'strconv.Atoi: parsing "99999999999999999999": value out of range'),
        ("2147483648", "must be between 0 and 2147483647, got 2147483648"),
        ("-1", "must be between 0 and 2147483647, got -1"),
    ],
)
def test_an_annotation_that_makes_no_sense_is_refused(override: str, problem: str) -> None:
    with pytest.raises(Refusal) as refused:
        rules.needed_replicas(component("server", override), 1, failure_tolerance=None)
    message = f'annotation "high-availability-config.resources.gardener.cloud/replicas": {problem}'
    assert refused.value.answer == Denied(message)


@pytest.mark.parametrize(
    ("current", "needed", "is_scaled", "after"),
    [
        (5, 2, False, 2),
        (1, 2, False, 2),
        (5, 2, True, 5),
        (1, 2, True, 2),
        (5, None, False, 5),
        (None, None, True, None),
        (3, 0, False, 0),
    ],
)
def test_only_autoscalers_may_want_more(current: Any, needed: Any, is_scaled: bool, after: Any) -> None:
    assert rules.replicas_of_workload(current, needed, is_scaled=is_scaled) == after


@pytest.mark.parametrize(
    ("before", "needed", "after"),
    [
        ((1, 1), 2, (2, 2)),
        ((1, 8), 2, (2, 8)),
        ((3, 8), 2, (3, 8)),
        ((2, None), 2, (2, 2)),
        ((3, 1), 2, (3, 2)),
        ((1, 3), 4, (4, 4)),
        ((1, 1), 0, (1, 1)),
    ],
)
def test_bounds_are_raised_to_what_is_needed(before: tuple[int, Any], needed: int, after: tuple[int, int]) -> None:
    spec = {"minReplicas": before[0], "metrics": []} | ({} if before[1] is None else {"maxReplicas": before[1]})
    assert rules.with_bounds(spec, needed) == {"minReplicas": after[0], "maxReplicas": after[1], "metrics": []}


@pytest.mark.parametrize(
    ("requirements", "binds"),
    [
        (Requirements(zones=("a",)), False),
        (Requirements(zones=("a",), zone_pinning=True), True),
        (Requirements(zones=("a",), failure_tolerance=""), True),
        (Requirements(zones=("a",), failure_tolerance="node"), True),
        (Requirements(failure_tolerance="zone", zone_pinning=True), False),
    ],
)
def test_pods_are_bound_to_zones_if_these_are_given_and_meant(requirements: Requirements, binds: bool) -> None:
    assert rules.needs_zones(requirements) is binds


def matching(*expressions: Any, **others: Any) -> Any:
    return {"matchExpressions": list(expressions), **others}


def affinity_of(*terms: Any, **others: Any) -> Any:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required, **others}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, affinity_of(matching(IN_ZONES))),
        ({}, affinity_of(matching(IN_ZONES))),
        (affinity_of(), affinity_of(matching(IN_ZONES))),
        (affinity_of({}), affinity_of(matching(IN_ZONES))),
        (
            {"podAffinity": {"x": 1}, "nodeAffinity": {"preferred": [1]}},
            {"podAffinity": {"x": 1}, **affinity_of(matching(IN_ZONES), preferred=[1])},
        ),
        (
            affinity_of(matching({"key": ZONE, "operator": "Exists"}, OTHER, {"key": ZONE}, matchFields=[1])),
            affinity_of(matching(OTHER, IN_ZONES, matchFields=[1])),
        ),
        (
            affinity_of({"matchFields": [1]}, matching(OTHER)),
            affinity_of(matching(IN_ZONES, matchFields=[1]), matching(OTHER, IN_ZONES)),
        ),
    ],
)
def test_every_alternative_is_bound_to_the_zones(before: Any, after: Any) -> None:
    assert rules.with_zones(before, ("a", "b")) == after
    assert rules.with_zones(after, ("a", "b")) == after


def test_alternatives_times_zones_are_limited() -> None:
    terms: list[Any] = [{}] * 1000
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    rules.with_zones(affinity, ("a",))
    with pytest.raises(Refusal) as refused:
        rules.with_zones(affinity, ("a", "b"))
    message = "1000 nodeSelectorTerms for 2 zones of the namespace are too many; the limit is 1000"
    assert refused.value.answer == Denied(message)


def spread_of(
    replica_count: int,
    *,
    most: int = 0,
    zones: int = 0,
    tolerance: str | None = None,
    strictly: bool = False,
    even: bool = False,
    existing: Any = None,
) -> Any:
    names = tuple(f"z{number}" for number in range(zones))
    return rules.spread_constraints(
        existing,
        rules.Spread(
            requirements=Requirements(failure_tolerance=tolerance, zones=names),
            replicas=replica_count,
            most_replicas=max(most, replica_count),
            strictly_over_hosts=strictly,
            even_over_zones=even,
            selector=SELECTOR,
        ),
    )


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("existing", [None, [], [{"topologyKey": HOST}]])
def test_a_single_replica_is_left_alone(count: int, existing: Any) -> None:
    assert spread_of(count, zones=3, strictly=True, existing=existing) == existing


@pytest.mark.parametrize(
    ("replica_count", "most", "domains"), [(2, 0, 2), (3, 0, 3), (4, 0, 3), (2, 3, 3), (2, 9, 3), (3, 2, 3)]
)
def test_strictly_spread_replicas_need_as_many_hosts_as_there_may_be_replicas(
    replica_count: int, most: int, domains: int
) -> None:
    strict = {"whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
    expected = {"topologyKey": HOST, "maxSkew": 1, "minDomains": domains, **strict}
    assert spread_of(replica_count, most=most, strictly=True) == [expected]


@pytest.mark.parametrize(
    ("zones", "tolerance", "spreads"),
    [
        (0, None, False),
        (1, None, False),
        (2, None, True),
        (2, "zone", True),
        (1, "zone", False),
        (3, "", False),
        (3, "node", False),
    ],
)
def test_replicas_are_spread_over_several_zones_unless_another_failure_is_meant(
    zones: int, tolerance: str | None, spreads: bool
) -> None:
    topologies = [constraint["topologyKey"] for constraint in spread_of(2, zones=zones, tolerance=tolerance)]
    assert topologies == ([HOST, ZONE] if spreads else [HOST])


@pytest.mark.parametrize(
    ("replica_count", "most", "zones", "skew", "domains"),
    [
        (2, 0, 2, 1, 2),
        (3, 0, 2, 1, 2),
        (4, 0, 2, 2, 2),
        (2, 4, 2, 2, 2),
        (5, 0, 3, 1, 3),
        (6, 0, 3, 2, 3),
        (2, 0, 3, 1, 2),
    ],
)
def test_many_replicas_may_be_less_even_over_zones(
    replica_count: int, most: int, zones: int, skew: int, domains: int
) -> None:
    over_zones = spread_of(replica_count, most=most, zones=zones)[1]
    assert (over_zones["maxSkew"], over_zones["minDomains"]) == (skew, domains)
    assert over_zones["whenUnsatisfiable"] == "DoNotSchedule"
    assert spread_of(replica_count, most=most, zones=zones, even=True)[1]["maxSkew"] == 1


def test_constraints_for_other_topologies_stay_and_come_first() -> None:
    existing = [{"topologyKey": ZONE, "x": 1}, {"topologyKey": "rack", "x": 1}, {"topologyKey": HOST, "x": 1}, {"x": 2}]
    result = spread_of(2, existing=existing)
    assert result[:2] == [{"topologyKey": "rack", "x": 1}, {"x": 2}]
    assert [constraint["topologyKey"] for constraint in result[2:]] == [HOST]


@pytest.mark.parametrize(
    ("tolerance", "host_spread", "several_nodes", "strictly"),
    [
        (None, False, True, False),
        ("", False, True, False),
        ("node", False, True, True),
        ("zone", False, True, True),
        (None, True, True, True),
        ("", True, True, True),
        ("zone", True, False, False),
    ],
)
def test_hosts_are_a_must_where_their_failure_has_to_be_survived(
    tolerance: str | None, host_spread: bool, several_nodes: bool, strictly: bool
) -> None:
    requirements = Requirements(failure_tolerance=tolerance)
    result = rules.over_hosts_strictly(requirements, host_spread=host_spread, several_nodes=several_nodes)
    assert result is strictly


@pytest.mark.parametrize(
    ("before", "added"),
    [
        pytest.param(None, [NOT_READY, UNREACHABLE], id="none"),
        pytest.param([], [NOT_READY, UNREACHABLE], id="empty"),
        pytest.param([{"operator": "Exists"}], [NOT_READY, UNREACHABLE], id="catch-all"),
        pytest.param([{**NOT_READY, "effect": "NoSchedule"}], [NOT_READY, UNREACHABLE], id="another effect"),
        pytest.param([{"key": NOT_READY["key"]}, {**UNREACHABLE, "tolerationSeconds": 5}], [], id="there are some"),
        pytest.param([{"key": UNREACHABLE["key"], "effect": ""}], [NOT_READY], id="an empty effect is any"),
    ],
)
def test_pods_without_a_toleration_get_the_default_one(before: Any, added: Any) -> None:
    settings = HighAvailabilityConfig(default_not_ready_toleration_seconds=60, default_unreachable_toleration_seconds=0)
    assert rules.with_tolerations(before, settings) == [*(before or []), *added]


@pytest.mark.parametrize("before", [None, [], [{"key": "a"}]])
def test_tolerations_are_left_alone_without_defaults(before: Any) -> None:
    assert rules.with_tolerations(before, HighAvailabilityConfig()) == before
