"""How users of the fault campaign move objects between ManagedResources of two agents."""

import pytest

from campaign.manifests import WORK
from campaign.model import Edit, Model, apply_all, empty
from campaign.moves import Moves, Stay
from campaign.oracles import Write, move_problems
from gardener.keys import CLAIMED_BY, ORIGIN
from kube.objects import Object

MOVING = "ConfigMap/apps-0/o"


def managed(name: str, resource_class: str, **objects: int) -> Edit:
    entry = {"class": resource_class, "objects": {f"ConfigMap/apps-0/{o}": v for o, v in objects.items()}}
    return Edit("managed", name, entry)


def model(*edits: Edit) -> Model:
    return apply_all(empty(), list(edits))


def live(**notes: str) -> Object:
    names = {"origin": ORIGIN, "claimed_by": CLAIMED_BY}
    return {"metadata": {"annotations": {names[name]: f"{WORK}/{owner}" for name, owner in notes.items()}}}


def seen(moves: Moves, obj: Object, *, now: float = 2.0) -> bool:
    return moves.seen(MOVING, obj, namespace=WORK, now=now)


BEFORE = model(managed("a", "", o=1, p=1), managed("b", "second", q=1))
AFTER = model(managed("a", "", p=2), managed("b", "second", q=1, o=2))


@pytest.fixture
def moves() -> Moves:
    made = Moves()
    made.edit(BEFORE, AFTER, now=1.0)
    return made


def test_the_giver_keeps_it_until_the_receiver_waits_for_it(moves: Moves) -> None:
    both = model(managed("a", "", p=2, o=1), managed("b", "second", q=1, o=2))
    assert moves.written(AFTER) == both
    assert not seen(moves, live(origin="a"))
    assert moves.written(AFTER) == both
    assert seen(moves, live(origin="a", claimed_by="b"))
    assert moves.written(AFTER) == AFTER
    assert moves.stays == [Stay(MOVING, 2.0)]


def test_so_does_a_giver_that_goes(moves: Moves) -> None:
    gone = apply_all(AFTER, [Edit("managed", "a")])
    moves.edit(AFTER, gone, now=1.5)
    assert moves.written(gone) == model(managed("b", "second", q=1, o=2), managed("a", "", o=1))
    assert seen(moves, live(origin="b"))
    assert moves.written(gone) == gone


def test_it_may_go_back_or_on_before_it_came(moves: Moves) -> None:
    third = model(managed("a", "", p=2), managed("b", "second", q=1), managed("c", "second", o=3))
    moves.edit(AFTER, third, now=1.5)
    assert moves.outgoing[MOVING].receiver == "c"
    assert moves.written(third)["managed"]["a"]["objects"] == {"ConfigMap/apps-0/p": 2, MOVING: 1}
    moves.edit(third, BEFORE, now=1.6)
    assert moves.outgoing == {}


def test_no_one_waits_for_what_no_one_wants_any_more(moves: Moves) -> None:
    moves.edit(AFTER, model(managed("a", "", p=2)), now=1.5)
    assert seen(moves, live(origin="a"))
    assert moves.stays == []


def test_who_shares_an_agent_needs_not_wait() -> None:
    moves = Moves()
    moves.edit(BEFORE, model(managed("a", "", p=1), managed("b", "second", q=1), managed("c", "", o=1)), now=1.0)
    assert moves.outgoing == {}


def test_a_deletion_while_it_is_wanted_is_found(moves: Moves) -> None:
    assert seen(moves, live(claimed_by="b"))
    moves.edit(AFTER, model(managed("a", "", p=2), managed("b", "second", q=1)), now=9.0)

    def problems(at: float, *, name: str = "o", status: int = 200) -> int:
        write = Write(at, "agent-0", "delete", "target", "configmaps", "apps-0", name, status)
        return len(move_problems(moves.stays, [write]))

    assert [problems(at) for at in (1.5, 2.5, 8.5, 9.5)] == [0, 1, 1, 0]
    assert problems(2.5, name="p") == problems(2.5, status=409) == 0
