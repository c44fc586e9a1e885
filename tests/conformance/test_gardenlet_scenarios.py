"""A gardenlet leaves garden and seed as the original does: recorded scenarios, most of them at once.

Then each has a test that compares what was seen. Those that were not chosen are not replayed.
"""

import pytest

from conformance.gardenlet_judge import difference
from conformance.gardenlet_scenarios import load
from conformance.gardenlet_stage import played
from conformance.scenario_data import Observations
from conformance.scenario_player import check, chosen

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # the first test waits for all scenarios

SCENARIOS = load()


@pytest.fixture(scope="module")
def seen(devcluster_run: object, request: pytest.FixtureRequest) -> dict[str, Observations]:
    """By the scenario."""
    return played(chosen(request.session, SCENARIOS))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_it_leaves_garden_and_seed_as_recorded(scenario: str, seen: dict[str, Observations]) -> None:
    check(difference(SCENARIOS[scenario], seen[scenario]))
