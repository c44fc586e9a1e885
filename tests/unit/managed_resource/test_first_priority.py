"""After a start: what the process before this one may have died of comes last."""

from typing import Any

import pytest

from agent.resource_manager.managed_resource.triggers import first_priority
from kube.objects import Object
from kube.queue import LAST, RESYNC


def managed_resource(*finalizers: str, **applied: Any) -> Object:
    conditions = [{"type": "ResourcesApplied", **applied}] if applied else []
    return {"metadata": {"name": "mr", "finalizers": list(finalizers)}, "status": {"conditions": conditions}}


@pytest.mark.parametrize(
    ("found", "priority"),
    [
        (managed_resource(), RESYNC),
        (managed_resource("f", status="True", reason="ApplySucceeded"), RESYNC),
        (managed_resource("f", status="False", reason="ApplyFailed"), RESYNC),
        (managed_resource("f"), LAST),
        (managed_resource("f", status="Progressing", reason="ApplyProgressing"), LAST),
    ],
)
def test_what_was_begun_and_not_ended_comes_last(found: Object, priority: int) -> None:
    assert first_priority(found) == priority
