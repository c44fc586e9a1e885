"""What may be collected as far as the object itself shows."""

from datetime import UTC, datetime
from typing import Any

import pytest

from agent.resource_manager.garbage_collector import SELECTOR, Candidate, candidates
from gardener.references import Name

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)


def labelled(**meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7", **meta}}


@pytest.mark.parametrize(
    ("meta", "collectable"),
    [
        ({"creationTimestamp": "2025-01-01T11:00:00Z"}, True),
        ({"creationTimestamp": "2025-01-01T11:50:00Z"}, True),
        ({"creationTimestamp": "2025-01-01T11:50:01Z"}, False),
        ({"creationTimestamp": "2025-01-01T12:00:01Z"}, False),
        ({"creationTimestamp": None}, False),
        ({}, False),
        ({"creationTimestamp": "2025-01-01T11:00:00Z", "deletionTimestamp": "2025-01-01T11:59:00Z"}, False),
    ],
)
def test_it_is_old_enough_and_not_being_deleted(meta: dict[str, Any], collectable: bool) -> None:
    found = list(candidates("secret", [labelled(**meta)], now=NOON, minimum_age=600))
    assert found == ([Candidate(Name("secret", "ns", "a"), "u", "7")] if collectable else [])


def test_without_a_minimum_age_everything_may_go() -> None:
    fresh = labelled(creationTimestamp="2025-01-01T12:00:00Z")
    assert len(list(candidates("configmap", [fresh], now=NOON, minimum_age=0))) == 1


def test_the_label_has_exactly_this_value() -> None:
    assert SELECTOR == "resources.gardener.cloud/garbage-collectable-reference=true"
