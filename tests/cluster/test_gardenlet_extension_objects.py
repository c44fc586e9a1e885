"""What a gardenlet requests from extensions, and waits for, with simulated extensions: well, and badly.

The control plane is of this file alone: other tests define some of these kinds as open ones.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from agent.gardenlet.common.extension_objects import kinds
from agent.gardenlet.common.extension_objects.kinds import Kind
from agent.gardenlet.common.extension_objects.objects import Asked, ExtensionError, ExtensionObjects
from agent.gardenlet.common.extension_objects.questions import Question
from agent.gardenlet.common.shoot_states.rules.contents import Left
from agent.gardenlet.common.shoot_states.saving import Saved, living
from agent.gardenlet.shoot.main.operation import LEAVING_CONTROL_PLANE
from agent.gardenlet.shoot.main.tasks.infrastructure import destroy_control_plane
from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from gardener import keys
from gardener.api.seed_definitions import Stage, custom_resource_definitions
from kit.controllers import cluster_of
from kit.eventually import soon
from kit.kinds import wait_until_served
from kit.shoot_components import bare_operation
from kit.world import connected
from kube.clock import utc_now
from kube.objects import Key, Object, annotations, metadata, uid
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, SECRETS, Resource
from kube.runtime.cache import Caches
from kube.runtime.client import Client
from kube.runtime.controller import ReconcileError
from kube.runtime.discovery import Discovery
from kube.runtime.waiting import Waiting

NAMESPACE = "default"
FINALIZER = "extensions.gardener.cloud/local"
ERROR = {"description": "cloud: AccessDenied", "codes": ["ERR_INFRA_UNAUTHORIZED"]}


@pytest.fixture(scope="module")
def seed(devcluster_run: RunClusters) -> Iterator[Cluster]:
    with Cluster() as cluster:
        for definition in [*custom_resource_definitions(Stage.EXTENSIONS), *custom_resource_definitions(Stage.DRUID)]:
            cluster.api.create(CUSTOM_RESOURCE_DEFINITIONS.path(), definition)
        wait_until_served(cluster, *(each.resource.path() for each in (kinds.ETCD, kinds.WORKER, kinds.INFRASTRUCTURE)))
        yield cluster


@dataclass(slots=True)
class Place:
    """A seed, what a gardenlet does there, and a simulated extension."""

    client: Client
    objects: ExtensionObjects
    waited_for: list[str]

    async def live(self, kind: Kind, name: str) -> Object:
        return await self.client.get(kind.resource, Key(NAMESPACE, name))

    async def answer(
        self,
        kind: Kind,
        name: str,
        *,
        state: str = "Succeeded",
        error: Object | None = None,
        at: datetime | None = None,
    ) -> None:
        """As an extension does: it takes the operation away, then reports."""
        live = await self.live(kind, name)
        meta = {"annotations": {keys.OPERATION: None}, "finalizers": [FINALIZER]}
        live = await self.client.patch(kind.resource, Key(NAMESPACE, name), {"metadata": meta})
        await self.report(kind, live, state=state, error=error, at=at)

    async def report(
        self,
        kind: Kind,
        live: Object,
        *,
        state: str = "Succeeded",
        of: str = "Reconcile",
        error: Object | None = None,
        at: datetime | None = None,
    ) -> None:
        updated = (at or utc_now()).strftime("%Y-%m-%dT%H:%M:%SZ")
        operation = {"type": of, "state": state, "description": "d", "progress": 100, "lastUpdateTime": updated}
        status = {"observedGeneration": metadata(live)["generation"], "lastOperation": operation, "lastError": error}
        name = metadata(live)["name"]
        await self.client.patch(kind.resource, Key(NAMESPACE, name), {"status": status}, subresource="status")


@pytest.fixture
async def place(seed: Cluster) -> AsyncIterator[Place]:
    async with connected(seed, "gardenlet/1") as client:
        caches, waited_for = Caches(client), list[str]()
        objects = ExtensionObjects(
            client=client,
            waiting=Waiting(client=client, caches=caches, discovery=Discovery(client)),
            clock=utc_now,
            report=lambda name, reason: waited_for.append(f"{name}: {reason}"),
        )
        try:
            yield Place(client, objects=objects, waited_for=waited_for)
        finally:
            await caches.close()


def infrastructure(name: str, **spec: Any) -> Object:
    given = {"type": "local", "region": "r", "secretRef": {"name": "s", "namespace": NAMESPACE}, **spec}
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": given}


def network(name: str, **spec: Any) -> Object:
    given = {"type": "local", "podCIDR": "10.0.0.0/16", "serviceCIDR": "10.1.0.0/16", **spec}
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": given}


def impatient(kind: Kind, **changes: float) -> Kind:
    return replace(kind, **{"severe": 0.5, "longest": 30.0, **changes})  # type: ignore[arg-type]


Step = tuple[str, Callable[[], Awaitable[Any]]]


async def while_waiting(place: Place, waiting: Awaitable[Any], *steps: Step) -> Any:
    """Play the steps, each after it has been reported, with this text in it, what is waited for."""
    task = asyncio.ensure_future(waiting)
    for text, step in steps:

        def is_reported(text: str = text) -> bool:
            return task.done() or any(text in each for each in place.waited_for)

        await soon(is_reported, f"{text!r} to be waited for", state=lambda: place.waited_for)
        await step()
    return await task


# --- asking


async def test_an_object_is_requested_and_its_answer_awaited(place: Place) -> None:
    requested = await place.objects.deploy(kinds.INFRASTRUCTURE, infrastructure("new"))
    live = await place.live(kinds.INFRASTRUCTURE, "new")
    assert annotations(live) == {keys.OPERATION: "reconcile", keys.TIMESTAMP: requested.timestamp}

    async def answer() -> None:
        await place.answer(kinds.INFRASTRUCTURE, "new")

    found = await while_waiting(place, place.objects.wait(requested), ("observed generation outdated", answer))
    assert found["status"]["lastOperation"]["state"] == "Succeeded"
    assert place.waited_for[0].startswith("Infrastructure default/new: ")


async def test_an_answered_object_is_requested_again_only_if_something_is_new(place: Place) -> None:
    kind, manifest = kinds.INFRASTRUCTURE, infrastructure("answered")
    await place.objects.deploy(kind, manifest)
    await place.answer(kind, "answered", at=utc_now() + timedelta(seconds=2))
    before = await place.live(kind, "answered")
    again = await place.objects.deploy(kind, manifest)
    assert await place.live(kind, "answered") == before
    assert again.timestamp == annotations(before)[keys.TIMESTAMP]
    await place.objects.wait(again)

    changed = {**manifest, "spec": {**manifest["spec"], "providerConfig": {"a": 1}}}
    for demanded, wanted in ((False, changed), (True, changed)):
        requested = await place.objects.deploy(kind, wanted, is_demanded=demanded)
        live = await place.live(kind, "answered")
        assert annotations(live) == {keys.OPERATION: "reconcile", keys.TIMESTAMP: requested.timestamp}
        await place.answer(kind, "answered", at=utc_now() + timedelta(seconds=2))


async def test_what_is_always_requested_is_requested_in_every_pass(place: Place) -> None:
    first = await place.objects.deploy(kinds.NETWORK, network("always"))
    await place.answer(kinds.NETWORK, "always")
    second = await place.objects.deploy(kinds.NETWORK, network("always"))
    assert second.timestamp > first.timestamp


async def test_a_question_that_got_lost_is_queried_again(place: Place) -> None:
    """The extension took the operation away, and was ended."""
    kind, manifest = kinds.INFRASTRUCTURE, infrastructure("lost")
    await place.objects.deploy(kind, manifest)
    meta = {"annotations": {keys.OPERATION: None}}
    await place.client.patch(kind.resource, Key(NAMESPACE, "lost"), {"metadata": meta})
    await place.objects.deploy(kind, manifest)
    assert annotations(await place.live(kind, "lost"))[keys.OPERATION] == "reconcile"


async def test_a_question_that_was_left_half_way_is_followed_by_the_next_one(place: Place) -> None:
    """A restore ended before it requested to go on, and extensions wait for that."""
    kind, manifest = kinds.INFRASTRUCTURE, infrastructure("half-way")
    await place.objects.deploy(kind, manifest, operation="wait-for-state")
    await place.objects.deploy(kind, manifest)
    assert annotations(await place.live(kind, "half-way"))[keys.OPERATION] == "reconcile"


async def test_new_data_behind_an_unchanged_spec_are_requested_until_they_are_answered(place: Place) -> None:
    kind, manifest = kinds.INFRASTRUCTURE, infrastructure("data")
    await place.objects.deploy(kind, manifest)
    await place.answer(kind, "data")
    before = await place.live(kind, "data")
    answered = datetime.fromisoformat(before["status"]["lastOperation"]["lastUpdateTime"])
    earlier, later = ((answered + timedelta(seconds=each)).isoformat() for each in (-1, 1))
    await place.objects.send(Question(kind=kind, manifest=manifest, data_changed=earlier))
    assert await place.live(kind, "data") == before
    await place.objects.send(Question(kind=kind, manifest=manifest, data_changed=later))
    assert annotations(await place.live(kind, "data"))[keys.OPERATION] == "reconcile"


async def test_members_are_scaled_only_if_the_last_question_is_the_own_one(place: Place) -> None:
    kind, labels = kinds.ETCD, {"a": "b"}
    spec = {"replicas": 1, "labels": labels, "selector": {"matchLabels": labels}, "etcd": {}, "backup": {}}
    requested = await place.objects.deploy(kind, {"metadata": {"name": "scaled", "namespace": NAMESPACE}, "spec": spec})

    async def taken() -> None:
        meta = {"metadata": {"annotations": {keys.OPERATION: None}}}
        await place.client.patch(kind.resource, Key(NAMESPACE, "scaled"), meta)

    with pytest.raises(ReconcileError, match='scaled: gardener operation "reconcile" is not picked up yet'):
        await place.objects.scale(requested, 3)
    await taken()
    again = await place.objects.scale(requested, 3)
    live = await place.live(kind, "scaled")
    assert (live["spec"]["replicas"], annotations(live)[keys.OPERATION]) == (3, "reconcile")
    await taken()
    assert await place.objects.scale(again, 3) == again
    with pytest.raises(ReconcileError, match=f"is {again.timestamp}, and not {requested.timestamp}"):
        await place.objects.scale(requested, 1)


async def test_an_extension_that_writes_all_the_time_is_queried(place: Place) -> None:
    """As one that fails, and tries again at once."""
    await place.objects.deploy(kinds.NETWORK, network("busy"))

    async def fail() -> None:
        live, number = await place.live(kinds.NETWORK, "busy"), 0
        while True:
            number += 1
            await place.report(kinds.NETWORK, live, state="Error", error={"description": str(number)})

    failing = [asyncio.create_task(fail()) for _ in range(4)]
    await place.objects.deploy(kinds.NETWORK, network("busy", providerConfig={"a": 1}))
    for each in failing:
        each.cancel()
    await asyncio.wait(failing)
    live = await place.live(kinds.NETWORK, "busy")
    assert (live["spec"]["providerConfig"], annotations(live)[keys.OPERATION]) == ({"a": 1}, "reconcile")


async def test_labels_and_annotations_of_others_stay(place: Place) -> None:
    manifest = network("labelled")
    await place.objects.deploy(kinds.NETWORK, manifest)
    await place.answer(kinds.NETWORK, "labelled")
    meta = {"labels": {"theirs": "1"}, "annotations": {"theirs": "2"}}
    await place.client.patch(kinds.NETWORK.resource, Key(NAMESPACE, "labelled"), {"metadata": meta})
    mine = {**manifest, "metadata": {**manifest["metadata"], "labels": {"mine": "3"}, "annotations": {"mine": "4"}}}
    await place.objects.deploy(kinds.NETWORK, mine)
    live = metadata(await place.live(kinds.NETWORK, "labelled"))
    assert (live["labels"], live["finalizers"]) == ({"theirs": "1", "mine": "3"}, [FINALIZER])
    assert {"theirs": "2", "mine": "4"}.items() <= live["annotations"].items()


async def test_an_object_that_is_too_large_is_not_written(place: Place) -> None:
    large = network("large", providerConfig={"a": "x" * (1 << 20)})
    with pytest.raises(ReconcileError, match=r"Network default/large has \d+ bytes, more than the limit of 1048576"):
        await place.objects.deploy(kinds.NETWORK, large)


async def test_an_object_that_is_being_deleted_is_followed_by_another(place: Place) -> None:
    kind = impatient(kinds.NETWORK, severe=60)
    await place.objects.deploy(kind, network("leaving"))
    await place.answer(kind, "leaving")
    former = uid(await place.live(kind, "leaving"))
    await place.objects.delete(kind, Key(NAMESPACE, "leaving"))

    async def let_go() -> None:
        meta = {"finalizers": None}
        await place.client.patch(kind.resource, Key(NAMESPACE, "leaving"), {"metadata": meta})

    await while_waiting(place, place.objects.deploy(kind, network("leaving")), (FINALIZER, let_go))
    assert uid(await place.live(kind, "leaving")) != former


# --- answers


async def test_an_answer_to_an_older_question_does_not_count(place: Place) -> None:
    kind = impatient(kinds.NETWORK)
    await place.objects.deploy(kind, network("older"))
    requested = await place.objects.deploy(kind, network("older"))

    async def answer_too_early() -> None:
        await place.answer(kind, "older", at=utc_now() - timedelta(minutes=1))

    async def answer() -> None:
        await place.answer(kind, "older", at=utc_now() + timedelta(seconds=2))

    await while_waiting(
        place,
        place.objects.wait(requested),
        ("outdated (0/1)", answer_too_early),
        ("older than the request", answer),
    )


async def test_an_error_for_one_look_is_no_failure(place: Place) -> None:
    kind = impatient(kinds.NETWORK, severe=20)
    requested = await place.objects.deploy(kind, network("mended"))

    async def fail() -> None:
        await place.answer(kind, "mended", state="Error", error=ERROR)

    async def mend() -> None:
        await place.answer(kind, "mended", at=utc_now() + timedelta(seconds=2))

    await while_waiting(place, place.objects.wait(requested), ("outdated", fail), ("AccessDenied", mend))


async def test_an_error_that_stays_is_reported_with_its_codes(place: Place) -> None:
    kind = impatient(kinds.NETWORK)
    requested = await place.objects.deploy(kind, network("failed"))
    await place.answer(kind, "failed", state="Error", error=ERROR)
    with pytest.raises(ExtensionError) as raised:
        await place.objects.wait(requested)
    assert str(raised.value) == (
        "Error while waiting for Network default/failed to become ready: error during reconciliation: "
        "cloud: AccessDenied"
    )
    assert raised.value.codes == ("ERR_INFRA_UNAUTHORIZED",)


async def test_an_error_of_before_is_no_answer(place: Place) -> None:
    """However long an extension takes to begin."""
    kind = impatient(kinds.NETWORK, severe=0.2, longest=1.5)
    await place.objects.deploy(kind, network("failed-before"))
    await place.answer(kind, "failed-before", state="Error", error=ERROR)
    requested = await place.objects.deploy(kind, network("failed-before"))
    with pytest.raises(
        ExtensionError, match=r"is not yet picked up by controller; before .*AccessDenied, still"
    ) as raised:
        await place.objects.wait(requested)
    assert raised.value.codes == ()
    await place.objects.delete(kind, requested.name)
    with pytest.raises(ExtensionError, match=rf"Failed to delete .*{FINALIZER}; before .*AccessDenied, still"):
        await place.objects.wait_until_gone(kind, requested.name)


async def test_what_is_reported_in_the_second_of_the_question_before_it_is_no_answer(place: Place) -> None:
    """The extension takes the operation away, and ends."""
    kind = impatient(kinds.NETWORK, longest=0.5)
    requested = await place.objects.deploy(kind, network("same-second"))
    await place.answer(kind, "same-second", at=utc_now() + timedelta(seconds=1))
    await place.objects.wait(requested)
    requested = await place.objects.deploy(kind, network("same-second"))
    meta = {"metadata": {"annotations": {keys.OPERATION: None}}}
    await place.client.patch(kind.resource, Key(NAMESPACE, "same-second"), meta)
    with pytest.raises(ExtensionError, match="last operation is older than the request"):
        await place.objects.wait(requested)
    await place.answer(kind, "same-second", at=utc_now() + timedelta(seconds=2))
    await place.objects.wait(requested)


async def test_what_is_being_deleted_or_gone_is_not_ready(place: Place) -> None:
    kind = impatient(kinds.NETWORK, longest=0.5)
    requested = await place.objects.deploy(kind, network("taken"))
    await place.answer(kind, "taken", at=utc_now() + timedelta(seconds=1))
    await place.client.delete(kind.resource, Key(NAMESPACE, "taken"))
    with pytest.raises(ExtensionError, match="it is being deleted"):
        await place.objects.wait(requested)
    await place.client.patch(kind.resource, Key(NAMESPACE, "taken"), {"metadata": {"finalizers": None}})
    with pytest.raises(ExtensionError, match="it does not exist"):
        await place.objects.wait(requested)


async def test_an_extension_that_reports_nothing_runs_out_of_time(place: Place) -> None:
    kind = impatient(kinds.NETWORK, longest=0.3)
    requested = await place.objects.deploy(kind, network("silent"))
    with pytest.raises(ExtensionError, match=r"Network default/silent to become ready: .*, still after 300ms"):
        await place.objects.wait(requested)


@pytest.mark.parametrize("seed_of_chance", range(4))
async def test_whatever_an_extension_does_first_only_its_answer_to_the_last_question_counts(
    place: Place, seed_of_chance: int
) -> None:
    """It loses questions, answers old ones, fails for a moment, and does its work in the end."""
    kind, name = impatient(kinds.NETWORK, severe=0.3, longest=0.6), f"chance-{seed_of_chance}"
    chance = Random(seed_of_chance)
    moves = [chance.choice(("lose", "answer-old", "fail", "nothing")) for _ in range(4)]

    async def play(move: str) -> None:
        match move:
            case "lose":
                meta = {"metadata": {"annotations": {keys.OPERATION: None}}}
                await place.client.patch(kind.resource, Key(NAMESPACE, name), meta)
            case "answer-old":
                await place.answer(kind, name, at=utc_now() - timedelta(minutes=1))
            case "fail":
                await place.answer(kind, name, state="Error", error=ERROR)
            case "answer":
                await place.answer(kind, name, at=utc_now() + timedelta(seconds=2))

    for move in [*moves, "answer"]:
        requested = await place.objects.deploy(kind, network(name))
        await play(move)
        try:
            found = await place.objects.wait(requested)
        except ExtensionError:
            assert move != "answer"
        else:
            assert move == "answer"
            assert annotations(found)[keys.TIMESTAMP] == requested.timestamp


# --- leaving


async def test_a_deletion_is_confirmed_and_awaited(place: Place) -> None:
    kind, name = impatient(kinds.INFRASTRUCTURE, severe=60), Key(NAMESPACE, "gone")
    await place.objects.deploy(kind, infrastructure("gone"))
    await place.answer(kind, "gone")
    await place.objects.delete(kind, name)
    live = await place.live(kind, "gone")
    assert annotations(live)[keys.CONFIRM_DELETION] == "true"

    async def let_go() -> None:
        await place.client.patch(kind.resource, Key(NAMESPACE, "gone"), {"metadata": {"finalizers": None}})

    await while_waiting(place, place.objects.wait_until_gone(kind, name), (FINALIZER, let_go))
    await place.objects.delete(kind, name)
    await place.objects.wait_until_gone(kind, name)


async def test_a_deletion_that_fails_is_explained(place: Place) -> None:
    kind, name = impatient(kinds.INFRASTRUCTURE), Key(NAMESPACE, "stuck")
    await place.objects.deploy(kind, infrastructure("stuck"))
    await place.answer(kind, "stuck")
    await place.objects.delete(kind, name)
    await place.answer(kind, "stuck", state="Error", error=ERROR, at=utc_now() + timedelta(seconds=2))
    with pytest.raises(
        ExtensionError, match=r"Failed to delete Infrastructure default/stuck: .*AccessDenied"
    ) as raised:
        await place.objects.wait_until_gone(kind, name)
    assert raised.value.codes == ("ERR_INFRA_UNAUTHORIZED",)


async def test_an_extension_lets_go_and_another_goes_on_with_its_state(place: Place) -> None:
    kind, manifest = impatient(kinds.INFRASTRUCTURE), infrastructure("moved")
    await place.objects.deploy(kind, manifest)
    await place.answer(kind, "moved")
    requested = await place.objects.migrate(kind, Key(NAMESPACE, "moved"))
    assert requested is not None
    assert annotations(await place.live(kind, "moved"))[keys.OPERATION] == "migrate"

    async def let_go() -> None:
        await place.client.patch(
            kind.resource, Key(NAMESPACE, "moved"), {"metadata": {"annotations": {keys.OPERATION: None}}}
        )
        await place.report(kind, await place.live(kind, "moved"), of="Migrate")

    await while_waiting(
        place, place.objects.wait_until_migrated(requested), ("has not finished the migration yet", let_go)
    )
    assert await place.objects.migrate(kind, Key(NAMESPACE, "never")) is None

    restored = infrastructure("restored")
    requested = await place.objects.restore(kind, restored, Left({"state": {"network": "n-1"}}))
    live = await place.live(kind, "restored")
    assert (live["status"]["state"], annotations(live)[keys.OPERATION]) == ({"network": "n-1"}, "restore")
    await place.report(kind, live, of="Restore", at=utc_now() + timedelta(seconds=2))
    meta = {"metadata": {"annotations": {keys.OPERATION: None}}}
    await place.client.patch(kind.resource, Key(NAMESPACE, "restored"), meta)
    await place.objects.wait(requested)


async def test_of_a_kind_that_does_not_exist_nothing_is_left(place: Place) -> None:
    kind = impatient(Kind(resource=Resource("none.example.com", "v1", "None", "nones", namespaced=True)))
    name = Key(NAMESPACE, "never")
    assert await place.objects.migrate(kind, name) is None
    await place.objects.delete(kind, name)
    await place.objects.wait_until_gone(kind, name)


async def test_what_is_gone_has_been_let_go(place: Place) -> None:
    requested = Asked(
        impatient(kinds.INFRASTRUCTURE), Key(NAMESPACE, "never"), datetime(2026, 1, 1, tzinfo=UTC).isoformat()
    )
    await place.objects.wait_until_migrated(requested)


async def test_a_control_plane_is_recorded_as_leaving_before_it_is_deleted(place: Place) -> None:
    """So that an attempt after an interrupted one does not create it again."""
    name, resource = Key(NAMESPACE, "leaving"), kinds.CONTROL_PLANE.resource
    made = infrastructure(name.name)
    await place.client.create(resource, {**made, **resource.type_meta} | {"metadata": {**made["metadata"], **HELD}})
    shoot: Object = {"metadata": {"name": name.name, "namespace": "garden-a"}}
    operation = bare_operation(
        technical_id=NAMESPACE,
        namespace_lives=True,
        seed=cluster_of(place.client),
        extensions=place.objects,
        shoot=shoot,
    )
    going = asyncio.create_task(destroy_control_plane(operation))
    await soon(lambda: place.waited_for, "the deletion")
    namespace = await place.client.get(NAMESPACES, NAMESPACE)
    assert annotations(namespace)[keys.SHOOT_LEAVING] == LEAVING_CONTROL_PLANE
    await place.client.patch(resource, name, {"metadata": {"finalizers": None}})
    await going


HELD: Object = {"finalizers": [FINALIZER]}


# --- what is saved of them


async def test_secrets_of_extensions_are_saved_and_what_a_state_refers_to_is_kept(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = {"persist": "true", "managed-by": "secrets-manager", "manager-identity": "extension"}
    meta = {"name": "of-extension", "namespace": NAMESPACE, "labels": labels}
    await place.client.create(SECRETS, {**SECRETS.type_meta, "metadata": meta, "data": {"a": "YQ=="}})
    await place.client.create(kinds.NETWORK.resource, {**kinds.NETWORK.resource.type_meta, **network("saved")})
    references = [{"name": each, "resourceRef": {"kind": "ConfigMap", "name": each}} for each in ("lost", "never")]
    status = {"state": {"a": 1}, "resources": references}
    await place.client.patch(kinds.NETWORK.resource, Key(NAMESPACE, "saved"), {"status": status}, subresource="status")
    entry = {"apiVersion": "v1", "kind": "ConfigMap", "name": "lost", "data": {"data": {"a": "b"}}}
    shoot = {"metadata": {"name": "s", "namespace": "garden-p"}, "status": {"technicalID": NAMESPACE, "uid": "u"}}
    seed = cluster_of(place.client)
    try:
        found = await living(seed, shoot, Saved(({"spec": {"resources": [entry]}},)))
    finally:
        await seed.caches.close()
    assert {"name": "of-extension", "type": "secret", "labels": labels, "data": {"a": "YQ=="}} in found["gardener"]
    assert found["resources"] == [entry]
    reported = capsys.readouterr().out
    assert f"ConfigMap {NAMESPACE}/lost, to which Network {NAMESPACE}/saved refers, does not exist" in reported
    assert f"ConfigMap {NAMESPACE}/never" in reported
