"""Seeds get the ControllerInstallations that they need."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest

from agent.controller_manager.controller_registration.installations import controller as installations
from agent.controller_manager.controller_registration.installations.desired import hash_of
from agent.controller_manager.seed import secrets
from gardener.api.garden import (
    BACKUP_BUCKETS,
    BACKUP_ENTRIES,
    CONTROLLER_DEPLOYMENTS,
    CONTROLLER_INSTALLATIONS,
    CONTROLLER_REGISTRATIONS,
    SEEDS,
    SHOOTS,
)
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.objects import Object, labels, metadata
from kube.paths import at
from kube.runtime.client import Client, Selection

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
async def client(garden: Garden) -> AsyncIterator[Client]:
    """The controller works in its garden, and so does the one that prepares the namespaces of Seeds."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(connected(garden.cluster))
        for each in (secrets, installations):
            await stack.enter_async_context(run_garden_controller(each.declare, client))
        yield client


class Watched:
    """What Seeds of a place have; registrations differ by what follows the name of the place."""

    def __init__(self, garden: Garden, client: Client) -> None:
        self.client = client
        self.place = ShootPlace(garden)

    def register(self, suffix: str, *, deployment: Object | None = None, **resource: object) -> None:
        provided = [{"type": f"{self.place.name}{suffix}", **resource}] if resource else []
        self.place.create(
            CONTROLLER_REGISTRATIONS,
            f"{self.place.name}{suffix}",
            spec={"resources": provided, **({"deployment": deployment} if deployment else {})},
        )

    async def of(self, seed: str) -> dict[str, Object]:
        """Installations by registration."""
        selection = Selection(field_selector=f"spec.seedRef.name={seed}")
        found = await self.client.list(CONTROLLER_INSTALLATIONS, selection)
        return {
            at(each, "spec", "registrationRef", "name").removeprefix(self.place.name): each
            for each in found
            if at(each, "spec", "registrationRef", "name").startswith(self.place.name)
        }

    async def has(self, seed: str, *suffixes: str) -> dict[str, Object]:
        async def found() -> bool:
            assert set(await self.of(seed)) == set(suffixes)
            return True

        await soon(found, f"the installations {suffixes}")
        return await self.of(seed)

    def always(self) -> Object:
        """For Seeds with a label."""
        return {"policy": "Always", "seedSelector": {"matchLabels": {"test": self.place.name}}}

    def label(self, seed: str, value: str | None) -> None:
        self.place.patch(SEEDS, seed, {"metadata": {"labels": {"test": value}}})


@pytest.fixture
def watched(garden: Garden, client: Client) -> Iterator[Watched]:
    watched = Watched(garden, client)
    yield watched
    # Else the Shoots of all other tests in this garden would have its label.
    if watched.place.find(CONTROLLER_REGISTRATIONS, name := f"{watched.place.name}-all"):
        watched.place.delete(CONTROLLER_REGISTRATIONS, name)


async def test_a_seed_has_what_its_provider_and_its_labels_call_for(watched: Watched) -> None:
    watched.register("-always", deployment=watched.always())
    watched.register("-other", kind="Extension")
    seed = watched.place.seed()
    found = (await watched.has(seed, ""))[""]
    assert set(labels(found)) == {"seed-spec-hash", "registration-spec-hash"}
    assert metadata(found)["name"].rpartition("-")[0] == watched.place.name
    versions = found["spec"]

    watched.label(seed, watched.place.name)
    await watched.has(seed, "", "-always")
    watched.label(seed, None)
    await watched.has(seed, "")

    # The Seed has changed since, but not its spec.
    assert (await watched.of(seed))[""]["spec"] == versions
    watched.place.patch(SEEDS, seed, {"spec": {"provider": {"zones": ["a"]}}})

    async def follows() -> bool:
        present = (await watched.of(seed))[""]
        # A list, which the hash leaves out.
        assert at(present, "spec", "seedRef", "resourceVersion") != versions["seedRef"]["resourceVersion"]
        assert labels(present) == labels(found)
        assert at(present, "spec", "registrationRef") == versions["registrationRef"]
        return True

    await soon(follows, "the new version of the Seed")


async def test_an_installation_that_the_original_has_left_is_not_written(watched: Watched) -> None:
    """Its hashes are right, and its versions are those of the last pass but for the Seed's, which has heartbeats."""
    name = f"{watched.place.name}-left"
    watched.register("-left", deployment=watched.always())
    registration = watched.place.get(CONTROLLER_REGISTRATIONS, name)
    seed = watched.place.seed()
    hashes = {
        "seed-spec-hash": hash_of(watched.place.get(SEEDS, seed)["spec"]),
        "registration-spec-hash": hash_of(registration["spec"]),
    }
    references = {
        "seedRef": {"name": seed, "resourceVersion": "1"},
        "registrationRef": {"name": name, "resourceVersion": metadata(registration)["resourceVersion"]},
    }
    watched.place.create(CONTROLLER_INSTALLATIONS, f"{name}-qvf5f", metadata={"labels": hashes}, spec=references)
    left = (await watched.of(seed))["-left"]
    watched.register("-later", deployment=watched.always())
    watched.label(seed, watched.place.name)
    found = await watched.has(seed, "", "-left", "-later")
    assert metadata(found["-left"]) == metadata(left)


async def test_what_is_changed_by_hand_is_corrected(watched: Watched) -> None:
    seed = watched.place.seed()
    found = (await watched.has(seed, ""))[""]
    name = metadata(found)["name"]
    await watched.client.patch(CONTROLLER_INSTALLATIONS, name, {"metadata": {"labels": {"seed-spec-hash": "x"}}})

    async def is_right() -> bool:
        return labels((await watched.of(seed))[""]) == labels(found)

    await soon(is_right, "the label")
    await watched.client.delete(CONTROLLER_INSTALLATIONS, name)
    assert metadata((await watched.has(seed, ""))[""])["name"] == name


async def test_shoots_and_backups_bring_extensions_as_long_as_they_are_there(watched: Watched) -> None:
    place = watched.place
    watched.register("-ext", kind="Extension")
    watched.register("-all", kind="Extension", globallyEnabled=True)
    watched.register("-some", deployment={"policy": "AlwaysExceptNoShoots"})
    backup = [{"kind": kind, "type": f"{place.name}-backup"} for kind in ("BackupBucket", "BackupEntry")]
    place.create(CONTROLLER_REGISTRATIONS, f"{place.name}-backup", spec={"resources": backup})
    seed, other = place.seed(), place.seed("-b")
    extensions = [{"type": f"{place.name}-ext"}]
    for name in ("a", "b"):
        place.shoot(name, seedName=seed, extensions=extensions)
    await watched.has(seed, "", "-ext", "-all", "-some")
    place.delete(SHOOTS, "a")
    place.patch(SHOOTS, "b", {"spec": {"extensions": [{"type": f"{place.name}-all", "disabled": True}]}})
    await watched.has(seed, "", "-some")
    place.delete(SHOOTS, "b")
    await watched.has(seed, "")

    spec = {"provider": {"type": f"{place.name}-backup", "region": "r"}, "seedName": other}
    place.create(
        BACKUP_BUCKETS, place.name, spec=spec | {"secretRef": {"name": place.name, "namespace": place.namespace}}
    )
    await watched.has(other, "", "-backup")
    assert set(await watched.of(seed)) == {""}
    place.create(BACKUP_ENTRIES, "e", spec={"bucketName": place.name, "seedName": seed})
    await watched.has(seed, "", "-backup")
    place.delete(BACKUP_ENTRIES, "e")
    await watched.has(seed, "")


async def test_a_registration_that_lacks_its_deployment_stops_no_other(watched: Watched) -> None:
    deployment = {**watched.always(), "deploymentRefs": [{"name": f"{watched.place.name}-a"}]}
    watched.place.create(CONTROLLER_DEPLOYMENTS, f"{watched.place.name}-a", helm={"rawChart": "YQ=="})
    watched.register("-a", deployment=deployment)
    watched.register("-b", deployment=watched.always())
    watched.place.delete(CONTROLLER_DEPLOYMENTS, f"{watched.place.name}-a")
    seed = watched.place.seed()
    watched.label(seed, watched.place.name)
    await watched.has(seed, "", "-b")
    watched.place.create(CONTROLLER_DEPLOYMENTS, f"{watched.place.name}-a", helm={"rawChart": "YQ=="})
    found = await watched.has(seed, "", "-a", "-b")
    assert "deployment-hash" in labels(found["-a"])


async def test_a_type_that_none_provides_stops_no_other_extension(watched: Watched) -> None:
    place = watched.place
    for suffix in ("-gone", "-a", "-b"):
        watched.register(suffix, kind="Extension")
    seed = place.seed()
    place.shoot("s", seedName=seed, extensions=[{"type": f"{place.name}-gone"}])
    place.shoot("other", seedName=seed, extensions=[{"type": f"{place.name}-a"}])
    await watched.has(seed, "", "-gone", "-a")
    # Its registration provides something else now. It may still serve what it provided before.
    place.patch(CONTROLLER_REGISTRATIONS, f"{place.name}-gone", {"spec": {"resources": []}})
    place.patch(SHOOTS, "other", {"spec": {"extensions": [{"type": f"{place.name}-b"}]}})
    await watched.has(seed, "", "-gone", "-b")


async def test_what_has_objects_in_the_seed_stays(watched: Watched) -> None:
    watched.register("-a", deployment=watched.always())
    seed = watched.place.seed()
    watched.label(seed, watched.place.name)
    name = metadata((await watched.has(seed, "", "-a"))["-a"])["name"]

    def required(status: str) -> Object:
        time = "2026-01-01T00:00:00Z"
        reported = {"reason": "R", "message": "m", "lastTransitionTime": time, "lastUpdateTime": time}
        return {"status": {"conditions": [{"type": "Required", "status": status, **reported}]}}

    watched.place.patch(CONTROLLER_INSTALLATIONS, name, required("True"), status=True)
    selectorless = {"spec": {"deployment": {"policy": "OnDemand", "seedSelector": None}}}
    watched.place.patch(CONTROLLER_REGISTRATIONS, f"{watched.place.name}-a", selectorless)

    async def follows() -> bool:
        found = (await watched.of(seed))["-a"]
        registration = watched.place.get(CONTROLLER_REGISTRATIONS, f"{watched.place.name}-a")
        present = at(found, "spec", "registrationRef", "resourceVersion")
        return bool(present == metadata(registration)["resourceVersion"])

    await soon(follows, "the new version of the registration")
    watched.place.patch(CONTROLLER_INSTALLATIONS, name, required("False"), status=True)
    await watched.has(seed, "")


async def test_what_was_made_of_a_registration_goes_also_after_it(watched: Watched) -> None:
    """Its finalizer is taken off while there is no installation, though one may be on its way."""
    place, name = watched.place, f"{watched.place.name}-a"
    watched.register("-a", deployment=watched.always())
    seed = place.seed()
    watched.label(seed, place.name)
    await watched.has(seed, "", "-a")
    by_hand = {"registrationRef": {"name": f"{place.name}-b"}, "seedRef": {"name": seed}}
    place.create(CONTROLLER_INSTALLATIONS, f"{place.name}-b", spec=by_hand)
    place.delete(CONTROLLER_REGISTRATIONS, name)
    await watched.has(seed, "", "-b")


async def test_without_a_seed_nothing_is_left(watched: Watched) -> None:
    watched.register("-a", deployment=watched.always())
    seed = watched.place.seed()
    watched.label(seed, watched.place.name)
    await watched.has(seed, "", "-a")
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    watched.place.patch(SEEDS, seed, held)
    watched.place.delete(SEEDS, seed)
    await watched.has(seed)
    watched.place.patch(SEEDS, seed, {"metadata": {"finalizers": None}})
