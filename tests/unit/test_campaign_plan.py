"""Plans of the fault campaign: the same seed makes the same plan, and plans make sense."""

import pytest

from campaign.faults import FAULTS
from campaign.faults.network import RULES
from campaign.model import KINDS, apply_all, empty
from campaign.plan import LANES, TROUBLES, Plan, make_plan

PLANS = [make_plan(seed, seconds=200) for seed in range(1, 6)]


@pytest.fixture(params=PLANS, ids=lambda plan: f"seed {plan.seed}")
def plan(request: pytest.FixtureRequest) -> Plan:
    made: Plan = request.param
    return made


def test_the_same_seed_makes_the_same_plan() -> None:
    assert make_plan(7, seconds=300).text() == make_plan(7, seconds=300).text()
    assert make_plan(7, seconds=300).text() != make_plan(8, seconds=300).text()


def test_every_fault_that_is_planned_can_be_carried_out() -> None:
    assert FAULTS.keys() == {card.fault for cards in LANES.values() for card in cards}
    assert RULES.keys() == set(TROUBLES)


def test_edits_are_about_what_there_is(plan: Plan) -> None:
    model = apply_all(empty(), plan.initial_edits)
    for step in plan.steps:
        for edit in step.edits:
            assert edit.value is not None or edit.name in model[edit.section]
        model = apply_all(model, step.edits)
    assert model == plan.model()


def test_plans_hold_all_that_users_do() -> None:
    edits = [edit for plan in PLANS for step in plan.steps for edit in step.edits]
    for section in ("managed", "services", "tokens", "referrers", "nodes"):
        of_section = [edit for edit in edits if edit.section == section]
        assert any(edit.value is None for edit in of_section), f"nothing of {section} is ever deleted"
        assert any(edit.value is not None for edit in of_section)
    contents = [edit.value for edit in edits if edit.section == "managed" and edit.value]
    assert {each["packing"] for each in contents} == {"plain", "brotli"}
    assert {name.partition("/")[0] for each in contents for name in each["objects"]} == set(KINDS)
