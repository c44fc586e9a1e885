"""Plans of the fault campaign: the same seed makes the same plan, and plans make sense."""

import itertools

import pytest

from campaign import manifests
from campaign.faults import FAULTS
from campaign.faults.network import RULES
from campaign.model import KINDS, Edit, apply_all, empty, withdrawal
from campaign.moves import Moves
from campaign.plan import LANES, TROUBLES, Plan, make_plan
from gardener.keys import CLAIMED_BY

PLANS = [make_plan(seed, seconds=200) for seed in range(1, 6)]


@pytest.fixture(params=PLANS, ids=lambda plan: f"seed {plan.seed}")
def plan(request: pytest.FixtureRequest) -> Plan:
    made: Plan = request.param
    return made


def test_the_same_seed_makes_the_same_plan() -> None:
    assert make_plan(7, seconds=300).text() == make_plan(7, seconds=300).text()
    assert make_plan(7, seconds=300).text() != make_plan(8, seconds=300).text()


def test_a_longer_plan_begins_like_a_shorter_one() -> None:
    short, long = make_plan(7, seconds=100), make_plan(7, seconds=300)
    assert long.beginning == short.beginning
    assert long.steps[: len(short.steps)] == short.steps


def test_faults_of_a_lane_follow_each_other_and_end_in_time(plan: Plan) -> None:
    for lane in LANES:
        strikes = [strike for strike in plan.strikes if strike.lane == lane]
        assert strikes
        for one, next_one in itertools.pairwise(strikes):
            assert one.at + one.seconds <= next_one.at
        assert strikes[-1].at + strikes[-1].seconds <= plan.seconds + 0.1


def test_a_lane_deals_every_fault_before_any_comes_again(plan: Plan) -> None:
    for lane, cards in LANES.items():
        dealt = [strike.fault for strike in plan.strikes if strike.lane == lane]
        deck = sorted(card.fault for card in cards for _ in range(card.copies))
        assert sorted(dealt[: len(deck)]) == deck


def test_every_fault_that_is_planned_can_be_carried_out() -> None:
    assert FAULTS.keys() == {card.fault for cards in LANES.values() for card in cards}
    assert RULES.keys() == set(TROUBLES)


def test_edits_are_about_what_there_is(plan: Plan) -> None:
    model = apply_all(empty(), plan.beginning)
    for step in plan.steps:
        for edit in step.edits:
            assert edit.value is not None or edit.name in model[edit.section]
        model = apply_all(model, step.edits)
    assert model == plan.model()


def test_an_object_belongs_to_one_managed_resource(plan: Plan) -> None:
    objects = [name for entry in plan.model()["managed"].values() for name in entry["objects"]]
    assert len(objects) == len(set(objects))


def test_what_is_referred_to_was_made(plan: Plan) -> None:
    model = plan.model()
    used = {name for entry in model["referrers"].values() for name in entry["refers"]}
    assert used
    assert used <= model["collectables"].keys()


def test_plans_hold_all_that_users_do() -> None:
    edits = [edit for plan in PLANS for step in plan.steps for edit in step.edits]
    for section in ("managed", "services", "tokens", "referrers", "nodes"):
        of_section = [edit for edit in edits if edit.section == section]
        assert any(edit.value is None for edit in of_section), f"nothing of {section} is ever deleted"
        assert any(edit.value is not None for edit in of_section)
    contents = [edit.value for edit in edits if edit.section == "managed" and edit.value]
    assert {each["packing"] for each in contents} == {"plain", "brotli"}
    assert {name.partition("/")[0] for each in contents for name in each["objects"]} == set(KINDS)


def test_plans_move_objects_between_classes() -> None:
    for plan in PLANS:
        moves, model = Moves(), apply_all(empty(), plan.beginning)
        moved = 0
        for step in plan.steps:
            after = apply_all(model, step.edits)
            moves.edit(model, after, now=step.at)
            moved, model = moved + len(moves.outgoing), after
            for reference, outgoing in list(moves.outgoing.items()):
                live = {"metadata": {"annotations": {CLAIMED_BY: f"{manifests.WORK}/{outgoing.receiver}"}}}
                assert moves.seen(reference, live, namespace=manifests.WORK, now=step.at)
            assert moves.written(model) == model
        assert moved > 2, f"seed {plan.seed}"


def test_nothing_is_wanted_after_the_withdrawal(plan: Plan) -> None:
    model = plan.model()
    model = apply_all(model, withdrawal(model))
    expected = manifests.expected(model)
    assert not expected.managed
    assert not expected.policies
    assert not any(expected.collectables.values())
    assert not any(each.is_deleted for each in manifests.inputs(model).values())


def test_who_refers_is_written_before_what_is_referred_to() -> None:
    edits = [
        Edit("referrers", "apps-0/r", {"kind": "Deployment", "refers": ["secret/apps-0/c"]}),
        Edit("collectables", "secret/apps-0/c", {}),
    ]
    written = [place.name for place in manifests.inputs(apply_all(empty(), edits))]
    assert written == ["r", "c"]
