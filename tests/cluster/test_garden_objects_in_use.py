"""What others refer to in a garden is not deleted before the last of them has gone, and then it is at once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from agent.controller_manager.context import Context
from agent.controller_manager.credentials_binding import declare as credentials_binding
from agent.controller_manager.namespaced_cloud_profile import declare as namespaced_cloud_profile
from agent.controller_manager.objects_in_use import declare_cloud_profiles as cloud_profile
from agent.controller_manager.objects_in_use import declare_controller_deployments as controller_deployment
from agent.controller_manager.objects_in_use import (
    declare_controller_registrations,
    declare_seeds,
)
from agent.controller_manager.objects_in_use import declare_exposure_classes as exposure_class
from agent.controller_manager.objects_in_use import declare_secret_bindings as secret_binding
from agent.controller_manager.quota import declare as quota
from gardener.api.garden import (
    CLOUD_PROFILES,
    CONTROLLER_DEPLOYMENTS,
    CONTROLLER_INSTALLATIONS,
    CONTROLLER_REGISTRATIONS,
    CREDENTIALS_BINDINGS,
    EXPOSURE_CLASSES,
    NAMESPACED_CLOUD_PROFILES,
    QUOTAS,
    SECRET_BINDINGS,
    SEEDS,
    SHOOTS,
)
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.garden_objects import garden_object
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.errors import Forbidden
from kube.objects import Object, finalizers
from kube.resources import Resource
from kube.runtime.loop import ControlLoop

pytestmark = pytest.mark.timeout(600)

REFERENCED = "ResourceReferenced: Cannot delete"


def fields(resource: Resource) -> Object:
    """Of a new object."""
    return {name: each for name, each in garden_object(resource).items() if name in {"spec", "helm"}}


def credentials(place: ShootPlace, **more: Any) -> Object:
    reference = {"apiVersion": "v1", "kind": "Secret", "name": place.name, "namespace": place.namespace}
    return {"provider": {"type": place.name}, "credentialsRef": reference, **more}


def secret(place: ShootPlace, **more: Any) -> Object:
    reference = {"name": place.name, "namespace": place.namespace}
    return {"provider": {"type": place.name}, "secretRef": reference, **more}


def make_profile(place: ShootPlace, name: str) -> None:
    place.create(CLOUD_PROFILES, name, spec=place.get(CLOUD_PROFILES, place.name)["spec"])


def make_child(place: ShootPlace, name: str, parent: str = "") -> None:
    reference = {"kind": "CloudProfile", "name": parent or place.name}
    place.create(NAMESPACED_CLOUD_PROFILES, name, spec={"parent": reference})


def make_installation(place: ShootPlace, **references: Object) -> None:
    others = {"registrationRef": {"name": place.name}, "seedRef": {"name": place.name}}
    place.create(CONTROLLER_INSTALLATIONS, place.name, spec=others | references)


def make_registration(place: ShootPlace, name: str, deployment: str) -> None:
    spec = {"resources": [], "deployment": {"deploymentRefs": [{"name": deployment}]}}
    place.create(CONTROLLER_REGISTRATIONS, name, spec=spec)


@dataclass(frozen=True)
class Case:
    declare: Callable[[Context], ControlLoop]
    resource: Resource
    make: Callable[[ShootPlace, str], object]
    use: Callable[[ShootPlace, str], object]
    users: tuple[tuple[Resource, str], ...] = ((SHOOTS, "s"),)
    """By kind and name; `P` stands for the name of the place."""
    event: str = ""
    """Type and text of the Event; `NS` stands for the namespace."""


CASES = [
    Case(
        cloud_profile,
        CLOUD_PROFILES,
        make_profile,
        lambda place, name: place.shoot(cloudProfile={"kind": "CloudProfile", "name": name}),
        event="Normal CloudProfile, because the following Shoots are still referencing it: [NS/s]",
    ),
    Case(
        cloud_profile,
        CLOUD_PROFILES,
        make_profile,
        lambda place, name: make_child(place, "n", name),
        users=((NAMESPACED_CLOUD_PROFILES, "n"),),
        event="Normal CloudProfile, because the following NamespacedCloudProfiles are still referencing it: [NS/n]",
    ),
    Case(
        namespaced_cloud_profile,
        NAMESPACED_CLOUD_PROFILES,
        make_child,
        lambda place, name: place.shoot(cloudProfile={"kind": "NamespacedCloudProfile", "name": name}),
        event="Normal NamespacedCloudProfile, because the following Shoots are still referencing it: [NS/s]",
    ),
    Case(
        exposure_class,
        EXPOSURE_CLASSES,
        lambda place, name: place.create(EXPOSURE_CLASSES, name, handler="h"),
        lambda place, name: place.shoot(exposureClassName=name),
        event="Normal ExposureClass, because it is still associated by the following Shoots: [NS/s]",
    ),
    Case(
        secret_binding,
        SECRET_BINDINGS,
        lambda place, name: place.create(SECRET_BINDINGS, name, **secret(place)),
        lambda place, name: place.shoot(secretBindingName=name),
        event="Warning SecretBinding, because the following Shoots are still referencing it: [NS/s]",
    ),
    Case(
        credentials_binding,
        CREDENTIALS_BINDINGS,
        lambda place, name: place.create(CREDENTIALS_BINDINGS, name, **credentials(place)),
        lambda place, name: place.shoot(secretBindingName=None, credentialsBindingName=name),
        event="Warning CredentialsBinding, because the following Shoots are still referencing it: [NS/s]",
    ),
    Case(
        quota,
        QUOTAS,
        lambda place, name: place.create(QUOTAS, name, **fields(QUOTAS)),
        lambda place, name: (
            place.create(SECRET_BINDINGS, "b", **secret(place, quotas=[{"name": name}])),
            place.create(CREDENTIALS_BINDINGS, "b", **credentials(place, quotas=[{"name": name}])),
        ),
        users=((SECRET_BINDINGS, "b"), (CREDENTIALS_BINDINGS, "b")),
        event="Normal Quota, because the following resources are still referencing it: "
        "SecretBindings - [NS/b], CredentialsBindings - [NS/b]",
    ),
    Case(
        controller_deployment,
        CONTROLLER_DEPLOYMENTS,
        lambda place, name: place.create(CONTROLLER_DEPLOYMENTS, name, **fields(CONTROLLER_DEPLOYMENTS)),
        lambda place, name: make_registration(place, f"{place.name}-using", name),
        users=((CONTROLLER_REGISTRATIONS, "P-using"),),
    ),
    Case(
        declare_controller_registrations,
        CONTROLLER_REGISTRATIONS,
        lambda place, name: place.create(CONTROLLER_REGISTRATIONS, name, spec={"resources": []}),
        lambda place, name: make_installation(place, registrationRef={"name": name}),
        users=((CONTROLLER_INSTALLATIONS, "P"),),
    ),
    Case(
        declare_seeds,
        SEEDS,
        lambda place, name: place.seed(name.removeprefix(place.name)),
        lambda place, name: make_installation(place, seedRef={"name": name}),
        users=((CONTROLLER_INSTALLATIONS, "P"),),
    ),
]


@pytest.fixture
def place(garden: Garden) -> ShootPlace:
    return ShootPlace(garden)


def events(place: ShootPlace, kind: str, name: str) -> list[tuple[str, int]]:
    """Each with its count."""
    selector = f"involvedObject.kind={kind},involvedObject.name={name}"
    found = place.garden.cluster.api.get(f"/api/v1/events?fieldSelector={selector}")["items"]
    return [(f"{each['type']} {each['reason']}: {each['message']}", each["count"]) for each in found]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.resource.kind} of {case.users[0][0].kind}")
async def test_what_is_in_use_goes_with_its_last_user(place: ShootPlace, case: Case) -> None:
    used, free = f"{place.name}-used", f"{place.name}-free"

    def protected(name: str) -> bool:
        return bool(finalizers(place.get(case.resource, name)))

    async with connected(place.garden.cluster) as client, run_garden_controller(case.declare, client):
        for name in (used, free):
            case.make(place, name)
        await soon(lambda: protected(used) and protected(free), "finalizers")
        # A profile can be used when its status is there, and admission has heard of that.
        await soon(lambda: (case.use(place, used), True)[1], "admission of a user", passing=(Forbidden,))
        place.delete(case.resource, used)
        if case.event:
            kind, message = case.event.split(" ", 1)
            text = f"{kind} {REFERENCED} {message.replace('NS', place.namespace)}"
            await soon(lambda: events(place, case.resource.kind, used) == [(text, 1)], f"an Event: {text}")
        # The other one was deleted later.
        place.delete(case.resource, free)
        await soon(lambda: place.find(case.resource, free) is None, "what is not in use to go")
        assert place.find(case.resource, used)
        for resource, name in case.users:
            place.delete(resource, name.replace("P", place.name))
        await soon(lambda: place.find(case.resource, used) is None, "what was in use to go")


async def test_a_list_of_users_is_reported_once(place: ShootPlace) -> None:
    place.create(EXPOSURE_CLASSES, place.name, handler="h")
    text = "Normal ResourceReferenced: Cannot delete ExposureClass, because it is still associated by the following Shoots:"

    def reported() -> list[tuple[str, int]]:
        return events(place, "ExposureClass", place.name)

    both, one = (f"{text} [{' '.join(f'{place.namespace}/{name}' for name in names)}]" for names in ("st", "t"))
    async with connected(place.garden.cluster) as client, run_garden_controller(exposure_class, client):
        await soon(lambda: finalizers(place.get(EXPOSURE_CLASSES, place.name)), "a finalizer")
        for name in ("s", "t"):
            place.shoot(name, exposureClassName=place.name)
        place.delete(EXPOSURE_CLASSES, place.name)
        await soon(lambda: (both, 1) in reported(), "an Event")
        for value in ("a", "b"):
            place.patch(EXPOSURE_CLASSES, place.name, {"metadata": {"annotations": {"x": value}}})
        place.delete(SHOOTS, "s")
        await soon(lambda: (one, 1) in reported(), "another Event")
    assert sorted(reported()) == sorted([(both, 1), (one, 1)])
    place.delete(SHOOTS, "t")


async def test_users_that_no_cache_has_heard_of_yet_hold_as_well(place: ShootPlace) -> None:
    text = "still associated by the following Shoots"
    place.create(EXPOSURE_CLASSES, place.name, handler="h", metadata={"finalizers": ["gardener"]})
    place.shoot(exposureClassName=place.name)
    place.delete(EXPOSURE_CLASSES, place.name)
    async with (
        connected(place.garden.cluster) as client,
        run_garden_controller(exposure_class, client, behind=[SHOOTS]),
    ):
        await soon(lambda: any(text in each for each, _ in events(place, "ExposureClass", place.name)), "an Event")
    place.delete(SHOOTS, "s")
    async with connected(place.garden.cluster) as client, run_garden_controller(exposure_class, client):
        await soon(lambda: place.find(EXPOSURE_CLASSES, place.name) is None, "it to go with its last user")


async def test_who_refers_to_something_else_does_not_hold_any_more(place: ShootPlace) -> None:
    for name in ("one", "two"):
        place.create(CREDENTIALS_BINDINGS, name, **credentials(place))
    place.shoot(secretBindingName=None, credentialsBindingName="one")
    async with connected(place.garden.cluster) as client, run_garden_controller(credentials_binding, client):
        await soon(lambda: finalizers(place.get(CREDENTIALS_BINDINGS, "one")), "a finalizer")
        place.delete(CREDENTIALS_BINDINGS, "one")
        await soon(lambda: events(place, "CredentialsBinding", "one"), "an Event")
        place.patch(SHOOTS, "s", {"spec": {"credentialsBindingName": "two"}})
        await soon(lambda: place.find(CREDENTIALS_BINDINGS, "one") is None, "the former binding to go")


async def test_a_finalizer_that_was_taken_off_is_put_back(place: ShootPlace) -> None:
    async with connected(place.garden.cluster) as client, run_garden_controller(cloud_profile, client):
        for _ in range(2):
            await soon(lambda: finalizers(place.get(CLOUD_PROFILES, place.name)) == ["gardener"], "the finalizer")
            place.patch(CLOUD_PROFILES, place.name, {"metadata": {"finalizers": None}})
        await soon(lambda: finalizers(place.get(CLOUD_PROFILES, place.name)) == ["gardener"], "the finalizer")
