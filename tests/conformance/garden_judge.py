"""Whether a garden looks as it is to: as one of the recorded releases left it, or as `garden_scenario_differences` states."""

from conformance.garden_normal import of_any_release
from conformance.garden_scenario_differences import BETTER, EITHER, OTHER_WORDS
from conformance.garden_scenarios import GardenScenario
from conformance.object_normal import without_texts
from conformance.scenario_data import Observations
from conformance.scenario_normal import Judge, contains

_EXACT, _WITHOUT_TEXTS = Judge(), Judge(compared_as=without_texts)
_OF_NEWEST = Judge(compared_as=of_any_release)
"""Behavior of that release alone is no aim; where nothing else was recorded, it is left out."""


def accepts(scenario: GardenScenario, seen: Observations) -> bool:
    """Whether the observations so far are as they are to be in the end."""
    if scenario.id in EITHER and contains(seen, _so_far(EITHER[scenario.id][1], seen)):
        return True
    judge, scenario = _measure(scenario)
    return judge.accepts(scenario, seen)


def difference(scenario: GardenScenario, seen: Observations) -> str:
    """Empty if there is none. Raises AssertionError: it does not differ any more as it is reported to."""
    if scenario.id in EITHER and contains(seen, EITHER[scenario.id][1]):
        return ""
    judge, measure = _measure(scenario)
    assert scenario.id not in BETTER or judge.difference(scenario, seen), "the reason does not hold any more"
    return judge.difference(measure, seen)


def _measure(scenario: GardenScenario) -> tuple[Judge, GardenScenario]:
    if scenario.id in BETTER:
        reason, wanted = BETTER[scenario.id]
        better = GardenScenario(scenario.id, scenario.area, scenario.steps, peer_defect=reason, want=wanted)
        return _EXACT, better
    if scenario.id in OTHER_WORDS:
        return _WITHOUT_TEXTS, scenario
    return (_EXACT if "seed" in scenario.expect else _OF_NEWEST), scenario


def _so_far(wanted: Observations, seen: Observations) -> Observations:
    return {name: wanted[name] for name in seen if name in wanted}
