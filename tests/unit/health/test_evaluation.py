"""Expressions are evaluated by a process that can be ended: what an object costs is its own, not that of others."""

from collections.abc import Iterator
from typing import Any

import pytest

from agent.resource_manager.health import evaluation
from agent.resource_manager.health.evaluation import BLAMED_SECONDS, MOST_NAMESPACES, MOST_OBJECTS, Blame, Evaluator
from gardener.health.checks.expressions import Expression
from gardener.health.checks.rule import CheckError
from kit.clock import FakeClock
from kube.objects import Key


@pytest.fixture
def evaluator() -> Iterator[Evaluator]:
    evaluator = Evaluator()
    yield evaluator
    evaluator.close()


def fields(name: str, **status: Any) -> dict[str, Any]:
    meta = {"namespace": "shop", "name": name}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta, "spec": {}, "status": status}


def current(text: str) -> dict[str, Expression]:
    return {"current": Expression(text)}


def test_expressions_state_the_same_as_in_this_process(evaluator: Evaluator) -> None:
    ready = current("status.phase == 'x'")
    assert evaluator.first_true(ready, fields("w", phase="x")) == "current"
    assert evaluator.first_true(ready, fields("w", phase="y")) is None
    with pytest.raises(CheckError, match="Key not found"):
        evaluator.first_true(ready, fields("w", other=1))


@pytest.mark.parametrize(
    "text",
    [
        "status.items.all(i, status.text.split('a').size() != 3)",
        "status.items.all(i, status.text.replace('a', 'b') != i)",
        "status.text.replace('a', status.text).size() > 3",
    ],
)
def test_what_one_object_costs_is_bounded_and_others_are_evaluated(evaluator: Evaluator, text: str) -> None:
    costly = current(text)
    hostile = fields("hostile", text="a" * 50_000, items=[f"i{number}" for number in range(1000)])
    for _ in range(2):
        with pytest.raises(CheckError, match="it used more than|it used too much"):
            evaluator.first_true(costly, hostile)
    assert evaluator.first_true(costly, fields("good", text="aaaa", items=["x"])) == "current"


def test_no_object_is_blamed_if_the_process_does_not_start(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(evaluation, "MODULE", "agent.none")
        with pytest.raises(CheckError, match="does not start"):
            evaluator.first_true(current("status.phase == 'x'"), fields("w", phase="x"))
    assert evaluator.first_true(current("status.phase == 'x'"), fields("w", phase="x")) == "current"


def test_an_object_is_blamed_first_then_its_namespace_and_the_rule_last() -> None:
    clock = FakeClock()
    blame = Blame(clock)
    blame.add(Key("a", "0"), "it used more than 0.2 s")
    with pytest.raises(CheckError, match="it used more than 0.2 s; it is evaluated again after ten minutes"):
        blame.check(Key("a", "0"))
    blame.check(Key("a", "other"))
    for number in range(1, MOST_OBJECTS):
        blame.add(Key("a", str(number)), "x")
    with pytest.raises(CheckError, match="3 objects of the namespace exceeded the limit"):
        blame.check(Key("a", "other"))
    for namespace in range(1, MOST_NAMESPACES):
        blame.check(Key("innocent", "w"))
        blame.add(Key(f"n{namespace}", "w"), "x")
    with pytest.raises(CheckError, match="objects of 5 namespaces exceeded the limit; simplify the expression"):
        blame.check(Key("innocent", "w"))
    clock.advance(BLAMED_SECONDS)
    blame.check(Key("a", "0"))
