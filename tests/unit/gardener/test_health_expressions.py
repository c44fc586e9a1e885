"""Custom resources by expressions: what they report, and what an expression may cost."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from gardener.health.checks.expressions import LARGEST_OBJECT, Expression, InvalidExpression, rule
from gardener.health.checks.registry import Rules
from gardener.health.checks.rule import CheckError
from gardener.health.findings import Finding, Reference, health_finding, progress_finding
from gardener.managed_resource.conditions import with_ready
from kit.objects import conditions, managed_resource
from kube.objects import Object

DOCS = Path(__file__).parents[3] / "docs" / "managed-resource-status.md"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
WIDGET = Reference("example.com/v1", "Widget", "shop", "w")
PHASES = {
    "inProgress": "status.phase == 'Pending'",
    "failed": "status.phase == 'Failed'",
    "current": "status.phase == 'Running'",
}


def rules(**texts: str) -> Rules:
    compiled = {name: Expression(text) for name, text in (texts or PHASES).items()}
    return Rules(configured={("example.com", "Widget"): rule("example.com", "Widget", compiled)})


def widget(*, generation: int = 1, **status: Any) -> Object:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "shop", "generation": generation},
        "spec": {"replicas": 3},
        "status": status,
    }


def reported(found: Finding | None) -> str | None:
    return None if found is None else found.message.partition(": ")[2]


@pytest.mark.parametrize(
    ("obj", "progressing", "unhealthy"),
    [
        (widget(phase="Running"), None, None),
        (widget(phase="Pending"), "inProgress is true: status.phase == 'Pending'", None),
        (widget(phase="Failed"), None, "failed is true: status.phase == 'Failed'"),
        (widget(phase="Odd"), "current is not true: status.phase == 'Running'", None),
        (widget(generation=2, phase="Running", observedGeneration=1), "observed generation outdated (1/2)", None),
        # New ones have no status.
        (widget(), "current is not true: status.phase == 'Running'", None),
        ({"metadata": {"name": "w"}}, "current is not true: status.phase == 'Running'", None),
        # Where an expression fails, nothing is known.
        (
            widget(other="x"),
            None,
            "expression inProgress (status.phase == 'Pending'): Key not found in map : \"phase\"",
        ),
        (widget(observedGeneration="1"), None, "status.observedGeneration must be an integer, not a string"),
    ],
)
def test_the_first_expression_that_is_true_decides(obj: Object, progressing: str | None, unhealthy: str | None) -> None:
    assert reported(progress_finding(WIDGET, obj, rules=rules())) == progressing
    assert reported(health_finding(WIDGET, obj, rules=rules())) == unhealthy


def test_an_expression_that_fails_is_an_error_of_the_check() -> None:
    found = health_finding(WIDGET, widget(other="x"), rules=rules())
    assert found is not None
    assert found.reason == "HealthCheckError"
    assert found.message.startswith('Error executing health check for Widget "shop/w": expression inProgress (')


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')", True),
        ("status.conditions.exists(e, e.type == 'Ready' && e.observedGeneration == metadata.generation)", True),
        ("has(status.phase) && status.phase == 'x'", False),
        ("status.?phase.orValue('none') == 'none'", True),
        ("status.readyReplicas == spec.replicas", True),
        ("status.share > 0.4 && status.share < 1", True),
        ("status.text.lowerAscii().matches('^all')", True),
        ("kind == 'Widget' && apiVersion.startsWith('example.com/')", True),
        ("!has(metadata.managedFields)", True),
        ("timestamp(status.since) < timestamp('2026-01-02T00:00:00Z')", True),
    ],
)
def test_expressions_of_flux_are_understood(text: str, expected: bool) -> None:
    ready = {"type": "Ready", "status": "True", "observedGeneration": 1}
    obj = widget(conditions=[ready], readyReplicas=3, share=0.5, text="All well", since="2026-01-01T00:00:00Z")
    obj["metadata"]["managedFields"] = [{"manager": "m"}]
    assert (progress_finding(WIDGET, obj, rules=rules(current=text)) is None) is expected


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("status.", "at column 8: Syntax error: no viable alternative at input '.'"),
        (
            "phase == 'x'",
            "at column 1: undeclared reference to 'phase' (in container ''); fields of the object begin with one of apiVersion, kind, metadata, spec, status",
        ),
        ("'a' + 1 == 2", "at column 5: found no matching overload for '_+_' applied to '(string, int)'"),
        ("'yes'", "must be true or false, is of type string"),
        ("[" * 100 + "]" * 100, "Expression recursion limit exceeded. limit: 32"),
    ],
)
def test_what_is_wrong_with_an_expression_is_reported(text: str, complaint: str) -> None:
    with pytest.raises(InvalidExpression) as caught:
        Expression(text)
    assert str(caught.value) == complaint


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("status.number", "must be true or false, is of type int"),
        ("status.phase", "must be true or false, is of type string"),
        ("status.list[7] == 1", "Index error: index=7 size=2"),
        ("status.phase > 1", "No matching overloads found : _>_(string, int64)"),
        ("1 / (status.number - 5) == 1", "divide by zero"),
        ("status.many.all(a, status.many.all(b, a + b >= 0))", "Iteration budget exceeded"),
    ],
)
def test_what_goes_wrong_in_an_expression_is_reported(text: str, complaint: str) -> None:
    status = {"phase": "x", "number": 5, "list": [1, 2], "many": list(range(200))}
    with pytest.raises(CheckError) as caught:
        Expression(text).is_true({"status": status})
    assert str(caught.value).startswith(complaint)


def test_a_large_object_is_not_evaluated() -> None:
    obj = widget(phase="Running", text="x" * LARGEST_OBJECT)
    found = health_finding(WIDGET, obj, rules=rules())
    assert found is not None
    assert re.search(r"expressions are evaluated for objects of up to 65536 bytes, it has 65\d{3}$", found.message)
    obj = widget(phase="Running")
    obj["metadata"]["managedFields"] = ["x" * LARGEST_OBJECT]
    assert health_finding(WIDGET, obj, rules=rules()) is None


# --- what the documentation recommends to Flux


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ({}, "current"),
        ({"applied": "False"}, "failed"),
        ({"healthy": "False"}, "failed"),
        ({"progressing": "True"}, "inProgress"),
        ({"applied": "Progressing"}, "inProgress"),
    ],
)
def test_flux_reads_managed_resources_as_documented(statuses: dict[str, str], expected: str) -> None:
    [snippet] = re.findall(r"^```yaml\n(healthCheckExprs:\n.*?)^```$", DOCS.read_text(), re.MULTILINE | re.DOTALL)
    [given] = [each for each in yaml.safe_load(snippet)["healthCheckExprs"] if each["kind"] == "ManagedResource"]
    obj = managed_resource(
        "garden/shop", generation=1, conditions=conditions(**statuses), status={"observedGeneration": 1}
    )
    for each in obj["status"]["conditions"]:
        each |= {"reason": "R", "message": "m"}
    obj["status"] = with_ready(obj, is_wanted=True, now=NOW)
    found = [
        name for name in ("inProgress", "failed", "current") if name in given and Expression(given[name]).is_true(obj)
    ]
    assert (found or ["inProgress"])[0] == expected
