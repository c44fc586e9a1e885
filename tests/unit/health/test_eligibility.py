"""Which ManagedResources are checked at all."""

from typing import Any

import pytest

from agent.resource_manager.health.predicates import Eligibility, eligibility
from kit import objects

IGNORE = "resources.gardener.cloud/ignore"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        # Everything has to be applied.
        *(({"applied": status}, Eligibility.WAIT) for status in ("", "Progressing", "False")),
        *(({"applied": status}, Eligibility.CHECK) for status in ("True", "Unknown")),
        ({"applied": "False", "while_failing": True}, Eligibility.CHECK_APPLIED),
        *(({"applied": status, "while_failing": True}, Eligibility.WAIT) for status in ("", "Progressing")),
        ({"applied": "True", "while_failing": True}, Eligibility.CHECK),
        # It may be ignored.
        *(({"annotations": {IGNORE: value}}, Eligibility.STOP) for value in ("true", "T", "1")),
        *(({"annotations": {IGNORE: value}}, Eligibility.CHECK) for value in ("yes", "false")),
        # It may be in deletion; a reason to stop comes before one to wait.
        ({"deletionTimestamp": "2024-05-01T12:00:00Z"}, Eligibility.STOP),
        ({"deletionTimestamp": "2024-05-01T12:00:00Z", "applied": "False"}, Eligibility.STOP),
        # It may be of another class.
        ({"spec": {"class": "shoot"}}, Eligibility.STOP),
        ({"spec": {"class": "shoot"}, "resource_class": "shoot"}, Eligibility.CHECK),
    ],
)
def test_a_managed_resource_is_checked_once_it_is_applied_unless_it_is_not_to_be(
    fields: dict[str, Any], expected: Eligibility
) -> None:
    applied, resource_class = fields.pop("applied", "True"), fields.pop("resource_class", "resources")
    while_failing = fields.pop("while_failing", False)
    conditions = objects.conditions(applied=applied, healthy="", progressing="")
    found = objects.managed_resource(conditions=conditions, **{"spec": {"class": None}, **fields})
    assert eligibility(found, resource_class=resource_class, while_failing=while_failing) is expected
