"""For how long an object that was given up is left to who claims it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from agent.resource_manager.managed_resource.delete_options import DeleteOptions, Progress
from agent.resource_manager.managed_resource.elsewhere import Elsewhere
from agent.resource_manager.managed_resource.ownership import HAND_OVER_SECONDS, Look
from agent.resource_manager.managed_resource.removal import Removal
from agent.resource_manager.managed_resource.rules.change_set import ChangeSet, Pending
from agent.resource_manager.managed_resource.rules.permissions import Identity, Owner
from gardener.managed_resource.conditions import APPLY_FAILED, WAITING_FOR_DEPENDENCIES
from gardener.managed_resource.dependencies import Related
from gardener.managed_resource.plan import unrestricted
from kit.objects import config_map, managed_resource, reference
from kube.apply.live_objects import Observed
from kube.objects import Key, Object
from kube.resources import CONFIG_MAPS

OWNER, HEIR = Key("ns", "owner"), Key("ns", "heir")
CLAIMED_BY, ORIGIN = "resources.gardener.cloud/claimed-by", "resources.gardener.cloud/origin"
FIRST = 1000.0


class World:
    """The object `c`, the target, the API server and what is known of others, as far as a removal needs them."""

    def __init__(self, *, claimant: Key | None = None, notes: dict[str, str] | None = None) -> None:
        self._claimant = claimant
        self.live = config_map("ns/c", annotations={ORIGIN: str(OWNER), **(notes or {})}, uid="u", resourceVersion="1")
        self.deleted = False
        stand_in: Any = self
        self._options = DeleteOptions(
            owner=Owner(OWNER, str(OWNER), Identity(), unrestricted),
            client=stand_in,
            live=stand_in,
            ownership=stand_in,
            wanted=frozenset(),
            announced=frozenset(),
            adopt="",
            delete_volume_claims=False,
            garbage_collector=False,
            progress=Progress(unwanted_since={"/ConfigMap/ns/c": FIRST - HAND_OVER_SECONDS}),
            now=datetime.now(UTC),
            service_warnings=stand_in,
            note_claims=stand_in,
            related=Related,
        )

    async def look(self, now: float, *, other: Object | None = None) -> Pending | None:
        """One step of the removal, so many seconds after the first; `other` is about to claim it, by another agent."""
        stand_in: Any = self
        elsewhere = Elsewhere(plans=stand_in, find=lambda _name: other, is_outdated=lambda _other: False)
        if other is not None:
            status = {**(other.get("status") or {}), "pendingResources": [reference("v1 ConfigMap", "ns/c")]}
            elsewhere.works(HEIR, {**other, "status": status})
        look = Look(now=FIRST + now, elsewhere=elsewhere)
        removal = Removal(CONFIG_MAPS, reference("v1 ConfigMap", "ns/c"), self._options, look)
        return await removal.run(ChangeSet(owner=OWNER))

    # --- the ownership

    def claimant(self, *_: Any) -> Key | None:
        return self._claimant

    def is_held(self, own: Key, live: Object, _: str) -> bool:
        return bool(live["metadata"]["annotations"][ORIGIN] != str(own))

    def holder(self, own: Key, origin: str, _: str) -> Key | None:
        return HEIR if origin != str(own) else None

    def is_out_of_sight(self, _: str) -> bool:
        return False

    async def is_claimed(self, *_: Any, resource: str) -> bool:
        return True

    # --- the target, and the client

    def observed(self, *_: Any) -> Observed:
        notes = self.live["metadata"]["annotations"]
        return Observed("u", 1, b"", notes[ORIGIN], "", "", has_marks=CLAIMED_BY in notes)

    def sees(self, *_: Any) -> bool:
        return True

    async def read(self, *_: Any) -> Object:
        return self.live

    async def annotate(self, _: Any, __: Object, notes: dict[str, str], **___: Any) -> None:
        self.live["metadata"]["annotations"] |= notes

    def forget(self, _: str) -> None:
        pass

    async def delete(self, *_: Any, **__: Any) -> None:
        self.deleted = True


@pytest.mark.parametrize(
    ("world", "reason"),
    [
        (World(claimant=HEIR), "ManagedResource ns/heir is about to take it over; otherwise it is deleted after 2m0s"),
        (World(notes={CLAIMED_BY: "ns/heir"}), "ManagedResource ns/heir is its new owner; unless that takes it over"),
    ],
)
async def test_who_claims_it_has_two_minutes_which_is_reported_after_a_moment(world: World, reason: str) -> None:
    for seconds, is_reported in ((0.0, False), (2.9, False), (3.0, True), (119.9, True)):
        pending = await world.look(seconds)
        assert pending is not None
        assert reason in pending.text
        assert (pending.is_held_back, world.deleted) == (is_reported, False)
    await world.look(120.0)
    assert world.deleted


async def test_what_its_claimant_has_written_to_is_its_own() -> None:
    world = World(notes={CLAIMED_BY: "ns/heir"})
    assert await world.look(0.0) is not None
    assert world.live["metadata"]["annotations"] == {ORIGIN: "ns/heir", CLAIMED_BY: "ns/heir"}
    del world.live["metadata"]["annotations"][CLAIMED_BY]
    assert await world.look(200.0) is None
    assert not world.deleted


def heir(reason: str = "", message: str = "") -> Object:
    reported = [{"type": "ResourcesApplied", "status": "False", "reason": reason, "message": message}] if reason else []
    return managed_resource("ns/heir", status={"conditions": reported})


REFUSED = 'error during apply of object "v1/ConfigMap/ns/c": configmaps "c" is forbidden'


@pytest.mark.parametrize(
    ("other", "seconds"),
    [
        (heir(), 10.0),
        (heir(APPLY_FAILED, 'error during apply of object "v1/ConfigMap/ns/d": x'), 120.0),
        (heir(APPLY_FAILED, 'object "v1/ConfigMap/ns/c" is held by ManagedResource ns/owner'), 120.0),
        (heir(APPLY_FAILED, REFUSED), 0.0),
        (heir(WAITING_FOR_DEPENDENCIES, REFUSED), 120.0),  # not even looked at, see `Ownership`
    ],
)
async def test_who_is_about_to_claim_it_has_the_less_time_the_less_it_can_do(other: Object, seconds: float) -> None:
    world = World()
    if seconds:
        assert await world.look(0.0, other=other) is not None
        assert await world.look(seconds - 0.1, other=other) is not None
        assert not world.deleted
    await world.look(seconds, other=other)
    assert world.deleted
