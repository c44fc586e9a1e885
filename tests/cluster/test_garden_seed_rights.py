"""A gardenlet may do what its flows need of what belongs to its Seed; a foreign one reads and writes nothing of it."""

import base64
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from config.webhooks.schema import SeedAuthorizer
from gardener.api import garden as resources
from gardener.garden.seeds import LEASE_NAMESPACE, bootstrap_token_id, namespace_of
from gardener.keys import SEED_LABEL_PREFIX, SEED_USER_PREFIX, SEEDS_GROUP
from kit.controllers import cluster_of
from kit.eventually import eventually, soon
from kit.garden import Garden
from kit.garden_objects import garden_object
from kit.garden_shoots import ShootPlace
from kit.seed_rights import TwoSeeds, two_seeds
from kit.world import connected
from kube import resources as kubernetes
from kube.errors import ApiError, Forbidden, NotFound
from kube.objects import Key, Object, metadata, uid
from kube.resources import Resource
from webhooks.authorizers.seed.webhook import authorizer
from webhooks.state import SharedListers

pytestmark = pytest.mark.timeout(600)

READ = ("get", "list", "watch")
CHANGE = ("update", "patch")


@pytest.fixture(scope="module")
def seeds(garden: Garden) -> Iterator[TwoSeeds]:
    two = two_seeds(garden)
    yield two
    two.place.remove()


def backup_of(seeds: TwoSeeds) -> str:
    status = seeds.place.get(resources.SHOOTS, "s")["status"]
    return f"{status['technicalID']}--{status['uid']}"


def test_what_follows_from_a_shoot_is_there_for_its_gardenlet_alone(seeds: TwoSeeds) -> None:
    """Before it exists, and after it went: the answer is that it does not exist."""
    derived = [
        *((kubernetes.SECRETS, f"s.{each}") for each in ("ca-cluster", "ssh-keypair", "ssh-keypair.old")),
        *((kubernetes.SECRETS, f"s.{each}") for each in ("monitoring", "kubeconfig")),
        (kubernetes.CONFIG_MAPS, "s.ca-cluster"),
        (resources.INTERNAL_SECRETS, "s.ca-client"),
        (resources.SHOOT_STATES, "s"),
    ]
    for resource, name in derived:
        for verb in ("get", "create", "update", "patch", "delete"):
            assert seeds.may(seeds.own, verb, resource, name), (verb, resource.plural, name)
            assert not seeds.may(seeds.foreign, verb, resource, name), (verb, resource.plural, name)
    backup = backup_of(seeds)
    for verb in ("get", "create", "update", "patch"):
        assert seeds.may(seeds.own, verb, resources.BACKUP_ENTRIES, backup), verb
        assert not seeds.may(seeds.foreign, verb, resources.BACKUP_ENTRIES, backup), verb
    assert not seeds.may(seeds.own, "delete", resources.BACKUP_ENTRIES, backup)
    assert seeds.may(seeds.own, "delete", resources.BACKUP_ENTRIES, f"source-{backup}")
    own, foreign = seeds.garden.as_gardenlet(seeds.own), seeds.garden.as_gardenlet(seeds.foreign)
    for resource, name in [*derived, (resources.BACKUP_ENTRIES, backup)]:
        with pytest.raises(NotFound):
            own.get(resource, name, namespace=seeds.place.namespace)
        with pytest.raises(Forbidden):
            foreign.get(resource, name, namespace=seeds.place.namespace)


def test_what_a_shoot_uses_is_read_by_its_gardenlet_alone(seeds: TwoSeeds) -> None:
    place = seeds.place
    for resource, name in ((kubernetes.SECRETS, "named"),):
        assert seeds.may(seeds.own, "get", resource, name)
        assert seeds.may(seeds.own, "patch", resource, name)
        assert not seeds.may(seeds.own, "delete", resource, name)
        for verb in (*READ, *CHANGE, "delete"):
            assert not seeds.may(seeds.foreign, verb, resource, name)
    # Both Shoots use these.
    for seed in (seeds.own, seeds.foreign):
        assert seeds.may(seed, "get", kubernetes.SECRETS, place.name)
        assert seeds.may(seed, "get", resources.SECRET_BINDINGS, place.name)
        assert seeds.may(seed, "watch", resources.CLOUD_PROFILES, place.name)
        assert seeds.may(seed, "get", resources.PROJECTS, place.name)
        assert seeds.may(seed, "watch", kubernetes.NAMESPACES, place.namespace)
    for resource, name in (
        (resources.SECRET_BINDINGS, place.name),
        (resources.PROJECTS, place.name),
        (kubernetes.NAMESPACES, place.namespace),
        (kubernetes.SECRETS, place.name),
    ):
        assert not seeds.may("another", "get", resource, name)
    for verb in READ:
        assert not seeds.may(seeds.own, verb, kubernetes.SECRETS, "unused")
        assert not seeds.may(seeds.own, verb, kubernetes.SECRETS, "f.ca-cluster")


def test_lists_are_limited_to_the_seed(seeds: TwoSeeds) -> None:
    label = f"{SEED_LABEL_PREFIX}{seeds.own}"
    assert seeds.may(seeds.own, "list", resources.SHOOTS, namespace="", label=label)
    assert seeds.may(seeds.own, "watch", resources.BACKUP_ENTRIES, namespace="", label=label)
    for resource, field in (
        (resources.CONTROLLER_INSTALLATIONS, "spec.seedRef.name"),
        (resources.BASTIONS, "spec.seedName"),
        (resources.BACKUP_BUCKETS, "spec.seedName"),
        (resources.SHOOTS, "spec.seedName"),
    ):
        assert seeds.may(seeds.own, "list", resource, namespace="", field=(field, seeds.own)), field
        assert not seeds.may(seeds.own, "list", resource, namespace="", field=(field, seeds.foreign)), field
        assert not seeds.may(seeds.own, "watch", resource, namespace=""), resource.plural
    assert not seeds.may(seeds.foreign, "list", resources.SHOOTS, namespace="", label=label)
    for resource in (kubernetes.SECRETS, kubernetes.CONFIG_MAPS, resources.INTERNAL_SECRETS, resources.SHOOT_STATES):
        assert not seeds.may(seeds.own, "list", resource, namespace=""), resource.plural
        assert not seeds.may(seeds.own, "deletecollection", resource), resource.plural
    own = namespace_of(seeds.own)
    for verb in (*READ, "create", *CHANGE, "delete"):
        name = "" if verb == "list" else "x"
        for resource in (kubernetes.SECRETS, kubernetes.SERVICE_ACCOUNTS):
            assert seeds.may(seeds.own, verb, resource, name, own), verb
            assert not seeds.may(seeds.foreign, verb, resource, name, own), verb
    assert seeds.may(seeds.own, "create", kubernetes.SERVICE_ACCOUNTS, "x", own, subresource="token")
    assert seeds.may(seeds.own, "get", kubernetes.CONFIG_MAPS, "kube-root-ca.crt", own)


def test_a_gardenlet_reads_all_seeds_and_changes_its_own(seeds: TwoSeeds) -> None:
    for verb in READ:
        for resource in (resources.SEEDS, resources.MANAGED_SEEDS, resources.CONTROLLER_REGISTRATIONS):
            assert seeds.may(seeds.own, verb, resource, namespace=""), (verb, resource.plural)
    for verb in CHANGE:
        for subresource in ("", "status"):
            assert seeds.may(seeds.own, verb, resources.SEEDS, seeds.own, subresource=subresource)
            assert not seeds.may(seeds.own, verb, resources.SEEDS, seeds.foreign, subresource=subresource)
            assert seeds.may(seeds.own, verb, resources.SHOOTS, "s", subresource=subresource)
            assert not seeds.may(seeds.own, verb, resources.SHOOTS, "f", subresource=subresource)
            assert seeds.may(seeds.own, verb, resources.GARDENLETS, seeds.own, "garden", subresource=subresource)
        assert seeds.may(seeds.own, verb, kubernetes.LEASES, seeds.own, LEASE_NAMESPACE)
        assert not seeds.may(seeds.own, verb, kubernetes.LEASES, seeds.foreign, LEASE_NAMESPACE)
    for verb in ("create", "delete"):
        assert not seeds.may(seeds.own, verb, resources.SHOOTS, "s")
    assert seeds.may(seeds.own, "create", kubernetes.EVENTS)
    assert seeds.may(seeds.own, "create", kubernetes.CERTIFICATE_SIGNING_REQUESTS)
    assert seeds.may(seeds.own, "create", kubernetes.CERTIFICATE_SIGNING_REQUESTS, subresource="seedclient")
    bucket = uid(seeds.place.get(resources.SEEDS, seeds.own))
    for verb in ("get", "create", *CHANGE, "delete"):
        assert seeds.may(seeds.own, verb, resources.BACKUP_BUCKETS, bucket)
        assert not seeds.may(seeds.foreign, verb, resources.BACKUP_BUCKETS, bucket)
        assert seeds.may(seeds.own, verb, kubernetes.SECRETS, f"generated-bucket-{bucket}", "garden")
        assert not seeds.may(seeds.foreign, verb, kubernetes.SECRETS, f"generated-bucket-{bucket}", "garden")


def test_a_shoot_that_has_just_come_is_known(seeds: TwoSeeds) -> None:
    """A refusal is never that of a cache that lags, until the Seed was refused often: this one was not yet."""
    place = seeds.place
    seed = place.seed("-c")
    for number in range(5):
        place.create(kubernetes.SECRETS, f"new-{number}", stringData={"key": "value"})
        named = {"apiVersion": "v1", "kind": "Secret", "name": f"new-{number}"}
        place.shoot(f"new-{number}", seedName=seed, resources=[{"name": "r", "resourceRef": named}])
        assert seeds.may(seed, "get", resources.SHOOT_STATES, f"new-{number}")
        assert seeds.may(seed, "get", kubernetes.SECRETS, f"new-{number}")


async def test_before_a_refusal_the_api_server_is_asked(garden: Garden) -> None:
    """The caches know of nothing that comes after they have stopped."""
    place = ShootPlace(garden)
    seed = place.seed()
    async with connected(garden.cluster) as client:
        stopped = cluster_of(client)
        state = SharedListers(stopped, stopped)
        answer = authorizer(SeedAuthorizer(), state)

        async def status(resource: str, name: str) -> Object:
            attributes = {"verb": "get", "resource": resource, "namespace": place.namespace, "name": name}
            spec = {"user": f"{SEED_USER_PREFIX}{seed}", "groups": [SEEDS_GROUP], "resourceAttributes": attributes}
            found = await answer(orjson.dumps({"spec": spec}), "application/json")
            reported: Object = orjson.loads(found)["status"]
            return reported

        async def is_ready() -> bool:
            return "evaluationError" not in await status("secrets", "x")

        await state.start()
        await soon(is_ready, "the caches")
        await stopped.caches.close()
        place.create(kubernetes.SECRETS, "late", stringData={"key": "value"})
        late = {"secretRef": {"name": "late", "namespace": place.namespace}, "provider": {"type": place.name}}
        place.create(resources.SECRET_BINDINGS, "late", **late)
        assert (await status("secrets", "s.ca-cluster"))["denied"]
        place.shoot("s", seedName=seed, secretBindingName="late")
        assert (await status("secrets", "s.ca-cluster"))["allowed"]
        assert (await status("secrets", "late"))["allowed"]
        assert (await status("secrets", "other"))["denied"]


# --- the admission


def refused(work: Callable[..., object], *arguments: object, **fields: object) -> str:
    """The text of the refusal."""
    with pytest.raises(ApiError) as error:
        work(*arguments, **fields)
    return str(error.value)


def test_a_gardenlet_creates_only_what_belongs_to_its_seed(seeds: TwoSeeds) -> None:
    """Where it may create objects, what counts are their names and what they say."""
    gardenlet, namespace = seeds.garden.as_gardenlet(seeds.own), seeds.place.namespace
    not_its_own = f'object does not belong to seed "{seeds.own}"'
    gardenlet.create(kubernetes.SECRETS, "s.monitoring", namespace=namespace, dry_run=True)
    text = refused(gardenlet.create, kubernetes.SECRETS, "f.monitoring", namespace=namespace, dry_run=True)
    assert not_its_own in text
    others: tuple[tuple[Resource, str, dict[str, Any]], ...] = (
        (kubernetes.SECRETS, "other", {}),
        (kubernetes.CONFIG_MAPS, "f.ca-cluster", {}),
        (resources.INTERNAL_SECRETS, "f.ca-client", {}),
        (resources.SHOOT_STATES, "f", {"spec": {}}),
    )
    for resource, name, fields in others:
        text = refused(gardenlet.create, resource, name, namespace=namespace, dry_run=True, **fields)
        assert not_its_own in text
    token: dict[str, Any] = {"type": "bootstrap.kubernetes.io/token", "namespace": "kube-system", "dry_run": True}
    assert not_its_own in refused(gardenlet.create, kubernetes.SECRETS, "bootstrap-token-abcdef", **token)
    lease: dict[str, Any] = {"namespace": LEASE_NAMESPACE, "dry_run": True}
    assert not_its_own in refused(gardenlet.create, kubernetes.LEASES, seeds.foreign, **lease)


def test_a_gardenlet_gives_nothing_away_and_takes_no_more(seeds: TwoSeeds) -> None:
    place, gardenlet = seeds.place, seeds.garden.as_gardenlet(seeds.own)
    moved = {"status": {"seedName": seeds.foreign}}
    shoot: dict[str, Any] = {"namespace": place.namespace}
    text = refused(gardenlet.patch, resources.SHOOTS, "s", moved, status=True, **shoot)
    assert f'may not give the object to seed "{seeds.foreign}"' in text
    gardenlet.patch(resources.SHOOTS, "s", {"status": {"seedName": seeds.own}}, status=True, **shoot)
    gardenlet.patch(resources.SHOOTS, "s", {"metadata": {"annotations": {"a": "b"}}}, **shoot)
    reference = {"name": "r", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "unused"}}
    text = refused(gardenlet.patch, resources.SHOOTS, "s", {"spec": {"resources": [reference]}}, **shoot)
    assert "allowed to read" in text or "may not make the object use" in text
    backup = {"spec": {"backup": {"secretRef": {"name": "unused", "namespace": place.namespace}}}}
    text = refused(gardenlet.patch, resources.SEEDS, seeds.own, backup)
    assert f'may not make the object use secrets "{place.namespace}/unused"' in text
    secret = {"data": {"key": base64.b64encode(b"other").decode()}}
    text = refused(gardenlet.patch, kubernetes.SECRETS, "named", secret, **shoot)
    assert "may only change the metadata" in text
    gardenlet.patch(kubernetes.SECRETS, "named", {"metadata": {"annotations": {"a": "b"}}}, **shoot)


def test_backups_are_in_the_bucket_of_the_seed(seeds: TwoSeeds) -> None:
    place = seeds.place
    for seed in (seeds.own, seeds.foreign):
        gardenlet = seeds.garden.as_gardenlet(seed)
        bucket = uid(place.get(resources.SEEDS, seed))
        spec = garden_object(resources.BACKUP_BUCKETS)["spec"] | {"seedName": seed}
        spec |= {"secretRef": {"name": "backup", "namespace": "garden"}}
        spec["provider"]["type"] = place.name
        stolen = {**spec, "secretRef": {"name": "unused", "namespace": place.namespace}}
        text = refused(gardenlet.create, resources.BACKUP_BUCKETS, bucket, spec=stolen)
        assert "may not make the object use" in text
        gardenlet.create(resources.BACKUP_BUCKETS, bucket, spec=spec)
    own, foreign = (uid(place.get(resources.SEEDS, seed)) for seed in (seeds.own, seeds.foreign))
    gardenlet, name = seeds.garden.as_gardenlet(seeds.own), backup_of(seeds)
    entry: dict[str, Any] = {"namespace": place.namespace}
    text = refused(
        gardenlet.create, resources.BACKUP_ENTRIES, name, spec={"bucketName": foreign, "seedName": seeds.own}, **entry
    )
    assert "may not make the object use" in text
    text = refused(
        gardenlet.create, resources.BACKUP_ENTRIES, name, spec={"bucketName": own, "seedName": seeds.foreign}, **entry
    )
    assert f'object does not belong to seed "{seeds.own}"' in text
    gardenlet.create(resources.BACKUP_ENTRIES, name, spec={"bucketName": own, "seedName": seeds.own}, **entry)
    assert seeds.may(seeds.own, "get", resources.BACKUP_BUCKETS, own)
    assert not seeds.may(seeds.own, "get", resources.BACKUP_BUCKETS, foreign)
    assert seeds.may(seeds.own, "get", kubernetes.SECRETS, "backup", "garden")
    text = refused(
        seeds.garden.as_gardenlet(seeds.foreign).patch,
        resources.BACKUP_ENTRIES,
        name,
        {"spec": {"seedName": seeds.foreign}},
        **entry,
    )
    assert "forbidden" in text


def test_credentials_for_a_new_gardenlet_are_made_by_that_of_its_shoot(garden: Garden) -> None:
    place = ShootPlace(garden, is_garden=True)
    parent, foreign = place.seed("-p"), place.seed("-q")
    child = f"{place.name}-c"
    dns = {
        "domain": f"{child}.{place.name}.example.com",
        "providers": [{"type": place.name, "primary": True, "secretName": place.name}],
    }
    kubernetes_of_shoot = {"version": "1.30.1", "verticalPodAutoscaler": {"enabled": True}}
    place.shoot(child, seedName=parent, dns=dns, kubernetes=kubernetes_of_shoot)
    spec = {"shoot": {"name": child}, "gardenlet": {}}
    place.create(resources.MANAGED_SEEDS, child, spec=spec)
    identity = bootstrap_token_id(Key("garden", child))
    token = {
        "token-id": identity,
        "token-secret": "0123456789abcdef",
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
    }
    kind: dict[str, Any] = {"type": "bootstrap.kubernetes.io/token", "namespace": "kube-system"}
    name = f"bootstrap-token-{identity}"
    gardenlet = garden.as_gardenlet(parent)
    unusable = {**token, "usage-bootstrap-signing": "false"}
    text = refused(gardenlet.create, kubernetes.SECRETS, name, stringData=unusable, **kind)
    assert "usage-bootstrap-signing" in text
    stolen = {**token, "auth-extra-groups": "system:bootstrappers:other"}
    assert "extra group" in refused(gardenlet.create, kubernetes.SECRETS, name, stringData=stolen, **kind)
    assert refused(garden.as_gardenlet(foreign).create, kubernetes.SECRETS, name, stringData=token, **kind)
    gardenlet.create(kubernetes.SECRETS, name, stringData=token, **kind)
    gardenlet.delete(kubernetes.SECRETS, name, namespace="kube-system")

    place_of_child = garden_object(resources.SEEDS)["spec"]
    place_of_child["provider"]["type"] = place_of_child["dns"]["provider"]["type"] = place.name
    place_of_child["ingress"]["domain"] = f"ingress.{child}.example.com"
    garden.as_gardenlet(child).create(resources.SEEDS, child, spec=place_of_child)
    eventually(lambda: garden.get(resources.SEEDS, child), "the Seed")
    garden.patch(
        resources.SEEDS,
        child,
        {"status": {"clientCertificateExpirationTimestamp": "2200-01-01T00:00:00Z"}},
        status=True,
    )

    def is_refused() -> bool:
        try:
            gardenlet.create(kubernetes.SECRETS, name, stringData=token, dry_run=True, **kind)
        except ApiError as error:
            return f"managed seed garden/{child} is already bootstrapped" in str(error)
        return False

    eventually(is_refused, "the new gardenlet to have its certificate")
    text = refused(gardenlet.delete, resources.SEEDS, child)
    assert "corresponding ManagedSeed has a deletion timestamp" in text
    assert refused(garden.as_gardenlet(foreign).delete, resources.SEEDS, child)
    assert metadata(garden.get(resources.SEEDS, child))
