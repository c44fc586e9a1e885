"""The scheduler chooses as the original does, with both strategies: recorded scenarios, all in one garden.

Scenarios of what only a later release looks at are left out: `accessRestrictions`, zone selection, and domains of Seeds.
"""

import pytest

from conformance.garden_judge import difference
from conformance.garden_scenarios import load
from conformance.garden_stage import furnished, played
from conformance.scenario_data import Observations
from conformance.scenario_player import check, chosen
from devcluster.testing.pytest_plugin import RunClusters

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # the first test waits for all scenarios

_AT_ONCE = 16
"""Few: a decision is as recorded only if the scheduler has seen all that was written before the Shoot."""

SAME_REGION, MINIMAL_DISTANCE = load("scheduler"), load("scheduler-distance")


@pytest.fixture(scope="module")
def seen(devcluster_run: RunClusters, request: pytest.FixtureRequest) -> dict[str, Observations]:
    with furnished() as garden:
        observations: dict[str, Observations] = {}
        for strategy, scenarios in (("SameRegion", SAME_REGION), ("MinimalDistance", MINIMAL_DISTANCE)):
            settings = {"candidateDeterminationStrategy": strategy}
            observations |= played(garden, chosen(request.session, scenarios), scheduler=settings, at_once=_AT_ONCE)
        return observations


@pytest.mark.parametrize("scenario", SAME_REGION)
def test_it_chooses_in_the_region_as_recorded(scenario: str, seen: dict[str, Observations]) -> None:
    check(difference(SAME_REGION[scenario], seen[scenario]))


@pytest.mark.parametrize("scenario", MINIMAL_DISTANCE)
def test_it_chooses_by_distance_as_recorded(scenario: str, seen: dict[str, Observations]) -> None:
    check(difference(MINIMAL_DISTANCE[scenario], seen[scenario]))
