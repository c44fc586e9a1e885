"""Credentials and Quotas have labels of the bindings that refer to them, and credentials stay while there are any."""

from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from agent.controller_manager.credentials import declare_secrets, declare_workload_identities
from agent.controller_manager.quota import declare as declare_quotas
from gardener.api.garden import CREDENTIALS_BINDINGS, QUOTAS, SECRET_BINDINGS, WORKLOAD_IDENTITIES
from gardener.keys import CREDENTIALS_BINDING_REFERENCE, CREDENTIALS_FINALIZER, PROVIDER_LABEL_PREFIX
from gardener.keys import SECRET_BINDING_REFERENCE as SECRET_BINDING
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.garden_objects import garden_object
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.objects import Object, finalizers, labels, metadata
from kube.resources import SECRETS, Resource
from kube.runtime.client import Client
from kube.runtime.loop import ControlLoop

pytestmark = pytest.mark.timeout(600)

CREDENTIALS_BINDING = CREDENTIALS_BINDING_REFERENCE


class Place(ShootPlace):
    """With credentials and bindings."""

    def __init__(self, garden: Garden) -> None:
        super().__init__(garden)
        self.secret("cred")

    def secret(self, name: str, **meta: Any) -> None:
        self.create(SECRETS, name, stringData={"key": "value"}, metadata=meta)

    def secret_binding(self, name: str, types: str = "local", quotas: tuple[str, ...] = ()) -> None:
        reference = {"name": "cred", "namespace": self.namespace}
        self.create(SECRET_BINDINGS, name, provider={"type": types}, secretRef=reference, quotas=_named(quotas))

    def credentials_binding(
        self, name: str, types: str = "local", of: Resource = SECRETS, quotas: tuple[str, ...] = ()
    ) -> None:
        reference = {**of.type_meta, "name": "cred", "namespace": self.namespace}
        fields = {"credentialsRef": reference, "quotas": _named(quotas)}
        self.create(CREDENTIALS_BINDINGS, name, provider={"type": types}, **fields)

    def quota(self, name: str) -> None:
        self.create(QUOTAS, name, spec=garden_object(QUOTAS)["spec"])

    def is_bound(self, *expected: str, name: str = "cred", resource: Resource = SECRETS) -> bool:
        """Whether it has these labels of bindings and no others, and the finalizer if there are any."""
        found = self.get(resource, name)
        assert set(labels(found)) == set(expected), found
        assert (CREDENTIALS_FINALIZER in finalizers(found)) == bool(expected), found
        return True


def _named(names: tuple[str, ...]) -> list[Object]:
    return [{"name": name} for name in names]


def provider(*types: str) -> tuple[str, ...]:
    return tuple(f"{PROVIDER_LABEL_PREFIX}{each}" for each in types)


@pytest.fixture
def place(garden: Garden) -> Place:
    return Place(garden)


def at_work(client: Client) -> AbstractAsyncContextManager[ControlLoop]:
    return run_garden_controller(declare_secrets, client)


async def test_a_secret_is_labelled_as_long_as_bindings_of_any_kind_refer_to_it(place: Place) -> None:
    async with connected(place.garden.cluster) as client, at_work(client):
        place.secret_binding("a", "local,other")
        await soon(lambda: place.is_bound(SECRET_BINDING, *provider("local", "other")))
        place.credentials_binding("b")
        await soon(lambda: place.is_bound(SECRET_BINDING, CREDENTIALS_BINDING, *provider("local", "other")))
        place.delete(SECRET_BINDINGS, "a")
        await soon(lambda: place.is_bound(CREDENTIALS_BINDING, *provider("local")))
        place.delete(CREDENTIALS_BINDINGS, "b")
        await soon(place.is_bound)


async def test_the_last_bindings_may_go_at_once(place: Place) -> None:
    places = [("a", SECRET_BINDINGS), ("b", SECRET_BINDINGS), ("a", CREDENTIALS_BINDINGS), ("b", CREDENTIALS_BINDINGS)]
    async with connected(place.garden.cluster) as client, at_work(client):
        for name in ("a", "b"):
            place.secret_binding(name)
            place.credentials_binding(name)
        await soon(lambda: place.is_bound(SECRET_BINDING, CREDENTIALS_BINDING, *provider("local")))
        for name, resource in places:
            place.delete(resource, name)
        await soon(place.is_bound)


async def test_bindings_that_went_while_no_process_watched_take_their_labels_along(place: Place) -> None:
    place.secret_binding("a")
    finalizer = "gardener.cloud/gardener"
    place.secret("of-others", finalizers=[finalizer], labels={provider("local")[0]: "true"})
    async with connected(place.garden.cluster) as client:
        async with at_work(client):
            await soon(lambda: place.is_bound(SECRET_BINDING, *provider("local")))
        place.delete(SECRET_BINDINGS, "a")
        async with at_work(client):
            await soon(place.is_bound)
    others = place.get(SECRETS, "of-others")
    assert (finalizers(others), set(labels(others))) == ([finalizer], {*provider("local")})
    place.patch(SECRETS, "of-others", {"metadata": {"finalizers": None}})


async def test_a_secret_that_comes_late_or_is_changed_by_hand_gets_its_labels(place: Place) -> None:
    expected = (CREDENTIALS_BINDING, *provider("local"))
    place.credentials_binding("b")
    async with connected(place.garden.cluster) as client, at_work(client):
        await soon(lambda: place.is_bound(*expected))
        changed = {CREDENTIALS_BINDING: "no", expected[1]: None, provider("x")[0]: "true"}
        place.patch(SECRETS, "cred", {"metadata": {"labels": changed}})
        await soon(lambda: place.is_bound(*expected) and labels(place.get(SECRETS, "cred"))[expected[0]] == "true")
        # Who takes the finalizer off wants the Secret to go.
        place.patch(SECRETS, "cred", {"metadata": {"finalizers": None}})
        place.delete(SECRETS, "cred")
        await soon(lambda: place.find(SECRETS, "cred") is None, "the Secret to go")
        place.secret("cred")
        await soon(lambda: place.is_bound(*expected))
        place.delete(SECRETS, "cred")
        assert metadata(place.get(SECRETS, "cred"))["deletionTimestamp"]
        place.delete(CREDENTIALS_BINDINGS, "b")
        await soon(lambda: place.find(SECRETS, "cred") is None, "the Secret to go with its last binding")


async def test_a_workload_identity_is_bound_as_a_secret_is(place: Place) -> None:
    place.create(WORKLOAD_IDENTITIES, "cred", spec={"audiences": ["a"], "targetSystem": {"type": "local"}})
    place.credentials_binding("b", of=WORKLOAD_IDENTITIES)
    expected = (CREDENTIALS_BINDING, *provider("local"))
    async with (
        connected(place.garden.cluster) as client,
        run_garden_controller(declare_workload_identities, client),
    ):
        await soon(lambda: place.is_bound(*expected, resource=WORKLOAD_IDENTITIES))
        place.delete(CREDENTIALS_BINDINGS, "b")
        await soon(lambda: place.is_bound(resource=WORKLOAD_IDENTITIES))
    assert place.is_bound()


async def test_a_quota_has_labels_of_the_bindings_that_refer_to_it(place: Place) -> None:
    def labelled(name: str, *expected: str) -> bool:
        return set(labels(place.get(QUOTAS, name))) == set(expected)

    place.quota("q")
    place.secret_binding("a", quotas=("q",))
    async with connected(place.garden.cluster) as client, run_garden_controller(declare_quotas, client):
        await soon(lambda: labelled("q", SECRET_BINDING))
        place.credentials_binding("b", quotas=("q",))
        await soon(lambda: labelled("q", SECRET_BINDING, CREDENTIALS_BINDING))
        place.delete(QUOTAS, "q")
        place.delete(SECRET_BINDINGS, "a")
        await soon(lambda: labelled("q", CREDENTIALS_BINDING))
        place.delete(CREDENTIALS_BINDINGS, "b")
        await soon(lambda: place.find(QUOTAS, "q") is None, "the Quota to go")
