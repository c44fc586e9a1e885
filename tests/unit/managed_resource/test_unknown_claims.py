"""For how long a removal waits for others that have changed, of which it is not known what they want."""

import pytest

from agent.resource_manager.managed_resource.elsewhere import Elsewhere
from agent.resource_manager.managed_resource.ownership import HAND_OVER_SECONDS, OTHERS_SECONDS, OWN_SECONDS, Look
from agent.resource_manager.managed_resource.rules.unknown import NEVER, Unknown
from kube.objects import Key

OWN, SIBLING, OTHER = Key("n", "own"), Key("n", "sibling"), Key("other", "mr")
DUE = HAND_OVER_SECONDS
"""Of what is not wanted since 0."""


@pytest.mark.parametrize(
    ("now", "own_since", "others_since", "left"),
    [
        (0.0, NEVER, NEVER, DUE),
        (DUE, NEVER, NEVER, 0.0),
        # What has changed later has nothing to do with it.
        (DUE, DUE + 0.1, DUE + 0.1, 0.0),
        (DUE, NEVER, DUE, 0.25),
        (DUE + OTHERS_SECONDS - 0.1, NEVER, 0.0, pytest.approx(0.1)),
        (DUE + OTHERS_SECONDS, NEVER, 0.0, 0.0),
        (DUE + OTHERS_SECONDS, 0.0, 0.0, 0.25),
        (DUE + OWN_SECONDS, 0.0, 0.0, 0.0),
    ],
)
def test_other_namespaces_are_waited_for_a_moment_and_the_own_one_for_longer(
    now: float, own_since: float, others_since: float, left: float, nothing: Elsewhere
) -> None:
    look = Look(now=now, own_since=own_since, others_since=others_since, elsewhere=nothing)
    assert look.left(0.0) == left


def test_no_author_keeps_others_waiting_for_two_seconds() -> None:
    assert HAND_OVER_SECONDS + OTHERS_SECONDS < 1.5


@pytest.fixture
def nothing() -> Elsewhere:
    stand_in: Elsewhere = object.__new__(Elsewhere)
    return stand_in


def test_what_changes_all_the_time_is_unknown_since_its_last_plan_only() -> None:
    unknown = Unknown()
    for now in (1.0, 2.0, 3.0):
        unknown.changed(OTHER, now=now)
    assert unknown.since(OWN) == (NEVER, 1.0)
    unknown.known(OTHER, as_of=2.5)
    assert unknown.since(OWN) == (NEVER, 2.5)
    unknown.known(OTHER, as_of=3.0)
    assert not unknown


def test_a_managed_resource_does_not_wait_for_itself() -> None:
    unknown = Unknown()
    unknown.changed(OWN, now=1.0)
    assert unknown.since(OWN) == (NEVER, NEVER)
    unknown.changed(SIBLING, now=2.0)
    assert unknown.since(OWN) == (2.0, NEVER)
    assert unknown.since(OTHER) == (NEVER, 1.0)
    unknown.forget(OWN)
    assert OWN not in unknown
    assert SIBLING in unknown


def test_namespaces_take_turns_in_being_planned() -> None:
    unknown = Unknown()
    for number in range(100):
        unknown.changed(Key("many", f"mr-{number}"), now=1.0)
    unknown.changed(OTHER, now=2.0)
    assert OTHER in {unknown.next() for _ in range(2)}
    assert len({unknown.next() for _ in range(100)}) == 51
    assert Unknown().next() is None
