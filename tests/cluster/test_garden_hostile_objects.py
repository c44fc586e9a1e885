"""Hostile objects of all sorts that a member of a Project may create: the programs of a garden serve others beside them."""

from functools import partial

import pytest

from gardener.api.garden import NAMESPACED_CLOUD_PROFILES, SHOOTS
from kit.eventually import eventually
from kit.garden import Garden
from kit.garden_shoots import ShootPlace
from kit.hostile_garden import GardenPrograms, make_hostile, remove_hostile
from kube.paths import at

pytestmark = pytest.mark.timeout(600)

_MOST = 300
"""MiB; a tenth of what the manifests let them have."""


def test_hostile_objects_are_named_and_keep_no_others_from_being_served(garden: Garden) -> None:
    hostile, good = ShootPlace(garden), ShootPlace(garden)
    make_hostile(hostile, each=1)
    try:
        with GardenPrograms(garden) as programs:
            good.shoot()
            parent = {"kind": "CloudProfile", "name": good.name}
            good.create(NAMESPACED_CLOUD_PROFILES, "n", spec={"parent": parent})
            # There is no Seed for it.
            description = ("status", "lastOperation", "description")
            eventually(lambda: at(good.get(SHOOTS, "s"), *description), "the scheduler to decide about the Shoot")
            content = partial(good.get, NAMESPACED_CLOUD_PROFILES, "n")
            eventually(
                lambda: at(content(), "status", "cloudProfileSpec", "machineTypes"), "the profile to be rendered"
            )
            manager = programs.agents["controller manager"]
            named = {entry.get("object") for entry in manager.entries if entry["level"] == "error"}
            assert f"Secret {hostile.namespace}/hostile0-f" in named
            assert manager.metric("controller_manager_objects_unread") == 1
            assert all(peak < _MOST for peak in programs.peaks().values()), programs.peaks()
    finally:
        remove_hostile(hostile, each=1)
