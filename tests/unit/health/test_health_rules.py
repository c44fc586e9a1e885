"""The rules that the configuration adds, and what is wrong with them."""

import subprocess
import sys
from typing import Any

import pytest

from agent.resource_manager.health.evaluation import rules_of
from config.resource_manager import decode
from config.resource_manager.controllers import Health
from process.configuration.component import validate
from process.configuration.errors import ConfigError

PATH = "controllers.health.healthCheckExprs"
WIDGETS = {"apiVersion": "example.com/v1", "kind": "Widget", "current": "status.phase == 'Running'"}


def settings(*exprs: dict[str, Any]) -> Health:
    return decode(f"controllers: {{health: {{healthCheckExprs: {list(exprs)}}}}}").config.controllers.health


def test_kinds_with_expressions_have_a_rule_in_all_versions() -> None:
    rules = rules_of(settings(WIDGETS))
    assert rules.health("example.com/v1", "Widget") is rules.health("example.com/v2", "Widget") is not None
    assert rules.health("example.com/v1", "Gadget") is None
    assert rules_of(Health(kstatus=True)).health("example.com/v1", "Gadget") is not None


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"current": "status."},
         '[0].current: Invalid value: "status.": of Widget: at column 8: Syntax error: no viable alternative at input \'.\''),
        ({"failed": "'x'"},
         '[0].failed: Invalid value: "\'x\'": of Widget: must be true or false, is of type string'),
        ({"apiVersion": "apps/v1", "kind": "ReplicaSet"},
         "[0].apiVersion: Forbidden: expressions are for custom resources only"),
        ({"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus"},
         "[0].kind: Forbidden: Prometheus has a built-in rule, which can't be replaced; remove the expressions"),
    ],
)  # fmt: skip
def test_what_is_wrong_names_expression_and_kind(changes: dict[str, str], error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        rules_of(settings({**WIDGETS, **changes}))
    assert str(caught.value) == PATH + error


def test_all_that_is_wrong_is_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        rules_of(
            settings(
                WIDGETS, {**WIDGETS, "apiVersion": "example.com/v2"}, {**WIDGETS, "kind": "Gadget", "current": "?"}
            )
        )
    first, second = caught.value.errors
    assert first == f'{PATH}[1].kind: Duplicate value: "Widget.example.com"'
    assert second.startswith(f'{PATH}[2].current: Invalid value: "?": of Gadget: ')


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        (WIDGETS, []),
        ({}, ["apiVersion: Required value", "kind: Required value", "current: Required value"]),
        ({**WIDGETS, "apiVersion": "v1"},
         ['apiVersion: Invalid value: "v1": must be a group and a version, such as example.com/v1']),
        ({**WIDGETS, "failed": "x" * 2049}, ["failed: Too long: may not be more than 2048 bytes"]),
    ],
)  # fmt: skip
def test_their_form_is_checked_by_all_programs(given: dict[str, str], errors: list[str]) -> None:
    text = f"leaderElection: {{resourceNamespace: garden}}\ncontrollers: {{health: {{healthCheckExprs: [{given}]}}}}"
    assert [str(error) for error in validate(decode(text).config)] == [f"{PATH}[0].{error}" for error in errors]


def test_a_mistyped_field_is_an_error() -> None:
    with pytest.raises(ConfigError) as caught:
        settings({**WIDGETS, "inprogress": "true"})
    assert f"{PATH}[0].inprogress: unknown field; did you mean {PATH}[0].inProgress?" in str(caught.value)


def test_without_the_library_it_is_reported_how_to_get_it() -> None:
    code = f"""
import sys
sys.modules["cel_expr_python"] = None
from agent.resource_manager.health.evaluation import rules_of
from config.resource_manager import decode
try:
    rules_of(decode({str({"controllers": {"health": {"healthCheckExprs": [WIDGETS]}}})!r}).config.controllers.health)
except Exception as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        f"{PATH}: Forbidden: the library for CEL is not installed: install the package with the extra `cel`, "
        "use an image that has it, or remove the expressions"
    )


def test_without_expressions_the_library_is_not_loaded() -> None:
    code = (
        "import sys; from agent.resource_manager.health.evaluation import rules_of;"
        "from config.resource_manager.controllers import Health;"
        "rules_of(Health(kstatus=True)); print('cel_expr_python' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
