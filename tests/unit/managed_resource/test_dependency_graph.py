"""Cycles of dependencies, as they are kept change by change, against looking for them in all of the graph."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.resource_manager.managed_resource.rules.dependency_graph import DependencyGraph, _search
from gardener.managed_resource.dependencies import cycle_of
from kube.objects import Key

NAMES = [Key("n", name) for name in "abcdefg"]
CHANGES = st.lists(st.tuples(st.sampled_from(NAMES), st.frozensets(st.sampled_from(NAMES), max_size=4)), max_size=25)


def reached(edges: Mapping[Key, frozenset[Key]], start: Key) -> set[Key]:
    found: set[Key] = set()
    waiting = [start]
    for name in waiting:
        waiting.extend(edges.get(name, frozenset()) - found)
        found |= edges.get(name, frozenset())
    return found


@given(CHANGES)
def test_cycles_are_those_that_a_look_at_all_finds(changes: list[tuple[Key, frozenset[Key]]]) -> None:
    graph, edges = DependencyGraph(), dict[Key, frozenset[Key]]()
    before = {name: frozenset[Key]() for name in NAMES}
    for changed, dependencies in changes:
        reported = graph.replace(changed, dependencies)
        edges[changed] = dependencies
        reach = {name: reached(edges, name) for name in NAMES}
        cycles = {a: frozenset(b for b in NAMES if b in reach[a] and a in reach[b]) for a in NAMES}
        for name in NAMES:
            assert {other for other in NAMES if graph.is_cycle(name, other)} == cycles[name]
            shortest = cycle_of(name, lambda each: edges.get(each, ()))
            found = graph.cycle_of(name)
            assert len(found) == len(shortest)
            assert all(b in edges[a] for a, b in itertools.pairwise(found))
            assert graph.dependencies_of(name) == edges.get(name, frozenset())
            assert graph.dependants_of(name) == {each for each in NAMES if name in edges.get(each, ())}
        assert {name for name in NAMES if cycles[name] != before[name]} <= reported
        before = cycles


def test_a_change_costs_no_look_at_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain in which each names the next 50, in whatever order its members come."""
    steps = 0

    def search(*args: Any) -> Iterator[None]:
        nonlocal steps
        for step in _search(*args):
            steps += 1
            yield step

    monkeypatch.setattr("agent.resource_manager.managed_resource.rules.dependency_graph._search", search)
    count = 1000
    for order in (range(count), reversed(range(count))):
        graph, steps = DependencyGraph(), 0
        for n in order:
            graph.replace(Key("n", str(n)), (Key("n", str(m)) for m in range(n + 1, min(n + 51, count))))
        assert steps <= 4 * count
    assert not any(graph.cycle_of(Key("n", str(n))) for n in range(count))
    first, last = Key("n", "0"), Key("n", str(count - 1))
    assert len(graph.replace(last, [first])) == count
    assert graph.is_cycle(first, Key("n", "500"))
    assert len(graph.replace(last, [])) == count
    assert not graph.is_cycle(first, Key("n", "500"))
