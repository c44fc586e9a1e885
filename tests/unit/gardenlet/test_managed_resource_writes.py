"""A status counts only if it belongs to what this process has written last."""

import pytest

from agent.gardenlet.common.managed_resource_writes import ManagedResourceWrites
from kube.objects import Key, Object


def managed(*, generation: int, observed: int | None = None, uid: str = "u") -> Object:
    return {
        "metadata": {"namespace": "garden", "name": "system", "uid": uid, "generation": generation},
        "status": {} if observed is None else {"observedGeneration": observed},
    }


@pytest.mark.parametrize(
    ("written", "seen", "is_answered"),
    [
        (managed(generation=3, observed=2), managed(generation=3, observed=2), False),
        # What is known of it may be from before.
        (managed(generation=3, observed=2), managed(generation=2, observed=2), False),
        (managed(generation=3, observed=2), managed(generation=3, observed=3), True),
        (managed(generation=3, observed=2), managed(generation=4, observed=3), True),
        # The answer came before the write was noted.
        (managed(generation=3, observed=3), managed(generation=3, observed=3), True),
        (managed(generation=1), managed(generation=1), False),
        (managed(generation=1), managed(generation=1, observed=1), True),
        # It is another one of the same name.
        (managed(generation=3, observed=2), managed(generation=1, observed=1, uid="other"), True),
    ],
)
def test_a_status_from_before_a_write_is_no_answer_to_it(written: Object, seen: Object, is_answered: bool) -> None:
    writes = ManagedResourceWrites()
    writes.note(written)
    assert writes.is_answered(seen) is is_answered


def test_what_this_process_has_not_written_counts_as_it_is() -> None:
    writes, seen = ManagedResourceWrites(), managed(generation=2, observed=1)
    assert writes.is_answered(seen)
    writes.note(seen)
    assert not writes.is_answered(seen)
    writes.forget(Key("garden", "system"), "other")
    assert not writes.is_answered(seen)
    writes.forget(Key("garden", "system"), "u")
    assert writes.is_answered(seen)
