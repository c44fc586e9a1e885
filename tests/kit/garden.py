"""A garden for tests: a control plane with the definitions of the garden API, and its webhooks served over TLS.

All tests of the garden share it; those in `tests/cluster/test_garden_*.py` go to one process (see `tests/conftest.py`),
so that there is one. Each test keeps to names of its own: `place` makes a Project with its namespace.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import pytest

from devcluster.cluster import Cluster
from devcluster.garden.box import GardenBox
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api import garden as resources
from gardener.keys import SEED_USER_PREFIX, SEEDS_GROUP
from kit.objects import user as user_subject
from kit.rbac import grant, until_granted
from kube.objects import Object
from kube.resources import CLUSTER_ROLES, Resource

CONFIRMED: Object = {"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}}
"""A merge patch."""
_EXTENSION_ROLES = ("a", "b", "bar", "foo", "one", "two")


@dataclass(frozen=True)
class Garden:
    cluster: Cluster
    user: str = ""
    """Impersonated, with one group of his own; empty: the administrator."""
    group: str = "system:authenticated"

    def as_user(self, user: str, group: str = "system:authenticated") -> Self:
        return replace(self, user=user, group=group)

    def as_gardenlet(self, seed: str) -> Self:
        """With the rights of the gardenlet of a Seed, which the authorizer knows by user and group."""
        return self.as_user(f"{SEED_USER_PREFIX}{seed}", SEEDS_GROUP)

    def gardenlet_kubeconfig(self, seed: str) -> Path:
        """The same, by a client certificate such as gardenlets have."""
        return self.cluster.kubeconfig_for(f"{SEED_USER_PREFIX}{seed}", [SEEDS_GROUP])

    def create(
        self, resource: Resource, name: str, *, namespace: str = "", dry_run: bool = False, **fields: Any
    ) -> Object:
        """Args: fields: of the object; those of `metadata` are added to name and namespace.

        Raises: ApiError: it is refused.
        """
        place = {"namespace": namespace} if namespace else {}
        meta = {"name": name, **place, **fields.pop("metadata", {})}
        obj = {**resource.type_meta, "metadata": meta, **fields}
        return self._request("POST", resource.path(namespace=namespace) + ("?dryRun=All" if dry_run else ""), obj)

    def patch(
        self, resource: Resource, name: str, body: Object, *, namespace: str = "", status: bool = False
    ) -> Object:
        """A merge patch."""
        path = resource.path(namespace=namespace, name=name, subresource="status" if status else "")
        return self._request("PATCH", path, body, content_type="application/merge-patch+json")

    def delete(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        """The object, if something holds it."""
        return self._request("DELETE", resource.path(namespace=namespace, name=name))

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Object:
        return self._request("GET", resource.path(namespace=namespace, name=name))

    def place(self, name: str = "") -> str:
        """The name of a new Project; its namespace is `garden-` and the name."""
        name = name or f"p{uuid.uuid4().hex[:6]}"
        labels = {"gardener.cloud/role": "project", "project.gardener.cloud/name": name}
        self._request("POST", "/api/v1/namespaces", {"metadata": {"name": f"garden-{name}", "labels": labels}})
        self.create(resources.PROJECTS, name, spec={"namespace": f"garden-{name}"})
        return name

    def allow(self, user: str, verb: str, resource: Resource) -> None:
        """Everywhere, also for a verb or a resource that no server serves; from when this returns."""
        rule = {"apiGroups": [resource.group], "resources": [resource.plural], "verbs": [verb]}
        grant(self.cluster, f"test-{uuid.uuid4().hex[:8]}", rule, subject=user_subject(user))
        until_granted(self.cluster, user, verb, resource.plural, group=resource.group)

    def _request(self, method: str, path: str, body: Any = None, *, content_type: str = "application/json") -> Object:
        headers = {"Impersonate-User": self.user, "Impersonate-Group": self.group} if self.user else {}
        answer: Object = self.cluster.api.request(method, path, body, content_type=content_type, headers=headers)
        return answer


def installed(cluster: Cluster) -> Garden:
    """With webhooks, and a ClusterRole for each extension role that members have in tests."""
    garden = Garden(cluster)
    for name in _EXTENSION_ROLES:
        labels = {"rbac.gardener.cloud/aggregate-to-extension-role": name}
        garden.create(CLUSTER_ROLES, f"extension-{name}", metadata={"labels": labels}, rules=[])
    GardenBox(cluster).install()
    return garden


@pytest.fixture(scope="session")
def garden(devcluster_run: RunClusters) -> Iterator[Garden]:
    """It lives as long as the process that runs the tests."""
    with Cluster() as cluster:
        yield installed(cluster)
