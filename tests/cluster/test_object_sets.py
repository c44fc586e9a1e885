"""A set of objects with an owner: what differs is written, what left the set is removed, nothing else is touched."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from devcluster.cluster import Cluster
from kit.eventually import soon
from kit.mutating_webhook import MutatingWebhook, served
from kit.objects import config_map, deployment, placed, role, service
from kit.world import WRITES, CountingClient, World, connected
from kube.apply.object_sets import ChangeSet, Marks, ObjectSets
from kube.objects import Object, annotations, labels, uid
from kube.resources import CONFIG_MAPS, DEPLOYMENTS, SERVICES, Resource
from kube.runtime.cache import Caches
from kube.runtime.connection import load_kubeconfig
from kube.runtime.discovery import Discovery
from kube.runtime.transport import Transport

PROGRAM = "object-sets"
ROLES = Resource("rbac.authorization.k8s.io", "v1", "Role", "roles", namespaced=True)
KINDS = (CONFIG_MAPS, DEPLOYMENTS, SERVICES, ROLES)
OWNER, DIGEST, COLLECTED = "example.com/owner", "example.com/digest", "example.com/collected"


class Place(World):
    """A namespace with a program that applies sets in it, until it is restarted."""

    def __init__(self, world: World, own: CountingClient) -> None:
        super().__init__(world.client, world.namespace)
        self.own = own
        self.changed: list[str] = []
        self.caches: Caches
        self.sets: ObjectSets

    def start(self, **options: Any) -> None:
        marks = Marks(
            label="example.com/of",
            value=self.namespace,
            owner=OWNER,
            digest=DIGEST,
            field_manager=PROGRAM,
            collected=COLLECTED,
            **options,
        )
        self.caches = Caches(self.own, namespaces=[self.namespace])
        self.sets = ObjectSets(
            client=self.own,
            discovery=Discovery(self.own),
            caches=self.caches,
            marks=marks,
            on_change=self.changed.append,
        )

    async def stop(self) -> None:
        await self.sets.close()
        await self.caches.close()

    async def apply(self, *objects: Object, owner: str = "one", **options: Any) -> ChangeSet:
        return await self.sets.apply([placed(obj, self.namespace) for obj in objects], owner=owner, **options)

    async def is_reported(self, owner: str = "one") -> None:
        """Returns when the owner was called for."""
        await soon(lambda: owner in self.changed, f"{owner} to be called for")
        self.changed.clear()

    async def corrected(self, *objects: Object) -> ChangeSet:
        """Applies them each time that the owner is called for, until something is written."""
        while True:
            await self.is_reported()
            if changes := await self.apply(*objects):
                return changes


@pytest.fixture
async def place(cluster: Cluster, namespace: str) -> AsyncIterator[Place]:
    async with connected(cluster) as client, Transport(load_kubeconfig(cluster.kubeconfig)) as transport:
        place = Place(World(client, namespace), CountingClient(transport, user_agent=f"{PROGRAM}/1"))
        place.start()
        try:
            yield place
        finally:
            await place.stop()


SET = (config_map("a", {"k": "v"}), service("b"), role("c"), deployment("d"))
NAMES = ["ConfigMap", "Deployment", "Role", "Service"]


def kinds_in(texts: list[str]) -> list[str]:
    return sorted(text.partition(" ")[0] for text in texts)


async def test_a_set_is_created_and_a_second_pass_queries_nothing(place: Place, cluster: Cluster) -> None:
    changes = await place.apply(*SET)
    assert (kinds_in(changes.created), changes.is_complete) == (NAMES, True)
    live = await place.get("ConfigMap", "a")
    assert annotations(live)[OWNER] == "one"
    assert labels(live)["example.com/of"] == place.namespace

    before = place.own.requests
    assert not await place.apply(*SET)
    assert place.own.requests == before


async def test_a_program_that_restarts_writes_nothing(place: Place, cluster: Cluster) -> None:
    await place.apply(*SET)
    await place.stop()
    place.start()
    with contextlib.closing(cluster.audit()) as audit:
        changes = await place.apply(*SET)
        assert (bool(changes), changes.is_complete) == (False, True)
        assert not audit.calls(user_agent=PROGRAM, namespace=place.namespace, verbs=WRITES)


async def test_of_a_changed_set_only_what_differs_is_written(place: Place) -> None:
    await place.apply(*SET)
    changes = await place.apply(config_map("a", {"k": "w"}), *SET[1:])
    assert (changes.created, kinds_in(changes.updated), changes.removed) == ([], ["ConfigMap"], [])
    assert (await place.get("ConfigMap", "a"))["data"] == {"k": "w"}


@pytest.mark.parametrize(
    "change",
    [
        {"data": {"k": "drifted"}},
        {"data": {"more": "data"}},
        {"metadata": {"labels": {"app": "theirs"}}},
        {"metadata": {"annotations": {"note": None}}},
        {"metadata": {"labels": {"example.com/of": None}}},
    ],
    ids=str,
)
async def test_drift_is_reported_and_corrected(change: Object, place: Place) -> None:
    wanted = config_map("a", {"k": "v"}, labels={"app": "ours"}, annotations={"note": "ours"})
    await place.apply(wanted)
    before = uid(await place.get("ConfigMap", "a"))
    place.changed.clear()
    await place.patch("ConfigMap", "a", change)
    changes = await place.corrected(wanted)
    assert kinds_in(changes.updated) == ["ConfigMap"]
    live = await place.get("ConfigMap", "a")
    assert (uid(live), live["data"], labels(live)["app"]) == (before, {"k": "v"}, "ours")
    assert (annotations(live)["note"], labels(live)["example.com/of"]) == ("ours", place.namespace)


async def test_what_was_deleted_by_hand_is_made_again(place: Place) -> None:
    await place.apply(*SET)
    place.changed.clear()
    await place.delete("ConfigMap", "a")
    assert kinds_in((await place.corrected(*SET)).created) == ["ConfigMap"]


async def test_what_is_of_others_stays_on_our_objects(place: Place) -> None:
    """Labels and annotations that another client has set, and defaults; ours go with the manifest."""
    await place.apply(config_map("a", {"k": "v"}, labels={"ours": "1"}, annotations={"note": "1"}))
    await place.patch("ConfigMap", "a", {"metadata": {"labels": {"theirs": "1"}, "annotations": {"their": "note"}}})
    await place.apply(config_map("a", {"k": "w"}))
    live = await place.get("ConfigMap", "a")
    assert (labels(live).get("theirs"), annotations(live).get("their")) == ("1", "note")
    assert "ours" not in labels(live)
    assert "note" not in annotations(live)


async def test_what_left_the_set_is_removed(place: Place) -> None:
    await place.apply(*SET)
    changes = await place.apply(*SET[:2])
    assert kinds_in(changes.removed) == ["Deployment", "Role"]
    await soon(lambda: _is_gone(place, *SET[2:]), "both to be gone")
    assert (await place.apply(*SET[:2])).is_complete
    assert await place.find("ConfigMap", "a")


async def _is_gone(place: Place, *objects: Object) -> bool:
    found = [await place.find(obj["kind"], obj["metadata"]["name"]) for obj in objects]
    return not any(found)


async def test_a_program_that_restarts_removes_what_left_the_set_meanwhile(place: Place) -> None:
    await place.apply(*SET)
    await place.stop()
    place.start()
    assert kinds_in((await place.apply(previous=KINDS)).removed) == NAMES
    await soon(lambda: _is_gone(place, *SET), "all to be gone")


async def test_a_kind_that_left_the_set_meanwhile_is_known_by_other_owners(place: Place) -> None:
    await place.apply(*SET)
    await place.stop()
    place.start()
    assert not (await place.apply(SET[0])).removed
    await place.apply(service("other"), owner="two")
    assert kinds_in((await place.apply(SET[0])).removed) == ["Service"]
    assert await place.find("Service", "other")


async def test_an_object_that_has_to_wait_is_pending_until_it_is_gone(place: Place) -> None:
    await place.apply(config_map("a"))
    await place.patch("ConfigMap", "a", {"metadata": {"finalizers": ["example.com/wait"]}})
    await soon(lambda: "one" in place.changed, "the finalizer to be seen")
    await place.apply()
    again = await place.apply()
    assert (kinds_in(again.going), again.removed, again.is_complete) == (["ConfigMap"], [], False)
    assert kinds_in((await place.apply(config_map("a"))).pending) == ["ConfigMap"]
    place.changed.clear()
    await place.patch("ConfigMap", "a", {"metadata": {"finalizers": None}})
    await place.is_reported()
    assert (await place.apply()).is_complete


@pytest.mark.parametrize("notes", [{}, {OWNER: "another"}], ids=["without an owner", "of another owner"])
async def test_a_foreign_object_is_not_touched(notes: dict[str, str], place: Place) -> None:
    before = await place.create(config_map("a", {"k": "theirs"}, labels={"example.com/of": "x"}, annotations=notes))
    changes = await place.apply(*SET)
    (text,) = changes.errors.values()
    assert "so it is not written for" in text
    assert kinds_in(changes.created) == NAMES[1:]
    await place.apply(previous=KINDS)
    assert await place.get("ConfigMap", "a") == before


async def test_an_object_without_an_owner_is_taken_over_if_that_is_requested(place: Place) -> None:
    """It is the same object afterwards; what its manifest lacks goes, save for the metadata of others."""
    before = await place.create(config_map("a", {"k": "old", "more": "data"}, labels={"theirs": "1"}))
    await place.create(config_map("b", annotations={OWNER: "another"}))
    await place.stop()
    place.start(adopts=True)
    changes = await place.apply(config_map("a", {"k": "v"}), config_map("b"))
    assert (kinds_in(changes.updated), kinds_in(list(changes.errors))) == (["ConfigMap"], ["ConfigMap"])
    live = await place.get("ConfigMap", "a")
    assert (uid(live), live["data"], labels(live)["theirs"]) == (uid(before), {"k": "v"}, "1")
    assert kinds_in((await place.apply()).removed) == ["ConfigMap"]


async def test_what_others_remove_once_it_is_not_used_stays_when_it_left_the_set(place: Place) -> None:
    old = config_map("old", labels={COLLECTED: "true"})
    await place.apply(old, SET[1])
    changes = await place.apply(config_map("new", labels={COLLECTED: "true"}))
    assert (kinds_in(changes.created), kinds_in(changes.removed)) == (["ConfigMap"], ["Service"])
    assert (await place.apply()).is_complete
    assert await place.find("ConfigMap", "old")
    assert await place.find("ConfigMap", "new")


async def test_what_others_fill_in_stays_when_an_object_changes(place: Place) -> None:
    """An address, a restart that a user requested, and replicas that the manifest leaves to a scaler."""
    scaled = deployment("d")
    scaled["spec"].pop("replicas", None)
    await place.apply(service("b"), scaled)
    address = (await place.get("Service", "b"))["spec"]["clusterIP"]
    restart = {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "2024-05-01T00:00:00Z"}}}
    await place.patch("Deployment", "d", {"spec": {"replicas": 3, "template": restart}})
    changed = {**scaled, "spec": {**scaled["spec"], "revisionHistoryLimit": 2}}
    updated: list[str] = []

    async def are_updated() -> bool:
        """The Deployment may be another one than the cache has, which is a conflict, until the change is seen."""
        updated.extend((await place.apply(service("b", ports=[{"port": 81}]), changed)).updated)
        return len(updated) == 2

    await soon(are_updated, "both to be updated")
    assert kinds_in(updated) == ["Deployment", "Service"]
    live = (await place.get("Deployment", "d"))["spec"]
    assert (live["replicas"], live["revisionHistoryLimit"]) == (3, 2)
    assert annotations(live["template"]) == restart["metadata"]["annotations"]
    assert (await place.get("Service", "b"))["spec"]["clusterIP"] == address


async def test_replicas_that_an_autoscaler_has_chosen_stay_until_none_are_desired(place: Place) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "d"},
        "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 4},
    }
    await place.apply(deployment("d", replicas=2), scaler)
    await place.patch("Deployment", "d", {"spec": {"replicas": 3}})
    await place.is_reported()
    assert not (await place.apply(deployment("d", replicas=2), scaler)).updated
    await place.apply(deployment("d", replicas=2, revisionHistoryLimit=1), scaler)
    live = (await place.get("Deployment", "d"))["spec"]
    assert (live["replicas"], live["revisionHistoryLimit"]) == (3, 1)
    await place.apply(deployment("d", replicas=0), scaler)
    assert (await place.get("Deployment", "d"))["spec"]["replicas"] == 0
    await place.apply(deployment("d", replicas=2), scaler)
    assert (await place.get("Deployment", "d"))["spec"]["replicas"] == 2


async def test_two_owners_have_sets_of_their_own(place: Place) -> None:
    await place.apply(config_map("a"))
    await place.apply(config_map("b"), owner="two")
    await place.apply()
    await soon(lambda: _is_gone(place, config_map("a")), "the first to be gone")
    assert await place.find("ConfigMap", "b")


async def test_an_object_that_is_given_to_another_owner_at_the_last_moment_is_not_removed(place: Place) -> None:
    """The deletion has the version that was looked at as its precondition; what it finds instead is another's."""
    await place.apply(config_map("a"))
    await place.caches.close()  # so that what follows is not seen
    await place.patch("ConfigMap", "a", {"metadata": {"annotations": {OWNER: "another"}}})
    await place.apply()
    assert annotations(await place.get("ConfigMap", "a"))[OWNER] == "another"


async def test_one_object_that_is_refused_does_not_stop_the_others(place: Place) -> None:
    bad = {"apiVersion": "example.com/v1", "kind": "Unknown", "metadata": {"name": "u"}}
    invalid = config_map("Not-A-Name")
    changes = await place.apply(bad, invalid, *SET)
    assert kinds_in(list(changes.errors)) == ["ConfigMap", "Unknown"]
    assert kinds_in(changes.created) == NAMES


async def test_what_is_desired_is_not_removed_when_its_kind_can_not_be_found(place: Place) -> None:
    await place.apply(*SET)
    odd = {**SET[3], "apiVersion": "apps/v9"}
    changes = await place.apply(*SET[:3], odd)
    assert (changes.removed, kinds_in(list(changes.errors))) == ([], ["Deployment"])


async def test_a_conflict_is_resolved_by_looking_again(place: Place) -> None:
    """The watch is behind: what is known is old."""
    await place.apply(config_map("a", {"k": "v"}))
    await place.caches.close()
    await place.patch("ConfigMap", "a", {"metadata": {"labels": {"theirs": "1"}}})
    changes = await place.apply(config_map("a", {"k": "w"}))
    assert (changes.errors, kinds_in(changes.updated)) == ({}, ["ConfigMap"])
    live = await place.get("ConfigMap", "a")
    assert (live["data"], labels(live)["theirs"]) == ({"k": "w"}, "1")


# --- mutating webhooks

MUTATED = ("Deployment", "ConfigMap")


class Mutations:
    """Objects, a webhook that mutates them, and its answers."""

    def __init__(self, place: Place, webhook: MutatingWebhook) -> None:
        self.place, self.webhook = place, webhook
        self.wanted = [deployment("a", labels={"app": "ours"}), config_map("a", {"k": "v"}, labels={"app": "ours"})]

    def answer(self, value: str) -> None:
        note = {"op": "add", "path": "/metadata/labels/mutated", "value": value}
        argument = {"op": "add", "path": "/spec/template/spec/containers/0/args", "value": [f"--mutated={value}"]}
        added = {"op": "add", "path": "/data/mutated", "value": value}
        self.webhook.patches = {"Deployment": [note, argument], "ConfigMap": [note, added]}

    async def apply(self, *, resends: bool) -> list[str]:
        """Kinds of the objects that have changed."""
        changes = await self.place.apply(*self.wanted, resends=lambda _: resends)
        assert changes.is_complete, changes.errors
        return kinds_in([*changes.created, *changes.updated])

    async def seen(self) -> list[Any]:
        """Mutations of both objects."""
        deployed, config = [await self.place.get(kind, "a") for kind in MUTATED]
        (container,) = deployed["spec"]["template"]["spec"]["containers"]
        found = [labels(deployed).get("mutated"), container.get("args"), labels(config).get("mutated"), config["data"]]
        assert (labels(deployed)["app"], labels(config)["app"]) == ("ours", "ours")
        return found


def mutations(value: str) -> list[Any]:
    return [value, [f"--mutated={value}"], value, {"k": "v", "mutated": value}]


NOT_MUTATED = [None, None, None, {"k": "v"}]


async def test_what_webhooks_answer_now_is_set_when_objects_are_sent_again(place: Place) -> None:
    """A webhook is registered after the objects exist, changes its answer, and is removed while the program restarts."""
    async with served(place) as webhook:
        objects = Mutations(place, webhook)
        await objects.apply(resends=True)
        assert await objects.seen() == NOT_MUTATED

        objects.answer("one")
        await webhook.register()
        assert await objects.apply(resends=False) == []
        assert await objects.seen() == NOT_MUTATED
        assert await objects.apply(resends=True) == ["ConfigMap", "Deployment"]
        assert await objects.seen() == mutations("one")

        calls = webhook.calls
        assert await objects.apply(resends=True) == [], "the API server has stored nothing"
        assert webhook.calls >= calls + len(MUTATED)

        objects.wanted.append(config_map("created-later", {"k": "v"}, labels={"app": "ours"}))
        assert await objects.apply(resends=False) == ["ConfigMap"]
        assert (await place.get("ConfigMap", "created-later"))["data"] == {"k": "v", "mutated": "one"}

        objects.answer("two")
        assert await objects.apply(resends=True) == ["ConfigMap", "ConfigMap", "Deployment"]
        assert await objects.seen() == mutations("two")

        await place.stop()
        await webhook.remove()
        place.start()
        assert await objects.apply(resends=False) == []
        assert await objects.seen() == mutations("two")
        assert await objects.apply(resends=True) == ["ConfigMap", "ConfigMap", "Deployment"]
        assert await objects.seen() == NOT_MUTATED
        later = await place.get("ConfigMap", "created-later")
        assert (later["data"], labels(later).get("mutated")) == ({"k": "v"}, None)
