"""Tables name controllers by their paths, which no type checker sees."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from agent.controller_manager import controllers as controller_manager
from agent.controller_manager.context import Context as ControllerManagerContext
from agent.resource_manager import controllers as resource_manager
from agent.resource_manager.context import Context as ResourceManagerContext
from agent.scheduler import controllers as scheduler
from agent.scheduler.context import Context as SchedulerContext
from agent.table import Table, always
from kube.runtime.loop import ControlLoop

PROJECT = Path(__file__).parents[3]
PROGRAMS = (
    (controller_manager.CONTROLLERS, ControllerManagerContext),
    (resource_manager.CONTROLLERS, ResourceManagerContext),
    (scheduler.CONTROLLERS, SchedulerContext),
)
DECLARES = re.compile(r"^(?:def )?declare", re.MULTILINE)
NOT_SWITCHED = {"health.controller"}
"""ManagedResources always have it."""


@pytest.mark.parametrize(("table", "context"), PROGRAMS)
def test_every_line_names_what_declares_a_control_loop(table: Table[Any, Any], context: type) -> None:
    declared = Table[None, Any](table.package, _all(table)).load(None)
    assert len(declared) == len(table.controllers)
    for declare in declared:
        assert get_type_hints(declare).items() >= {"context": context, "return": ControlLoop}.items()


def _all(table: Table[Any, Any]) -> Mapping[str, Any]:
    return dict.fromkeys(table.controllers, always)


@pytest.mark.parametrize(("table", "context"), PROGRAMS)
def test_every_controller_has_its_line(table: Table[Any, Any], context: type) -> None:
    directory = PROJECT / table.package.replace(".", "/")
    declaring = {
        ".".join(module.relative_to(directory).with_suffix("").parts)
        for module in directory.rglob("*.py")
        if DECLARES.search(module.read_text())
    }
    assert declaring - NOT_SWITCHED == {path.partition(":")[0] for path in table.controllers}
