"""A status counts only if it belongs to what this process has written last."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.gardenlet.managed_resource_writes import ManagedResourceWrites
from kube.clock import format_time
from kube.objects import Key, Object

NOW = datetime(2026, 1, 1, 12, 0, 0, 700_000, UTC)
BEFORE, SAME_SECOND, AFTER = (NOW + timedelta(seconds=seconds) for seconds in (-60, 0, 5))


def managed(
    *, generation: int = 2, observed: int = 2, checksum: str = "a", applied: datetime = BEFORE, uid: str = "u"
) -> Object:
    return {
        "metadata": {"namespace": "garden", "name": "system", "uid": uid, "generation": generation},
        "status": {
            "observedGeneration": observed,
            "secretsDataChecksum": checksum,
            "conditions": [
                {
                    "type": "ResourcesApplied",
                    "status": "True",
                    "lastTransitionTime": format_time(BEFORE),
                    "lastUpdateTime": format_time(applied),
                }
            ],
        },
    }


CHANGED = managed(generation=3)
"""What the write of a spec leads to."""


@pytest.mark.parametrize(
    ("written", "seen", "is_answered"),
    [
        # The spec was written: its generation is the question.
        (CHANGED, CHANGED, False),
        (CHANGED, managed(generation=3, checksum="b", applied=AFTER), False),
        (CHANGED, managed(generation=3, observed=3), True),
        (CHANGED, managed(generation=4, observed=3), True),
        # A Secret was written: contents or time of what was applied.
        (managed(), managed(), False),
        (managed(), managed(checksum="b"), True),
        (managed(), managed(applied=AFTER), True),
        (managed(), managed(applied=SAME_SECOND), True),
        # It was created.
        ({**managed(generation=1), "status": {}}, {**managed(generation=1), "status": {}}, False),
        ({**managed(generation=1), "status": {}}, managed(generation=1, observed=1, checksum=""), True),
        # It is another one of the same name.
        (managed(), managed(uid="other"), True),
    ],
)
def test_a_status_from_before_a_write_is_no_answer_to_it(written: Object, seen: Object, is_answered: bool) -> None:
    writes = ManagedResourceWrites(clock=lambda: NOW)
    writes.note(written)
    assert writes.is_answered(seen) is is_answered


def test_what_this_process_has_not_written_counts_as_it_is() -> None:
    writes = ManagedResourceWrites(clock=lambda: NOW)
    assert writes.is_answered(managed())
    writes.note(managed())
    assert not writes.is_answered(managed())
    writes.forget(Key("garden", "system"), "other")
    assert not writes.is_answered(managed())
    writes.forget(Key("garden", "system"), "u")
    assert writes.is_answered(managed())
