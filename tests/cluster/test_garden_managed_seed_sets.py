"""ManagedSeedSets grow, shrink and are renewed, one replica after the other, while a user plays the gardenlets."""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.controller_manager.managed_seed_set.controller import declare
from config.controller_manager.controllers import Controllers, ManagedSeedSet
from gardener.api.garden import MANAGED_SEED_SETS, MANAGED_SEEDS, SECRET_BINDINGS, SEEDS, SHOOTS
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.garden_seed_sets import SeedSetPlace
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.errors import Forbidden, Invalid
from kube.objects import Object, annotations, is_deleting, labels, spec
from kube.paths import at, with_value
from kube.resources import CONTROLLER_REVISIONS
from kube.runtime.client import MERGE_PATCH, Client, Selection

pytestmark = pytest.mark.timeout(900)

SYNC = 3600.0


class Place(SeedSetPlace):
    def __init__(self, garden: Garden, client: Client) -> None:
        super().__init__(garden, client)
        self.now = datetime.now(UTC)

    @asynccontextmanager
    async def controller(self, client: Client | None = None) -> AsyncIterator[None]:
        settings = ManagedSeedSet(sync_period=SYNC, max_shoot_retries=2)
        async with run_garden_controller(
            declare,
            client or self.client,
            controllers=Controllers(managed_seed_set=settings),
            clock=lambda: self.now,
        ):
            yield


@asynccontextmanager
async def a_place(garden: Garden) -> AsyncIterator[Place]:
    async with connected(garden.cluster) as client:
        yield Place(garden, client)


async def test_a_set_lives(garden: Garden) -> None:
    async with a_place(garden) as place, place.controller():
        place.make(2)
        await soon(lambda: place.waits() == "0 ShootReconciling", "the first Shoot to be made")
        assert place.status()["nextReplicaNumber"] == place.status()["replicas"] == 1
        await place.ready(2)
        shoot = place.base.get(SHOOTS, place.replica(0))
        managed_seed = place.base.get(MANAGED_SEEDS, place.replica(0))
        owner = {"kind": "ManagedSeedSet", "name": place.name, "controller": True, "blockOwnerDeletion": True}
        for made in (shoot, managed_seed):
            assert owner.items() <= made["metadata"]["ownerReferences"][0].items()
            assert labels(made)["set"] == place.name
        assert annotations(shoot)["note"] == "n"
        assert spec(shoot)["dns"]["domain"] == f"{place.replica(0)}.{place.name}.example.com"
        seed_spec = at(spec(managed_seed), "gardenlet", "config", "seedConfig", "spec")
        assert seed_spec["ingress"]["domain"] == f"ingress.{place.replica(0)}.{place.name}.example.com"

        place.change(replicas=1)
        await place.working(lambda: place.base.find(SHOOTS, place.replica(0)) is None, "the elder to go")
        await place.ready(1)
        path = MANAGED_SEED_SETS.path(namespace="garden", name=place.name, subresource="scale")
        assert (await place.client.read(path))["status"] == {"replicas": 1, "selector": f"set={place.name}"}
        two: Object = {"spec": {"replicas": 2}}
        await place.client.request("PATCH", path, body=two, content_type=MERGE_PATCH)
        await place.ready(2)
        assert await place.numbers() == {1, 2}

        options: Object = {"propagationPolicy": "Foreground"}
        with pytest.raises(Forbidden, match="deletes its replicas in order"):
            garden.cluster.api.request("DELETE", MANAGED_SEED_SETS.path(namespace="garden", name=place.name), options)
        place.base.delete(MANAGED_SEED_SETS, place.name)
        await place.working(lambda: place.base.find(MANAGED_SEED_SETS, place.name) is None, "all to go")
        assert await place.numbers() == set()
        events = await place.events()
        for what in ("CreatingShoot: Creating Shoot", "CreatingManagedSeed: Creating ManagedSeed"):
            assert [events[f"{what} garden/X-{number}"] for number in (0, 1, 2)] == [1, 1, 1]
        for what in ("DeletingShoot: Deleting Shoot", "DeletingManagedSeed: Deleting ManagedSeed"):
            assert [events[f"{what} garden/X-{number}"] for number in (0, 1, 2)] == [1, 1, 1]


async def test_seeds_of_a_set_may_be_made_without_a_gardenlet(garden: Garden) -> None:
    async with a_place(garden) as place, place.controller():
        templates = place.templates()
        described = templates["template"]["spec"].pop("gardenlet")["config"]["seedConfig"]
        templates["template"]["spec"]["seedTemplate"] = described
        place.make(1, **templates)
        await place.ready(1)
        own = place.base.get(MANAGED_SEEDS, place.replica(0))
        seed = spec(own)["seedTemplate"]["spec"]
        shoot = spec(place.base.get(SHOOTS, place.replica(0)))
        assert seed["ingress"]["domain"] == f"ingress.{place.replica(0)}.{place.name}.example.com"
        assert seed["networks"]["pods"] == shoot["networking"]["pods"]
        assert spec(place.base.get(SEEDS, place.replica(0)))["provider"] == seed["provider"]
        assert "gardenlet" not in spec(own)

        for resource, name, path in (
            (MANAGED_SEEDS, place.replica(0), ("spec",)),
            (MANAGED_SEED_SETS, place.name, ("spec", "template", "spec")),
        ):
            for change, problem in (
                ({"seedTemplate": None}, "either seed template or gardenlet is required"),
                ({"gardenlet": {}}, "either seed template or gardenlet is required"),
                ({"seedTemplate": None, "gardenlet": {}}, "changing from seed template to gardenlet and vice versa"),
                ({"seedTemplate": {"metadata": {"name": "x"}}}, "seed name is forbidden"),
            ):
                with pytest.raises(Invalid, match=problem):
                    place.base.patch(resource, name, with_value({}, path, change))
        elsewhere = {"spec": {"seedTemplate": {"spec": {"networks": {"pods": "10.1.0.0/16"}}}}}
        with pytest.raises(Invalid, match="field is immutable"):
            place.base.patch(MANAGED_SEEDS, place.replica(0), elsewhere)
        place.change(replicas=0)
        await place.ready(0)


async def test_a_shoot_that_fails_is_retried_and_then_left_for_a_while(garden: Garden) -> None:
    async with a_place(garden) as place, place.controller():
        place.gardenlets.failures[place.replica(0)] = 3
        place.make(1)
        await place.working(lambda: place.waits() == "0 ShootReconcileFailed 2", "it to be given up")
        place.gardenlets.failures[place.replica(0)] = 2
        place.now += timedelta(seconds=SYNC + 1)
        place.base.patch(SHOOTS, place.replica(0), {"metadata": {"labels": {"look": "again"}}})
        await place.working(lambda: place.waits() == "0 ShootReconcileFailed 4", "the second round to end")
        # It is repaired by a user.
        place.base.patch(SHOOTS, place.replica(0), {"metadata": {"annotations": {"gardener.cloud/operation": "retry"}}})
        await place.ready(1)
        events = await place.events()
        assert events["RetryingShootReconciliation: Retrying Shoot garden/X-0 reconciliation"] == 4


async def test_what_is_refused_costs_no_number_and_is_reported_once(garden: Garden) -> None:
    async with a_place(garden) as place, place.controller():
        place.make(1, shoot_spec={"secretBindingName": "none"})

        async def is_reported() -> bool:
            return any(event.startswith("ReconcileError") for event in await place.events())

        await soon(is_reported, "the refusal to be reported")
        assert place.status()["replicas"] == 0
        assert place.waits() == ""
        reported = {each["type"]: each for each in place.status()["conditions"]}["Progressing"]
        assert reported["reason"] == "CreationRejected"
        assert 'secretbindings.core.gardener.cloud "none" not found' in reported["message"]
        place.base.create(
            SECRET_BINDINGS,
            "none",
            provider={"type": place.name},
            secretRef={"name": place.name, "namespace": "garden"},
        )
        place.change(shootTemplate={"metadata": {"annotations": {"now": "better"}}})
        await place.ready(1)
        assert await place.numbers() == {0}
        await soon(lambda: "conditions" not in place.status(), "the refusal to be forgotten")
        events = await place.events()
        assert events["CreatingShoot: Creating Shoot garden/X-0"] == 1
        place.base.garden.delete(SECRET_BINDINGS, "none", namespace="garden")


async def test_only_what_belongs_to_the_set_counts_and_what_looks_like_its_own_is_adopted(garden: Garden) -> None:
    async with a_place(garden) as place:
        meta = {"labels": {"set": place.name}}
        domain = {"domain": f"{place.replica(7)}.{place.name}.example.com"}
        shoot = place.templates()["shootTemplate"]["spec"]
        place.base.create(
            SHOOTS, place.replica(7), metadata=copy.deepcopy(meta), spec=shoot | {"dns": shoot["dns"] | domain}
        )
        place.base.create(SHOOTS, f"{place.name}-x", metadata=copy.deepcopy(meta), spec=shoot)
        async with place.controller():
            place.make(2)
            await place.ready(2)
            assert await _numbers_of_own(place) == {7, 8}

            async def is_reported() -> bool:
                message = "Shoots that match the selector but do not belong to the set are ignored: [garden/X-x]"
                return (await place.events()).get(f"ForeignObjectMatchesSelector: {message}") == 1

            await soon(is_reported, "the other Shoot to be reported")
            place.change(replicas=0)
            await place.ready(0)
            assert place.base.find(SHOOTS, f"{place.name}-x") is not None


async def _numbers_of_own(place: Place) -> set[int]:
    selection = Selection("garden", f"set={place.name}")
    pages = place.client.pages(SHOOTS, selection)
    return {
        int(shoot["metadata"]["name"].rpartition("-")[2])
        async for page in pages
        for shoot in page
        if shoot["metadata"].get("ownerReferences")
    }


async def test_a_seed_that_is_used_stays_until_its_last_shoot_has_left(garden: Garden) -> None:
    async with a_place(garden) as place, place.controller():
        place.make(1)
        await place.ready(1)
        other = ShootPlace(garden)
        other.shoot("user")
        other.patch(SHOOTS, "user", {"status": {"seedName": place.replica(0)}}, status=True)
        place.change(replicas=0)

        async def is_reported() -> bool:
            return (await place.events()).get("ReconcileError: no deletable replicas found") == 1

        await soon(is_reported, "the refusal to be reported")
        assert place.waits() == ""
        other.patch(SHOOTS, "user", {"status": {"seedName": None}}, status=True)
        await place.ready(0)


class Overtaken(Client):
    """At the last look at whether the Seed is empty, a user does something."""

    overtake: Callable[[], None] | None = None

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        if (options.get("params") or {}).get("fieldSelector", "").startswith("spec.seedName") and self.overtake:
            overtake, self.overtake = self.overtake, None
            overtake()
        return await super().request(method, path, **options)


async def test_a_seed_is_cordoned_before_it_is_removed_and_released_if_it_stays(garden: Garden) -> None:
    async with a_place(garden) as place:
        client = Overtaken(place.client.transport, user_agent="overtaken")
        async with place.controller(client):
            place.make(1)
            await place.ready(1)
            other, found = ShootPlace(garden), list[dict[str, str]]()
            other.shoot("user")

            def cordons() -> dict[str, str]:
                there = annotations(place.base.get(SEEDS, place.replica(0)))
                return {name.partition("/")[2]: value for name, value in there.items() if "/cordoned" in name}

            def come() -> None:
                found.append(cordons())
                other.patch(SHOOTS, "user", {"status": {"seedName": place.replica(0)}}, status=True)

            client.overtake = come
            place.change(replicas=0)
            await soon(lambda: bool(found) and not cordons(), "the Seed to be released")
            own = place.base.meta(MANAGED_SEED_SETS, place.name)["uid"]
            assert found == [{"cordoned": "true", "cordoned-by": own}]
            assert not is_deleting(place.base.get(MANAGED_SEEDS, place.replica(0)))
            other.patch(SHOOTS, "user", {"status": {"seedName": None}}, status=True)
            await place.ready(0)


class Unheard(Client):
    """A moment after a Seed is cordoned, a user does something who has not heard of it."""

    act: Callable[[], None] | None = None

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        answer = await super().request(method, path, **options)
        if method == "PATCH" and "/seeds/" in path and self.act:
            act, self.act = self.act, None
            asyncio.get_running_loop().call_later(0.3, act)
        return answer


async def test_who_came_before_all_had_heard_that_a_seed_is_cordoned_keeps_it(garden: Garden) -> None:
    async with a_place(garden) as place:
        client = Unheard(place.client.transport, user_agent="unheard")
        async with place.controller(client):
            place.make(1)
            await place.ready(1)
            other = ShootPlace(garden)
            other.shoot("user")

            def come() -> None:
                other.patch(SHOOTS, "user", {"status": {"seedName": place.replica(0)}}, status=True)

            client.act = come
            place.change(replicas=0)

            async def is_reported() -> bool:
                return (await place.events()).get("ReconcileError: no deletable replicas found") == 1

            await soon(is_reported, "the Seed to stay")
            assert not is_deleting(place.base.get(MANAGED_SEEDS, place.replica(0)))
            other.patch(SHOOTS, "user", {"status": {"seedName": None}}, status=True)
            await place.ready(0)


# --- changed templates


async def _keeps_revisions(place: Place, *wanted: str) -> None:
    """What is too old goes after the status is written."""

    async def are_kept() -> bool:
        pages = place.client.pages(CONTROLLER_REVISIONS, Selection("garden", f"set={place.name}"))
        kept = [revision["metadata"]["name"] async for page in pages for revision in page]
        return sorted(kept) == sorted(wanted)

    await soon(are_kept, "the revisions of the past to go")


async def test_changed_templates_reach_the_replicas_one_after_the_other(garden: Garden) -> None:
    async with a_place(garden) as place, place.controller():
        place.make(2, updateStrategy={"rollingUpdate": {"partition": 1}}, revisionHistoryLimit=1)
        await place.ready(2)
        first = place.status()["currentRevision"]
        assert place.status()["updateRevision"] == first
        assert labels(place.base.get(MANAGED_SEEDS, place.replica(0)))["controller-revision-hash"] == first
        for number in (0, 1):
            place.base.patch(SHOOTS, place.replica(number), {"metadata": {"annotations": {"own": "x"}}})

        def maximum(number: int) -> int:
            shoot = place.base.get(SHOOTS, place.replica(number))
            assert annotations(shoot)["own"] == "x"
            found: int = spec(shoot)["provider"]["workers"][0]["maximum"]
            return found

        def is_rolled_out(updated: int) -> bool:
            status = place.status()
            return (status.get("readyReplicas"), status.get("updatedReplicas"), place.waits()) == (2, updated, "")

        place.change(shootTemplate=place.with_workers(3))
        await place.working(lambda: is_rolled_out(1), "the replica above the partition to be updated")
        assert (maximum(0), maximum(1)) == (2, 3)
        assert place.status()["currentRevision"] == first != place.status()["updateRevision"]
        assert place.status()["currentReplicas"] == 1

        place.change(updateStrategy={"rollingUpdate": {"partition": 0}})
        await place.working(lambda: is_rolled_out(2), "all to be updated")
        assert (maximum(0), maximum(1)) == (3, 3)
        second = place.status()["currentRevision"]
        assert second == place.status()["updateRevision"] != first
        reported = {each["type"]: (each["status"], each["reason"]) for each in place.status()["conditions"]}
        assert reported == {"Available": ("True", "AllReplicasReady"), "Progressing": ("False", "Idle")}
        events = await place.events()
        assert [events[f"UpdatingShoot: Updating Shoot garden/X-{number}"] for number in (1, 0)] == [1, 1]
        assert [events[f"UpdatingManagedSeed: Updating ManagedSeed garden/X-{number}"] for number in (1, 0)] == [1, 1]

        # A third revision leaves room for one of the past; what was before the last change is found again.
        place.change(shootTemplate=place.with_workers(4))
        await place.working(lambda: is_rolled_out(2) and maximum(0) == 4, "the next update")
        third = place.status()["updateRevision"]
        await _keeps_revisions(place, second, third)
        place.change(shootTemplate=place.with_workers(3))
        await place.working(lambda: is_rolled_out(2) and maximum(0) == 3, "the update to be taken back")
        assert place.status()["currentRevision"] == second
        await _keeps_revisions(place, second, third)


async def test_an_update_that_is_refused_is_reported_and_scaling_goes_on(garden: Garden) -> None:
    async with a_place(garden) as place, place.controller():
        place.make(1, updateStrategy={"rollingUpdate": {}})
        await place.ready(1)
        refused = place.with_workers(1)
        refused["spec"]["provider"]["workers"][0]["machine"]["type"] = "none"
        place.change(shootTemplate=refused)

        def progressing() -> str:
            reported = {each["type"]: each["reason"] for each in place.status()["conditions"]}
            return str(reported["Progressing"])

        await soon(lambda: progressing() == "UpdateRejected", "the refusal to be reported")

        async def is_reported() -> bool:
            return any(event.startswith("UpdateRejected") for event in await place.events())

        await soon(is_reported, "the Event")
        place.change(replicas=0)
        await place.ready(0)
        assert progressing() == "Idle"


async def test_a_set_that_is_not_rolled_out_any_more_can_shrink(garden: Garden) -> None:
    async with a_place(garden) as place, place.controller():
        place.make(1, updateStrategy={"rollingUpdate": {}})
        await place.ready(1)
        await soon(lambda: place.status().get("updatedReplicas") == 1, "the count")
        place.change(updateStrategy={"rollingUpdate": None})
        await soon(lambda: "updatedReplicas" not in place.status(), "the counts to go")
        assert "currentReplicas" not in place.status()
        place.change(replicas=0)
        await place.ready(0)


async def test_an_update_goes_on_when_the_shoots_on_the_seed_before_are_healthy(garden: Garden) -> None:
    async with a_place(garden) as place, place.controller():
        place.make(2, updateStrategy={"rollingUpdate": {"maxUnhealthyShoots": 0}})
        await place.ready(2)
        user = f"{place.name}user"
        networks = {"type": place.name, "pods": "10.128.0.0/11", "services": "10.160.0.0/13"}
        place.base.shoot(user, networking=networks, seedName=place.replica(1))
        place.change(shootTemplate=place.with_workers(3))
        waiting = "WaitingForScheduledShootsHealthy: Waiting for 1 of 1 Shoots on Seed X-1 to be healthy"

        async def is_reported() -> bool:
            return waiting in await place.events()

        await place.working(is_reported, "the set to wait")
        await soon(lambda: place.status().get("updatedReplicas") == 1, "one to be updated")
        place.base.patch(SHOOTS, user, {"metadata": {"labels": {"shoot.gardener.cloud/status": "healthy"}}})
        await place.working(
            lambda: place.is_ready(2) and place.status().get("updatedReplicas") == 2, "the update to go on"
        )
        place.base.delete(SHOOTS, user)
