"""What a claim on an object comes to: whether its claimant's passes show that it can have the object."""

import pytest

from agent.resource_manager.managed_resource.rules.claims import Claims, Standing
from agent.resource_manager.managed_resource.rules.contests import SECONDS, Contests
from kube.objects import Key

OWNER, HEIR = Key("ns", "owner"), Key("ns", "heir")


@pytest.fixture
def claims() -> Claims:
    """Both want an object, of which the owner has another one, too."""
    found = Claims()
    assert found.replace(OWNER, {"a", "b"}) == set()
    assert found.replace(HEIR, {"a", "c"}) == set()
    return found


def test_a_claim_is_what_the_last_pass_came_to(claims: Claims) -> None:
    assert claims.standing(HEIR, "a") is Standing.UNTRIED
    claims.tried(HEIR, refused={"a"}, untried={"c"})
    assert (claims.standing(HEIR, "a"), claims.standing(HEIR, "c")) == (Standing.REFUSED, Standing.UNTRIED)
    claims.tried(HEIR, refused=(), untried=())
    assert claims.standing(HEIR, "a") is Standing.APPLIED
    claims.refused(HEIR)
    assert claims.standing(HEIR, "a") is Standing.REFUSED
    claims.forget(HEIR)
    assert claims.standing(HEIR, "a") is Standing.UNTRIED


def test_who_wants_what_is_given_up_may_try_it_once_more(claims: Claims) -> None:
    claims.refused(HEIR)
    assert claims.replace(OWNER, {"b"}) == {HEIR}
    assert not claims.was_tried(HEIR)
    claims.refused(HEIR)
    assert claims.replace(OWNER, {"b"}) == set()
    assert claims.was_tried(HEIR)


def test_who_wants_something_else_has_not_tried_that(claims: Claims) -> None:
    claims.tried(HEIR, refused={"a"}, untried=())
    claims.replace(HEIR, {"a", "c"})
    assert claims.standing(HEIR, "a") is Standing.REFUSED
    claims.replace(HEIR, {"a"})
    assert claims.standing(HEIR, "a") is Standing.UNTRIED


def test_an_object_that_is_taken_back_is_lost_for_a_while() -> None:
    contests = Contests()
    assert not contests.is_lost(OWNER, "a", "one:ns/x", now=0.0)
    contests.begin(OWNER, "a", "one:ns/x", now=0.0)
    assert contests.is_lost(OWNER, "a", "one:ns/x", now=SECONDS - 1)
    assert not contests.is_lost(OWNER, "a", "two:ns/x", now=1.0)
    assert not contests.is_lost(HEIR, "a", "one:ns/x", now=1.0)
    assert not contests.is_lost(OWNER, "a", "one:ns/x", now=SECONDS)
    contests.keep(OWNER, {"b"})
    assert not contests.is_known(OWNER, "a")
