"""Etcd of a garden is restored from a snapshot while two controller managers run: one goes on, and the other takes over."""

from collections.abc import Iterator
from functools import partial

import pytest

from devcluster.cluster import Cluster
from devcluster.garden.box import GardenBox
from gardener.api.garden import PROJECTS
from kit.eventually import eventually
from kit.garden import Garden
from kit.garden_controllers import replica
from kube.errors import KubeError, NotFound
from kube.objects import Object, uid
from kube.resources import CONFIG_MAPS, NAMESPACES, RBAC_GROUP, SECRETS, Resource

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def garden(devcluster_run: object) -> Iterator[Garden]:
    with Cluster() as own:
        GardenBox(own).install()
        yield Garden(own)


def find(garden: Garden, resource: Resource, name: str, namespace: str = "") -> Object | None:
    try:
        return garden.get(resource, name, namespace=namespace)
    except NotFound:
        return None


def is_ready(garden: Garden, name: str) -> bool:
    project = garden.get(PROJECTS, name)
    return bool(project.get("status", {}).get("phase") == "Ready" and find(garden, NAMESPACES, f"garden-{name}"))


def make(garden: Garden, name: str) -> None:
    # The webhooks, which are in another process, refuse while they list again.
    create = partial(garden.create, PROJECTS, name, spec={"namespace": f"garden-{name}"})
    eventually(create, f"Project {name} to be taken", passing=(KubeError,))
    eventually(partial(is_ready, garden, name), f"Project {name} to be ready")


def test_two_controller_managers_go_on_with_what_was_restored(garden: Garden) -> None:
    with replica(garden.cluster, "manager-a") as first, replica(garden.cluster, "manager-b") as second:
        replicas = [first.wait_until_ready(), second.wait_until_ready()]
        make(garden, "kept")
        garden.create(SECRETS, "precious", namespace="garden-kept")
        snapshot = garden.cluster.snapshot()
        make(garden, "future")
        namespace = uid(garden.get(NAMESPACES, "garden-kept"))
        for number in range(400):  # more versions than a control plane makes when it starts
            garden.create(CONFIG_MAPS, f"counter-{number}", namespace="default")

        garden.cluster.restore(snapshot)
        member = {"kind": "User", "apiGroup": RBAC_GROUP, "name": "ann", "roles": ["viewer"]}
        change = partial(garden.patch, PROJECTS, "kept", {"spec": {"members": [member]}})
        eventually(change, "a new member to be taken", passing=(KubeError, OSError))
        make(garden, "new")
        assert find(garden, PROJECTS, "future") is None
        assert find(garden, NAMESPACES, "garden-future") is None

        leaders = [each for each in replicas if each.is_leading()]
        assert len(leaders) == 1
        assert leaders[0].stop() == 0
        (other,) = (each for each in replicas if each not in leaders)
        other.wait_until_leading()
        make(garden, "newer")
        assert uid(garden.get(NAMESPACES, "garden-kept")) == namespace
        assert find(garden, SECRETS, "precious", "garden-kept")
        assert other.probe("/readyz")[0] == 200
