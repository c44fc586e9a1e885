"""Whose ConfigMaps with distances between regions count."""

from agent.controller_manager.seed_autoscaler import controller as seed_autoscaler
from agent.scheduler.shoot import views as scheduler


def test_only_operators_write_distances_between_regions() -> None:
    for view in (seed_autoscaler.REGION_CONFIGS_VIEW, scheduler.REGION_CONFIGS_VIEW):
        assert view.namespace == "garden"
