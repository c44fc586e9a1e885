"""A gardenlet may do what its flows need of what belongs to its Seed; a foreign one reads and writes nothing of it."""

import base64
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson
import pytest

from config.webhooks.schema import SeedAuthorizer
from gardener.api import garden as resources
from gardener.garden.seed_graph import KEYS_NAMESPACE
from gardener.garden.seeds import (
    LEASE_NAMESPACE,
    BootstrapToken,
    bootstrap_account,
    bootstrap_binding,
    bootstrap_token_id,
    namespace_of,
)
from gardener.keys import (
    CREDENTIALS_FINALIZER,
    SEED_LABEL_PREFIX,
    SEED_USER_PREFIX,
    SEEDS_GROUP,
    TASKS,
    USABLE_BY_SEED_PREFIX,
)
from gardener.rights import everybody, gardenlet
from gardener.rights.model import ALL, Case
from gardener.rights.requests import Attributes
from kit.controllers import cluster_of
from kit.eventually import eventually, soon
from kit.garden import Garden
from kit.garden_objects import garden_object
from kit.garden_shoots import ShootPlace
from kit.seed_rights import TwoSeeds, two_seeds
from kit.world import connected
from kube import resources as kubernetes
from kube.clock import format_time, utc_now
from kube.errors import ApiError, Forbidden, NotFound
from kube.objects import Key, Object, metadata, uid
from kube.resources import Resource
from webhooks.authorizers.seed.webhook import authorizer
from webhooks.review import Endpoint
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
        for verb in (*CHANGE, "delete"):
            assert not seeds.may(seeds.own, verb, resource, name)
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


def test_the_deployed_authorizer_denies_what_is_not_in_the_table(seeds: TwoSeeds) -> None:
    """RBAC grants gardenlets more, for gardens without the authorizer."""
    named = (each for module in (resources, kubernetes) for each in vars(module).values())
    kinds = [each for each in named if isinstance(each, Resource)]
    for kind, verb in itertools.product(kinds, (*READ, "create", *CHANGE, "delete", "deletecollection", "impersonate")):
        requested = Attributes(user="", verb=verb, group=kind.group, resource=kind.plural, namespace="x", name="none")
        rows = gardenlet.TABLE.about(kind, verb)
        expected = any(each.objects is ALL for each in rows) or everybody.TABLE.permits(Case(requested=requested))
        assert seeds.may("another", verb, kind, "none", namespace="x") is expected, (verb, kind.plural)


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


@dataclass(frozen=True)
class Stopped:
    """An authorizer whose caches know of nothing that comes after they have stopped."""

    review: Endpoint
    seed: str

    async def status(self, resource: Resource, name: str, namespace: str) -> Object:
        attributes = {"verb": "get", "group": resource.group, "resource": resource.plural}
        attributes |= {"namespace": namespace, "name": name}
        spec = {"user": f"{SEED_USER_PREFIX}{self.seed}", "groups": [SEEDS_GROUP], "resourceAttributes": attributes}
        found = await self.review(orjson.dumps({"spec": spec}), "application/json")
        reported: Object = orjson.loads(found)["status"]
        return reported

    async def is_ready(self) -> bool:
        return "evaluationError" not in await self.status(kubernetes.SECRETS, "x", "x")

    async def permits(self, resource: Resource, name: str, namespace: str) -> bool:
        return bool((await self.status(resource, name, namespace))["allowed"])


@contextlib.asynccontextmanager
async def stopped_authorizer(place: ShootPlace) -> AsyncIterator[Stopped]:
    """For a new Seed."""
    seed = place.seed()
    async with connected(place.garden.cluster) as client:
        stopped = cluster_of(client)
        state = SharedListers(stopped, stopped)
        found = Stopped(authorizer(SeedAuthorizer(), state), seed)
        await state.start()
        await soon(found.is_ready, "the caches")
        await stopped.caches.close()
        yield found


async def test_before_a_refusal_the_api_server_is_queried(garden: Garden) -> None:
    place = ShootPlace(garden)
    async with stopped_authorizer(place) as stopped:
        place.create(kubernetes.SECRETS, "late", stringData={"key": "value"})
        late = {"secretRef": {"name": "late", "namespace": place.namespace}, "provider": {"type": place.name}}
        place.create(resources.SECRET_BINDINGS, "late", **late)
        assert not await stopped.permits(kubernetes.SECRETS, "s.ca-cluster", place.namespace)
        place.shoot("s", seedName=stopped.seed, secretBindingName="late")
        assert await stopped.permits(kubernetes.SECRETS, "s.ca-cluster", place.namespace)
        assert await stopped.permits(kubernetes.SECRETS, "late", place.namespace)
        assert not await stopped.permits(kubernetes.SECRETS, "other", place.namespace)


@pytest.mark.parametrize(
    "resource", [kubernetes.SERVICE_ACCOUNTS, kubernetes.CLUSTER_ROLE_BINDINGS, kubernetes.SECRETS], ids=str
)
async def test_before_a_refusal_managed_seeds_are_read(garden: Garden, resource: Resource) -> None:
    place = ShootPlace(garden, is_garden=True)
    child = f"{place.name}-c"
    account = bootstrap_account(Key("garden", child))
    named = {
        kubernetes.SERVICE_ACCOUNTS: account,
        kubernetes.CLUSTER_ROLE_BINDINGS: Key("", bootstrap_binding(account)),
        kubernetes.SECRETS: Key("kube-system", f"bootstrap-token-{bootstrap_token_id(Key('garden', child))}"),
    }[resource]
    async with stopped_authorizer(place) as stopped:
        assert not await stopped.permits(resource, named.name, named.namespace)
        shoot_of_seed(place, child, stopped.seed)
        place.create(resources.MANAGED_SEEDS, child, spec={"shoot": {"name": child}, "gardenlet": {}})
        assert await stopped.permits(resource, named.name, named.namespace)
    place.remove()


# --- the admission


def refused(work: Callable[..., object], *arguments: object, **fields: object) -> str:
    """The text of the refusal."""
    with pytest.raises(ApiError) as error:
        work(*arguments, **fields)
    return str(error.value)


def test_a_gardenlet_creates_only_what_belongs_to_its_seed(seeds: TwoSeeds) -> None:
    """Where it may create objects, what counts are their names and what they report."""
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
    for change in ({"annotations": {"a": "b"}}, {"labels": {"a": "b"}}, {"finalizers": ["example.com/forever"]}):
        text = refused(gardenlet.patch, resources.SHOOTS, "s", {"metadata": change}, **shoot)
        assert "have an operator change it" in text
    gardenlet.patch(resources.SHOOTS, "s", {"metadata": {"annotations": {TASKS: None}}}, **shoot)
    reference = {"name": "r", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "unused"}}
    text = refused(gardenlet.patch, resources.SHOOTS, "s", {"spec": {"resources": [reference]}}, **shoot)
    assert "allowed to read" in text or "may not refer to" in text
    backup = {"spec": {"backup": {"secretRef": {"name": "unused", "namespace": place.namespace}}}}
    text = refused(gardenlet.patch, resources.SEEDS, seeds.own, backup)
    assert f'Secret "{place.namespace}/unused" is not confirmed for seed "{seeds.own}"' in text


def test_credentials_that_an_operator_confirms_become_those_of_a_seed(seeds: TwoSeeds) -> None:
    place, gardenlet, name = seeds.place, seeds.garden.as_gardenlet(seeds.own), f"{seeds.place.name}-dns"
    seeds.garden.create(kubernetes.SECRETS, name, namespace="garden", stringData={"key": "value"})
    provider = {"type": place.name, "secretRef": {"name": name, "namespace": "garden"}}
    change = {"spec": {"dns": {"provider": provider}}}
    text = refused(gardenlet.patch, resources.SEEDS, seeds.own, change)
    label = f"{USABLE_BY_SEED_PREFIX}{seeds.own}"
    assert f"`kubectl --namespace garden label --overwrite secrets {name} {label}=true`" in text
    assert not seeds.may(seeds.own, "get", kubernetes.SECRETS, name, "garden")
    seeds.garden.patch(kubernetes.SECRETS, name, {"metadata": {"labels": {label: "true"}}}, namespace="garden")
    # Other refusals may have used up the reads that confirm one; the API server remembers a refusal for a second.
    eventually(lambda: gardenlet.patch(resources.SEEDS, seeds.own, change), "the change", passing=(Forbidden,))
    eventually(lambda: seeds.may(seeds.own, "get", kubernetes.SECRETS, name, "garden"), "the right")
    assert not seeds.may(seeds.foreign, "get", kubernetes.SECRETS, name, "garden")
    assert "forbidden" in refused(gardenlet.delete, resources.SEEDS, seeds.own)
    bare = seeds.garden.as_user("clerk")
    seeds.garden.allow("clerk", "patch", resources.SEEDS)
    other = {"spec": {"dns": {"provider": {**provider, "secretRef": {"name": f"{name}-other", "namespace": "garden"}}}}}
    assert "which you are not allowed to read" in refused(bare.patch, resources.SEEDS, seeds.own, other)


def test_the_status_of_a_shoot_names_no_other(seeds: TwoSeeds) -> None:
    place, gardenlet = seeds.place, seeds.garden.as_gardenlet(seeds.own)
    place.shoot("n", seedName=seeds.own)
    victim, own = (uid(place.get(resources.SHOOTS, name)) for name in ("f", "n"))
    shoot: dict[str, Any] = {"namespace": place.namespace, "status": True}
    for stolen in ({"uid": victim}, {"technicalID": f"shoot--{place.name}--f"}):
        text = refused(gardenlet.patch, resources.SHOOTS, "n", {"status": stolen}, **shoot)
        assert "must be" in text
    right = {"technicalID": f"shoot--{place.name}--n", "uid": own}
    eventually(
        lambda: gardenlet.patch(resources.SHOOTS, "n", {"status": right}, **shoot),
        "the right status",
        passing=(Forbidden,),
    )
    # Others may write it, and give no rights by it.
    place.shoot("m", seedName=seeds.own)
    place.patch(resources.SHOOTS, "m", {"status": {**right, "uid": victim}}, status=True)
    for name in (f"shoot--{place.name}--f--{victim}", f"shoot--{place.name}--n--{victim}"):
        assert not seeds.may(seeds.own, "get", resources.BACKUP_ENTRIES, name)
    assert not seeds.may(seeds.own, "get", kubernetes.SECRETS, f"{place.name}--{victim}", KEYS_NAMESPACE)
    keys_of_own = f"{place.name}--{own}"
    eventually(
        lambda: seeds.may(seeds.own, "get", kubernetes.SECRETS, keys_of_own, KEYS_NAMESPACE), "the right to own keys"
    )


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
        assert "may not refer to" in text
        gardenlet.create(resources.BACKUP_BUCKETS, bucket, spec=spec)
    own, foreign = (uid(place.get(resources.SEEDS, seed)) for seed in (seeds.own, seeds.foreign))
    gardenlet, name = seeds.garden.as_gardenlet(seeds.own), backup_of(seeds)
    entry: dict[str, Any] = {"namespace": place.namespace}
    text = refused(
        gardenlet.create, resources.BACKUP_ENTRIES, name, spec={"bucketName": foreign, "seedName": seeds.own}, **entry
    )
    assert "may not refer to" in text
    text = refused(
        gardenlet.create, resources.BACKUP_ENTRIES, name, spec={"bucketName": own, "seedName": seeds.foreign}, **entry
    )
    assert f'object does not belong to seed "{seeds.own}"' in text
    gardenlet.create(resources.BACKUP_ENTRIES, name, spec={"bucketName": own, "seedName": seeds.own}, **entry)
    assert seeds.may(seeds.own, "get", resources.BACKUP_BUCKETS, own)
    assert not seeds.may(seeds.own, "get", resources.BACKUP_BUCKETS, foreign)
    assert seeds.may(seeds.own, "get", kubernetes.SECRETS, "backup", "garden")
    secrets: dict[str, Any] = {"namespace": "garden"}
    kind = kubernetes.SECRETS
    gardenlet.patch(kind, "backup", {"metadata": {"finalizers": [CREDENTIALS_FINALIZER]}}, **secrets)
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"}
    for body in (
        {"metadata": {"finalizers": None}},
        {"metadata": {"ownerReferences": [owner]}},
        {"metadata": {"labels": {"gardener.cloud/role": "default-domain"}}},
        {"metadata": {"annotations": {"a": "b"}}},
        {"immutable": True},
        {"data": {"key": base64.b64encode(b"other").decode()}},
    ):
        assert f'seed "{seeds.own}" may not' in refused(gardenlet.patch, kind, "backup", body, **secrets), body
    text = refused(
        seeds.garden.as_gardenlet(seeds.foreign).patch,
        resources.BACKUP_ENTRIES,
        name,
        {"spec": {"seedName": seeds.foreign}},
        **entry,
    )
    assert "forbidden" in text


def shoot_of_seed(place: ShootPlace, name: str, seed: str) -> None:
    """A Shoot that can become a Seed."""
    dns = {
        "domain": f"{name}.{place.name}.example.com",
        "providers": [{"type": place.name, "primary": True, "secretName": place.name}],
    }
    version = {"version": "1.30.1", "verticalPodAutoscaler": {"enabled": True}}
    place.shoot(name, seedName=seed, dns=dns, kubernetes=version)


def test_credentials_for_a_new_gardenlet_are_made_by_that_of_its_shoot(garden: Garden) -> None:
    place = ShootPlace(garden, is_garden=True)
    parent, foreign = place.seed("-p"), place.seed("-q")
    child = f"{place.name}-c"
    shoot_of_seed(place, child, parent)
    spec = {"shoot": {"name": child}, "gardenlet": {}}
    place.create(resources.MANAGED_SEEDS, child, spec=spec)
    identity = bootstrap_token_id(Key("garden", child))
    token = {
        "token-id": identity,
        "token-secret": "0123456789abcdef",
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "expiration": format_time(utc_now() + timedelta(hours=24)),
        "auth-extra-groups": BootstrapToken(child, parent).extra_groups,
    }
    kind: dict[str, Any] = {"type": "bootstrap.kubernetes.io/token", "namespace": "kube-system"}
    name = f"bootstrap-token-{identity}"
    gardenlet = garden.as_gardenlet(parent)
    unusable = {**token, "usage-bootstrap-signing": "false"}
    text = refused(gardenlet.create, kubernetes.SECRETS, name, stringData=unusable, **kind)
    assert "usage-bootstrap-signing" in text
    stolen = {**token, "auth-extra-groups": "system:bootstrappers:other"}
    assert "extra-groups" in refused(gardenlet.create, kubernetes.SECRETS, name, stringData=stolen, **kind)
    assert refused(garden.as_gardenlet(foreign).create, kubernetes.SECRETS, name, stringData=token, **kind)
    gardenlet.create(kubernetes.SECRETS, name, stringData=token, **kind)
    gardenlet.delete(kubernetes.SECRETS, name, namespace="kube-system")

    place_of_child = garden_object(resources.SEEDS)["spec"]
    place_of_child["provider"]["type"] = place_of_child["dns"]["provider"]["type"] = place.name
    place_of_child["dns"]["provider"]["secretRef"] = {"name": place.name, "namespace": "garden"}  # as the ManagedSeed
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
