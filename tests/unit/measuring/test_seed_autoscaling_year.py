"""The year of `python -m benchmarks seed-autoscaling` accounts for every Shoot."""

import pytest

from agent.controller_manager.seed_autoscaler.rules.settings import Settings
from benchmarks.seed_autoscaling import World, courses, settings_of


@pytest.mark.parametrize("settings", [None, settings_of(80)], ids=["fixed", "80 %"])
def test_every_shoot_is_placed_and_no_seed_is_beyond_its_room(settings: Settings | None) -> None:
    outcome = World(courses(5400), replicas=2, settings=settings).run()
    assert len(outcome.waits) == 5400
    assert all(used <= 100 * (outcome.most + 1) for _, _, used in outcome.levels)
    assert 0 < outcome.used <= 1
    assert bool(outcome.removed) == (settings is not None)
