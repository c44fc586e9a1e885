"""What Shoots refer to is not deleted before they are."""

import pytest

from agent.controller_manager.shoot.reference import declare
from gardener import keys
from gardener.api.garden import SHOOTS
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.objects import Object, finalizers
from kube.resources import CONFIG_MAPS, SECRETS, Resource

pytestmark = pytest.mark.timeout(600)

F = keys.REFERENCE_PROTECTION


@pytest.fixture
def place(garden: Garden) -> ShootPlace:
    place = ShootPlace(garden)
    for name in ("a", "b"):
        place.create(SECRETS, name, stringData={"k": "v"})
    policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: None\n"
    place.create(CONFIG_MAPS, "audit", data={"policy": policy})
    return place


def refers_to(*secrets: str) -> list[Object]:
    return [
        {"name": f"r-{name}", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": name}} for name in secrets
    ]


def protected(place: ShootPlace, resource: Resource, *names: str) -> list[str]:
    found = [(name, place.find(resource, name)) for name in names]
    return [name for name, obj in found if obj is not None and F in finalizers(obj)]


async def test_secrets_and_config_maps_are_protected_while_a_shoot_names_them(place: ShootPlace) -> None:
    kubernetes = {
        "version": "1.30.1",
        "kubeAPIServer": {"auditConfig": {"auditPolicy": {"configMapRef": {"name": "audit"}}}},
    }
    place.shoot("one", kubernetes=kubernetes, resources=refers_to("a"))
    place.shoot("two", resources=refers_to("a", "b"))
    place.patch(SECRETS, place.name, {"metadata": {"finalizers": [F]}})
    async with connected(place.garden.cluster) as client, run_garden_controller(declare, client, place.namespace):
        await soon(lambda: protected(place, SECRETS, "a", "b") == ["a", "b"], "the Secrets to be protected")
        await soon(lambda: protected(place, CONFIG_MAPS, "audit"), "the ConfigMap to be protected")
        await soon(lambda: protected(place, SHOOTS, "one", "two") == ["one", "two"], "the Shoots to wait for it")
        await soon(lambda: not protected(place, SECRETS, place.name), "what no Shoot refers to to be released")
        place.patch(SECRETS, "a", {"metadata": {"finalizers": None}})
        await soon(lambda: protected(place, SECRETS, "a"), "the finalizer to be put back")
        place.delete(SECRETS, "b")
        place.patch(SHOOTS, "two", {"spec": {"resources": refers_to("a")}})
        await soon(lambda: place.find(SECRETS, "b") is None, "the Secret to go")
        place.patch(SHOOTS, "two", {"spec": {"resources": None}})
        await soon(lambda: not protected(place, SHOOTS, "two"), "the other Shoot to be released")
        assert protected(place, SECRETS, "a")
        place.delete(SHOOTS, "one")
        await soon(lambda: place.find(SHOOTS, "one") is None, "the Shoot to go")
        await soon(lambda: not protected(place, SECRETS, "a"), "the Secret to be released")
        await soon(lambda: not protected(place, CONFIG_MAPS, "audit"), "the ConfigMap to be released")


async def test_a_shoot_holds_what_it_needs_until_its_cluster_is_gone(place: ShootPlace) -> None:
    place.shoot(resources=refers_to("a"))
    async with connected(place.garden.cluster) as client, run_garden_controller(declare, client, place.namespace):
        await soon(lambda: protected(place, SHOOTS, "s"), "the Shoot to be protected")
        place.patch(SHOOTS, "s", {"metadata": {"finalizers": ["gardener", F]}})
        place.delete(SHOOTS, "s")
        place.patch(SHOOTS, "s", {"metadata": {"labels": {"seen": "yes"}}})
        place.delete(SECRETS, "a")
        assert protected(place, SECRETS, "a")
        place.patch(SHOOTS, "s", {"metadata": {"finalizers": [F]}})
        await soon(lambda: place.find(SHOOTS, "s") is None, "the Shoot to go")
        await soon(lambda: place.find(SECRETS, "a") is None, "the Secret to go")


async def test_what_is_missing_is_protected_as_soon_as_it_is_there(place: ShootPlace) -> None:
    place.shoot(resources=refers_to("a", "b"))
    place.delete(SECRETS, "a")
    place.patch(SECRETS, "b", {"metadata": {"labels": {keys.ROLE: "x"}}})
    async with connected(place.garden.cluster) as client, run_garden_controller(declare, client, place.namespace):
        place.create(SECRETS, "a", stringData={"k": "v"})
        await soon(lambda: protected(place, SECRETS, "a"), "the Secret to be protected")
        await soon(lambda: protected(place, SHOOTS, "s"), "the Shoot to wait for it")
        assert not protected(place, SECRETS, "b"), "it is one of Gardener's own"
