"""Without an authorizer, Roles let a gardenlet reach the credentials of its Shoots, and no others.

A garden of its own: that of other tests has an authorizer.
"""

import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
import yaml

from agent.controller_manager.seed.roles.controller import LABEL, ROLE, declare
from config.controller_manager.controllers import Controllers, SeedRoles
from devcluster.cluster import Cluster
from devcluster.garden.box import GardenBox
from devcluster.garden.objects import NAMESPACE
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api import garden as resources
from gardener.garden.seeds import bootstrap_token_id, namespace_of
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller, until_idle
from kit.seed_rights import TwoSeeds, two_seeds
from kit.world import connected
from kube import resources as kubernetes
from kube.errors import Forbidden, NotFound
from kube.objects import Key, metadata
from kube.resources import NAMESPACES, RBAC_GROUP, ROLES
from kube.runtime.loop import ControlLoop

pytestmark = pytest.mark.timeout(600)

ENABLED = Controllers(seed_roles=SeedRoles(enabled=True))
RIGHTS = Path(__file__).parents[2] / "manifests/components/controller-manager/seed-roles/role.yaml"


@pytest.fixture(scope="module")
def plain(devcluster_run: RunClusters) -> Iterator[Garden]:
    with Cluster() as cluster:
        GardenBox(cluster).install(authorizes=False)
        role, binding = yaml.safe_load_all(RIGHTS.read_text())
        binding["subjects"] = [{**subject, "namespace": NAMESPACE} for subject in binding["subjects"]]
        cluster.api.create(kubernetes.CLUSTER_ROLES.path(), role)
        cluster.api.create(kubernetes.CLUSTER_ROLE_BINDINGS.path(), binding)
        yield Garden(cluster)


@pytest.fixture
def seeds(plain: Garden) -> TwoSeeds:
    two = two_seeds(plain)
    for seed in (two.own, two.foreign):
        plain.create(NAMESPACES, namespace_of(seed))
    return two


@pytest.fixture
async def loop(plain: Garden, seeds: TwoSeeds) -> AsyncIterator[ControlLoop]:
    async with connected(plain.cluster) as client, run_garden_controller(declare, client, controllers=ENABLED) as found:
        await until_idle(found)
        yield found


async def test_a_gardenlet_reaches_the_credentials_of_its_shoots_alone(seeds: TwoSeeds, loop: ControlLoop) -> None:
    may = partial(soon, what="the Roles to be known")
    await may(lambda: seeds.may(seeds.own, "get", kubernetes.SECRETS, "s.ca-cluster"))
    derived = [
        *((kubernetes.SECRETS, f"s.{each}") for each in ("ca-cluster", "ssh-keypair", "ssh-keypair.old")),
        (kubernetes.CONFIG_MAPS, "s.ca-cluster"),
        (resources.INTERNAL_SECRETS, "s.ca-client"),
        (resources.SHOOT_STATES, "s"),
    ]
    for resource, name in derived:
        for verb in ("get", "create", "update", "patch", "delete"):
            assert seeds.may(seeds.own, verb, resource, name), (verb, resource.plural, name)
            if verb != "create":  # of which the admission sees the name
                assert not seeds.may(seeds.foreign, verb, resource, name), (verb, resource.plural, name)
    for name in ("named", seeds.place.name):
        assert seeds.may(seeds.own, "get", kubernetes.SECRETS, name)
        assert not seeds.may(seeds.own, "delete", kubernetes.SECRETS, name)
    assert not seeds.may(seeds.foreign, "get", kubernetes.SECRETS, "named")
    assert not seeds.may(seeds.own, "get", kubernetes.SECRETS, "unused")
    for resource in (kubernetes.SECRETS, kubernetes.CONFIG_MAPS, resources.INTERNAL_SECRETS, resources.SHOOT_STATES):
        assert not seeds.may(seeds.own, "list", resource)
    assert seeds.may(seeds.own, "list", kubernetes.SECRETS, namespace=namespace_of(seeds.own))
    assert not seeds.may(seeds.own, "list", kubernetes.SECRETS, namespace=namespace_of(seeds.foreign))
    assert seeds.may(seeds.own, "get", kubernetes.SECRETS, "backup", "garden")
    own, foreign = seeds.garden.as_gardenlet(seeds.own), seeds.garden.as_gardenlet(seeds.foreign)
    for resource, name in derived:
        with pytest.raises(NotFound):
            own.get(resource, name, namespace=seeds.place.namespace)
        with pytest.raises(Forbidden):
            foreign.get(resource, name, namespace=seeds.place.namespace)


async def test_what_a_gardenlet_creates_is_seen_by_the_admission(seeds: TwoSeeds, loop: ControlLoop) -> None:
    """A Role can't name what does not exist."""
    place, gardenlet = seeds.place, seeds.garden.as_gardenlet(seeds.own)
    created = partial(gardenlet.create, kubernetes.SECRETS, namespace=place.namespace, dry_run=True)
    await soon(lambda: created("s.monitoring"), "the Roles to be known", passing=(Forbidden,))
    with pytest.raises(Forbidden, match="does not belong to seed"):
        created("f.monitoring")
    with pytest.raises(Forbidden, match="does not belong to seed"):
        gardenlet.patch(resources.SHOOTS, "f", {"metadata": {"labels": {"a": "b"}}}, namespace=place.namespace)


async def test_rights_follow_the_shoot_and_go_with_it(seeds: TwoSeeds, loop: ControlLoop) -> None:
    place = seeds.place

    def may(seed: str, name: str) -> bool:
        return seeds.may(seed, "get", kubernetes.SECRETS, name)

    def roles() -> set[str]:
        found = place.garden.cluster.api.get(f"{ROLES.path(namespace=place.namespace)}?labelSelector={LABEL}={ROLE}")
        return {metadata(each)["name"] for each in found["items"]}

    await soon(lambda: may(seeds.own, "named"), "the Roles to be known")
    place.patch(resources.SHOOTS, "s", {"spec": {"resources": []}})
    await soon(lambda: not may(seeds.own, "named"), "the reference to count no more")
    assert may(seeds.own, "s.ca-cluster")
    moved = {"status": {"seedName": seeds.foreign}}
    place.patch(resources.SHOOTS, "s", moved, status=True)
    await soon(lambda: may(seeds.foreign, "s.ca-cluster"), "both Seeds to have rights")
    assert may(seeds.own, "s.ca-cluster")
    place.patch(resources.SHOOTS, "s", {"status": {"seedName": None}}, status=True)
    await soon(lambda: not may(seeds.foreign, "s.ca-cluster"), "the rights to go")
    assert f"gardener.cloud:seed:{seeds.own}:{place.namespace}:s" in roles()
    place.delete(resources.SHOOTS, "s")
    await soon(lambda: not may(seeds.own, "s.ca-cluster"), "the rights to go with the Shoot")
    await soon(lambda: not [each for each in roles() if each.endswith(":s")], "its Roles to go")


def twins(name: str) -> tuple[str, str, str]:
    """Two suffixes of a name with which bootstrap tokens have the same id, and the name of the Secret."""
    seen: dict[str, str] = {}
    for suffix in map("-{:x}".format, itertools.count()):
        token = bootstrap_token_id(Key(NAMESPACE, name + suffix))
        if token in seen:
            return seen[token], suffix, f"bootstrap-token-{token}"
        seen[token] = suffix
    raise AssertionError


async def test_a_token_that_could_be_that_of_two_is_of_none(seeds: TwoSeeds, loop: ControlLoop) -> None:
    place = seeds.place
    first, second, token = twins(place.name)

    def may(seed: str) -> bool:
        return seeds.may(seed, "get", kubernetes.SECRETS, token, "kube-system")

    for suffix in (first, second):
        place.garden.create(NAMESPACES, namespace_of(place.name + suffix))
    one = place.seed(first)
    await soon(lambda: may(one), "the Roles to be known")
    other = place.seed(second)
    await soon(lambda: not may(one), "the right to go")
    await until_idle(loop)
    assert not may(other)
    assert not seeds.may(other, "get", kubernetes.SECRETS, "any", "kube-system")
    place.delete(resources.SEEDS, other)
    await soon(lambda: may(one), "the right to come back")


async def test_roles_of_a_shoot_that_went_meanwhile_are_removed_at_the_start(plain: Garden, seeds: TwoSeeds) -> None:
    place = seeds.place

    def may() -> bool:
        return seeds.may(seeds.own, "get", kubernetes.SECRETS, "s.ca-cluster")

    async with connected(plain.cluster, f"roles-{place.name}") as client:
        async with run_garden_controller(declare, client, controllers=ENABLED):
            await soon(may, "the Roles to be known")
        place.delete(resources.SHOOTS, "s")
        assert may()
        async with run_garden_controller(declare, client, controllers=ENABLED) as next_one:
            await soon(lambda: not may(), "the Roles to go")
            await until_idle(next_one)
        with closing(plain.cluster.audit()) as audit:
            mark = audit.mark()
            async with run_garden_controller(declare, client, controllers=ENABLED) as again:
                await until_idle(again)
            written = audit.calls(
                since=mark, user_agent=f"roles-{place.name}", verbs=("create", "update", "patch", "delete")
            )
            assert not [(call.verb, call.uri) for call in written if call.group == RBAC_GROUP]
