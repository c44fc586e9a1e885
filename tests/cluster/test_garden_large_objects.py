"""What is large is stored by the real API server as it was written: within its limits of cost and size."""

import orjson
import pytest

from gardener.api.garden import CLOUD_PROFILES, SHOOTS
from kit.garden import Garden
from kit.garden_objects import garden_object
from kit.garden_shoots import ShootPlace
from kit.large_objects import images, lost, pools, provider_config

pytestmark = pytest.mark.timeout(600)


def test_a_profile_of_a_megabyte_and_a_shoot_with_many_pools_are_stored_and_changed(garden: Garden) -> None:
    place = ShootPlace(garden)
    try:
        of_place = images(place.name)
        large = {"machineImages": of_place, "providerConfig": provider_config(of_place)}
        stored = place.patch(CLOUD_PROFILES, place.name, {"spec": large})
        assert lost(large, stored["spec"]) == []
        assert len(orjson.dumps(stored)) > 1_000_000
        assert place.patch(CLOUD_PROFILES, place.name, {"spec": {"caBundle": None}})["spec"] == stored["spec"]

        pool = garden_object(SHOOTS)["spec"]["provider"]["workers"][0]
        pool["machine"]["image"] = {"name": place.name, "version": "1099.1.0"}
        wanted = pools(pool)
        shoot = place.shoot(provider={"type": place.name, "workers": wanted})
        workers = shoot["spec"]["provider"]["workers"]
        assert lost(wanted, workers) == []
        changed = place.patch(
            SHOOTS, "s", {"spec": {"provider": {"workers": [each | {"maximum": 3} for each in workers]}}}
        )
        assert {each["maximum"] for each in changed["spec"]["provider"]["workers"]} == {3}
    finally:
        place.remove()
