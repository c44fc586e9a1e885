"""Secrets of the garden of which all Seeds get copies."""

import pytest

from agent.controller_manager.common.rules.garden_secrets import SELECTOR
from gardener.garden.seed_graph import SECRETS_OF_SHOOT


@pytest.mark.parametrize("name", SECRETS_OF_SHOOT)
def test_what_a_gardenlet_publishes_of_a_shoot_is_not_copied_to_all_seeds(name: str) -> None:
    listed = SELECTOR.partition("notin (")[2].removesuffix(")").split(",")
    assert name.removesuffix(".old") in listed
