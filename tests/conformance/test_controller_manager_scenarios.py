"""The controller manager leaves a garden as the original does: recorded scenarios, all in one garden.

They are replayed at once, since they mostly wait; then each has a test that judges what was seen. Those that were not
chosen are not replayed.
"""

import pytest

from conformance.garden_judge import difference
from conformance.garden_scenarios import load
from conformance.garden_stage import CONTROLLERS, PROJECT, furnished, played
from conformance.scenario_data import Observations
from conformance.scenario_player import check, chosen
from devcluster.testing.pytest_plugin import RunClusters

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # the first test waits for all scenarios

MAIN, SHORT = load("main"), load("short")
_CONTROLLERS_SHORT = {
    **CONTROLLERS,
    "event": {"ttlNonShootEvents": "15s"},
    "project": {
        **PROJECT,
        "minimumLifetimeDays": 0,
        "staleGracePeriodDays": 1,
        "staleExpirationTimeDays": 2,
        "staleSyncPeriod": "4s",
    },
}


@pytest.fixture(scope="module")
def seen(devcluster_run: RunClusters, request: pytest.FixtureRequest) -> dict[str, Observations]:
    """By the scenario. First what was recorded with short lives: not many objects are there yet that end by them."""
    with furnished() as garden:
        return {
            **played(garden, chosen(request.session, SHORT), controllers=_CONTROLLERS_SHORT),
            **played(garden, chosen(request.session, MAIN)),
        }


@pytest.mark.parametrize("scenario", MAIN)
def test_it_leaves_a_garden_as_recorded(scenario: str, seen: dict[str, Observations]) -> None:
    check(difference(MAIN[scenario], seen[scenario]))


@pytest.mark.parametrize("scenario", SHORT)
def test_it_leaves_a_garden_of_short_lives_as_recorded(scenario: str, seen: dict[str, Observations]) -> None:
    check(difference(SHORT[scenario], seen[scenario]))
