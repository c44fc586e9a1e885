"""Operations on Shoots that can't go on: each is completed once its obstacle is gone, or taken back, or deleted.

A garden with its webhooks, two seeds with the gardenlet's controllers, and the local provider; processes of Shoots are
simulated, see `kit.gardenlet_shoots`. All Shoots have one API server.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from agent.gardenlet.extensions.backup_entry.controller import declare as backup_entries
from agent.gardenlet.shoot.main import controller
from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from gardener import keys
from gardener.api.extensions import CLUSTERS, EXTENSIONS
from gardener.api.garden import CLOUD_PROFILES, EXPOSURE_CLASSES, PROJECTS, SHOOTS
from gardener.garden.shoots import last_operation
from kit.eventually import soon
from kit.garden import CONFIRMED, Garden
from kit.gardenlet_controllers import gardenlet_at_work, gardenlet_config, gardenlet_context, local_fields
from kit.gardenlet_shoots import SHAPE, HoldUp, ShootsPlace, hurry, played_provider
from kit.world import connected
from kube.clock import utc_now
from kube.errors import ApiError, NotFound
from kube.objects import Object, annotations, key, uid
from kube.paths import at
from kube.resources import CONFIG_MAPS, NAMESPACES, SECRETS, Resource
from kube.runtime.client import Client

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("shoot-dead-ends")]

SECONDS = 120.0
_NAMES = (f"end-{number}" for number in count())


@dataclass(slots=True)
class Ends:
    """Two seeds. Attributes: held: pods of the first one."""

    places: Sequence[ShootsPlace]
    held: HoldUp

    @property
    def place(self) -> ShootsPlace:
        return self.places[0]

    @property
    def garden(self) -> Garden:
        return self.place.garden

    def last(self, name: str) -> tuple[str, str]:
        last = last_operation(self.place.find(name) or {})
        return str(last.get("type")), str(last.get("state"))

    async def reaches(self, name: str, kind: str, *states: str) -> None:
        await self._reaches(name, {(kind, each) for each in states})

    async def is_restored(self, name: str) -> None:
        """A reconciliation may follow the restoration at once."""
        await self._reaches(name, {("Restore", "Succeeded"), ("Reconcile", "Succeeded")})

    async def _reaches(self, name: str, wanted: set[tuple[str, str]]) -> None:
        def is_there() -> bool:
            found = self.place.find(name) or {}
            current = at(found, "status", "observedGeneration") == at(found, "metadata", "generation")
            return current and self.last(name) in wanted

        await soon(lambda: asyncio.to_thread(is_there), str(wanted), seconds=SECONDS, state=lambda: self.explain(name))

    async def fails(self, name: str) -> None:
        """An attempt ends with an error, which its successor keeps: it begins at once, so the state is hardly seen."""
        await soon(
            lambda: asyncio.to_thread(lambda: at(self.place.get(name), "status", "lastErrors")),
            "the error of an attempt",
            seconds=SECONDS,
            state=lambda: self.explain(name),
        )

    async def created(self, **fields: Any) -> str:
        name = next(_NAMES)
        await asyncio.to_thread(self.place.shoot, name, **fields)
        await self.reaches(name, "Create", "Succeeded")
        return name

    def explain(self, name: str) -> object:
        return (self.place.find(name) or {}).get("status")

    async def goes(self, name: str) -> None:
        """It is deleted, and nothing of it is left in the seeds."""
        await asyncio.to_thread(self.place.delete, name)

        def is_gone() -> bool:
            return self.place.find(name) is None and not any(map(self.left_in(name), self.places))

        await soon(
            lambda: asyncio.to_thread(is_gone), "the Shoot to go", seconds=SECONDS, state=lambda: self.explain(name)
        )

    def left_in(self, name: str) -> Callable[[ShootsPlace], bool]:
        def is_left(place: ShootsPlace) -> bool:
            paths = [each.path(name=place.technical_id(name)) for each in (NAMESPACES, CLUSTERS)]
            return any(place.cluster.api.raw("GET", path)[0] != 404 for path in paths)

        return is_left

    async def moves(self, name: str, number: int) -> None:
        await asyncio.to_thread(self.place.change, name, {"spec": {"seedName": self.places[number].name}})

    def lose(self, resource: Resource, name: str, namespace: str = "") -> Callable[[], None]:
        """Delete an object whatever protects it, as a restored garden lacks it. Returns a function that restores it."""
        lost = self.garden.get(resource, name, namespace=namespace)
        self.garden.patch(
            resource, name, {"metadata": {**CONFIRMED["metadata"], "finalizers": None}}, namespace=namespace
        )
        with suppress(NotFound):
            self.garden.delete(resource, name, namespace=namespace)
        fields = {field: value for field, value in lost.items() if field not in {"apiVersion", "kind", "status"}}
        meta = {field: value for field, value in fields.pop("metadata").items() if field in {"labels", "annotations"}}

        def restore() -> None:
            self.garden.create(resource, name, namespace=namespace, metadata=meta, **fields)

        return restore


@pytest.fixture(scope="module")
def places(garden: Garden, devcluster_run: RunClusters) -> Iterator[Sequence[ShootsPlace]]:
    with Cluster(shape=SHAPE) as one, Cluster(shape=SHAPE) as other:
        first = ShootsPlace(garden, one)
        yield first, ShootsPlace(garden, other, beside=first)


@pytest.fixture(scope="module")
def shoots(devcluster_run: RunClusters) -> Iterator[Cluster]:
    with Cluster(shape=SHAPE) as cluster:
        yield cluster


@pytest.fixture
async def ends(
    places: Sequence[ShootsPlace], shoots: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Ends]:
    hurry(monkeypatch, shoots)
    async with AsyncExitStack() as stack:
        held = []
        for place in places:
            directory, buckets = tmp_path / place.name, tmp_path / "buckets"
            provider = played_provider([place], directory, token=shoots.token, buckets=buckets)
            held.append(await stack.enter_async_context(provider))
            kubeconfig = place.garden.gardenlet_kubeconfig(place.name)
            to_garden = await stack.enter_async_context(connected(kubeconfig, "gardenlet/garden", client=Client))
            to_seed = await stack.enter_async_context(connected(place.cluster, "gardenlet/seed", client=Client))
            config = gardenlet_config(place.name, **local_fields())
            context = await gardenlet_context(garden=to_garden, seed=to_seed, config=config)
            await stack.enter_async_context(gardenlet_at_work(context, controller.declare, backup_entries))
        yield Ends(places, held[0])


# --- moves


async def test_a_move_that_an_extension_does_not_complete_is_taken_back_in_place(ends: Ends) -> None:
    name = await ends.created()
    seed, technical_id = ends.place.cluster.api, ends.place.technical_id(name)
    before = seed.get(NAMESPACES.path(name=technical_id))
    broken = {"spec": {"providerConfig": {"simulate": {"errorText": "no", "times": 99}}}}
    seed.patch(EXTENSIONS.path(namespace=technical_id, name="local"), broken)
    await ends.moves(name, 1)
    await ends.fails(name)
    with pytest.raises(ApiError, match="cannot be changed because shoot has been rescheduled"):
        ends.place.change(name, {"spec": {"purpose": "testing"}})
    await ends.moves(name, 0)
    await ends.is_restored(name)
    after = seed.get(NAMESPACES.path(name=technical_id))
    assert (uid(after), keys.SHOOT_LEAVING in annotations(after)) == (uid(before), False)
    ends.place.change(name, {"spec": {"purpose": "testing"}})
    await ends.reaches(name, "Reconcile", "Succeeded")
    await ends.goes(name)


async def test_a_repeated_move_that_had_deleted_objects_is_completed_before_it_is_taken_back(ends: Ends) -> None:
    name = await ends.created()
    seed, technical_id = ends.place.cluster.api, ends.place.technical_id(name)
    namespace, extension = NAMESPACES.path(name=technical_id), EXTENSIONS.path(namespace=technical_id, name="local")
    before = seed.patch(namespace, {"metadata": {"annotations": {keys.SHOOT_LEAVING: "objects"}}})
    seed.patch(extension, {"spec": {"providerConfig": {"simulate": {"errorText": "no", "times": 99}}}})
    await ends.moves(name, 1)
    await ends.fails(name)
    assert annotations(seed.get(namespace))[keys.SHOOT_LEAVING] == "objects"
    seed.patch(extension, {"spec": {"providerConfig": None}})
    await ends.moves(name, 0)
    await ends.is_restored(name)
    assert uid(seed.get(namespace)) != uid(before)
    await ends.goes(name)


@pytest.mark.parametrize(("state", "requested"), [("Error", "reconcile"), ("Failed", "retry")])
async def test_a_move_that_changed_nothing_is_taken_back_without_a_restoration(
    ends: Ends, state: str, requested: str
) -> None:
    """As it was left by a gardenlet that reported a move which it then refused."""
    name = await ends.created()
    last = {**last_operation(ends.place.get(name)), "type": "Migrate", "state": state}
    place = ends.place
    place.garden.patch(SHOOTS, name, {"status": {"lastOperation": last}}, namespace=place.namespace, status=True)
    place.change(name, {"metadata": {"annotations": {keys.OPERATION: requested}}})
    await ends.reaches(name, "Reconcile", "Succeeded")
    await ends.goes(name)


async def test_what_is_deleted_while_it_moves_is_moved_before(ends: Ends) -> None:
    name = await ends.created()
    await ends.moves(name, 1)
    await ends.reaches(name, "Migrate", "Processing", "Succeeded")
    await ends.goes(name)


# --- what extensions see


async def test_extensions_see_the_end_of_an_operation_whose_report_was_refused(ends: Ends) -> None:
    """Of a confined Shoot, which is not reconciled again before its maintenance."""
    name = await ends.created(maintenance={"timeWindow": _far(), "confineSpecUpdateRollout": True})
    seed, technical_id = ends.place.cluster.api, ends.place.technical_id(name)
    path = CLUSTERS.path(name=technical_id)
    refuse = _refusal(technical_id)
    for kind, each in refuse.items():
        seed.create(kind.path(), each)

    def shown() -> object:
        return at(seed.get(path), "spec", "shoot", "status", "lastOperation", "state")

    async def is_refused() -> bool:
        with suppress(ApiError):
            seed.patch(f"{path}?dryRun=All", {"spec": seed.get(path)["spec"], "metadata": {"labels": {"a": "b"}}})
            return False
        return True

    await soon(is_refused, "the policy to work", seconds=SECONDS)
    ends.place.change(name, {"metadata": {"annotations": {keys.OPERATION: "reconcile"}}})
    await ends.reaches(name, "Reconcile", "Succeeded")
    assert shown() == "Processing"
    for kind, each in reversed(refuse.items()):
        seed.delete(kind.path(name=key(each).name))
    await soon(lambda: asyncio.to_thread(lambda: shown() == "Succeeded"), "the Cluster object", seconds=60)
    await ends.goes(name)


def _far() -> Object:
    """A window half a day from now."""
    hour = (utc_now().hour + 12) % 24
    return {"begin": f"{hour:02}0000+0000", "end": f"{(hour + 1) % 24:02}0000+0000"}


def _refusal(name: str) -> dict[Resource, Object]:
    rule = {
        "apiGroups": [CLUSTERS.group],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": [CLUSTERS.plural],
    }
    state = "object.spec.shoot.status.lastOperation.state"
    denied = f"object.metadata.name == '{name}' && {state} == 'Succeeded'"
    policy: Object = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": f"!({denied})"}],
    }
    binding: Object = {"policyName": name, "validationActions": ["Deny"]}
    return {
        kind: {**kind.type_meta, "metadata": {"name": name}, "spec": each}
        for kind, each in ((_POLICIES, policy), (_BINDINGS, binding))
    }


_POLICIES, _BINDINGS = (
    Resource("admissionregistration.k8s.io", "v1", kind, plural, namespaced=False)
    for kind, plural in (
        ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    )
)


async def test_what_has_failed_for_good_is_tried_again_when_an_object_is_corrected_that_it_names(ends: Ends) -> None:
    """Credentials, for example, that the provider did not accept."""
    place, named = ends.place, {"apiVersion": "v1", "kind": "Secret", "name": "corrected"}
    ends.garden.create(SECRETS, "corrected", namespace=place.namespace, stringData={"key": "wrong"})
    name = await ends.created(resources=[{"name": "key", "resourceRef": named}])
    last = {**last_operation(place.get(name)), "type": "Reconcile", "state": "Failed"}
    place.garden.patch(SHOOTS, name, {"status": {"lastOperation": last}}, namespace=place.namespace, status=True)
    changes = count()

    def is_tried_again() -> bool:
        """Correct it, perhaps again: the watch begins a moment after the failure."""
        data = {"stringData": {"key": f"right-{next(changes)}"}}
        ends.garden.patch(SECRETS, "corrected", data, namespace=place.namespace)
        return ends.last(name) != ("Reconcile", "Failed")

    await soon(
        lambda: asyncio.to_thread(is_tried_again), "another attempt", seconds=SECONDS, state=lambda: ends.explain(name)
    )
    await ends.reaches(name, "Reconcile", "Succeeded")
    assert keys.OPERATION not in annotations(place.get(name))
    await ends.goes(name)


# --- what it refers to is gone


async def test_what_has_lost_all_that_it_refers_to_is_deleted(ends: Ends) -> None:
    """Awake, and asleep; also its finalizers and confirmations are accepted."""
    place, garden = ends.place, ends.garden
    garden.create(SECRETS, "own", namespace=place.namespace, stringData={"key": "value"})
    garden.create(EXPOSURE_CLASSES, place.project, handler="former")
    awake, asleep = [
        await ends.created(
            exposureClassName=place.project,
            dns={"domain": f"{name}.lost.example.net", "providers": [_PROVIDER]},
            resources=[{"name": "own", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "own"}}],
            **fields,
        )
        for name, fields in (("awake", {}), ("asleep", {"hibernation": {"enabled": True}}))
    ]
    lost = (
        (CONFIG_MAPS, "audit", place.namespace),
        (SECRETS, "own", place.namespace),
        (CLOUD_PROFILES, place.project, ""),
        (EXPOSURE_CLASSES, place.project, ""),
        (PROJECTS, place.project, ""),
    )
    restores = list[Callable[[], None]]()
    try:
        restores += [ends.lose(*each) for each in lost]
        await ends.goes(awake)
        await ends.goes(asleep)
    finally:
        for restore in reversed(restores):
            restore()


_PROVIDER: Object = {"type": "local", "secretName": "own", "primary": True}
