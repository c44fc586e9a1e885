"""ManagedResources of ten kinds of work: each has a Deployment, a Service, a Role and ConfigMaps.

`Workload` writes them, 50 at once, with a client whose calls don't count as the agent's.
"""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import brotli
import orjson
import yaml

from devcluster.cluster import Cluster
from gardener.api.kinds import MANAGED_RESOURCES
from kube.objects import Key, Object
from kube.resources import CONFIG_MAPS, NAMESPACES, SECRETS, Resource
from kube.runtime.client import Client
from localprocesses.local import wait_until

_AT_ONCE = 50
_CRD = Path(__file__).parents[1] / "manifests/crds/managedresources.resources.gardener.cloud.yaml"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CONFIG_MAP = 3
"""Position of the first ConfigMap of a ManagedResource; all later objects are ConfigMaps, too."""
_TEXT = "All work and no play makes Jack a dull boy. " * 22

T = TypeVar("T")
R = TypeVar("R")


def objects_of(number: int, count: int, *, namespace: str, version: str, first: int = 0) -> list[Object]:
    """Manifests of one ManagedResource, from position `first` on; every one of them depends on the version."""
    return [_object(number, position, namespace, version) for position in range(first, first + count)]


def _object(number: int, position: int, namespace: str, version: str) -> Object:
    name = f"o-{number}-{position}"
    meta: Object = {"name": name, "namespace": namespace}
    if position == 0:
        variables = [{"name": f"VARIABLE_{i}", "value": "value" * 4} for i in range(10)]
        container = {"name": "c", "image": "registry.example/image:1", "env": variables}
        template = {"metadata": {"labels": {"app": name, "version": version}}, "spec": {"containers": [container]}}
        spec = {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
    if position == 1:
        spec = {"selector": {"app": name, "version": version}, "ports": [{"port": 80}]}
        return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}
    if position == 2:
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]
        meta["labels"] = {"version": version}
        return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta, "rules": rules}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"version": version, "text": _TEXT}}


def secret_of(name: str, namespace: str, documents: bytes) -> Object:
    """Secret with the documents compressed, as in the tools that write such Secrets."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "data": {"objects.yaml.br": base64.b64encode(brotli.compress(documents, quality=5)).decode()},
    }


def managed_resource(name: str, namespace: str, *, resource_class: str = "") -> Object:
    """ManagedResource of the default class unless another is given."""
    spec: Object = {"secretRefs": [{"name": name}]}
    if resource_class:
        spec["class"] = resource_class
    return {
        **MANAGED_RESOURCES.type_meta,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def install_crd(cluster: Cluster) -> None:
    """Install the definition of ManagedResources, and wait until they are served."""
    install_definition(cluster, yaml.safe_load(_CRD.read_text()), MANAGED_RESOURCES)


def install_definition(cluster: Cluster, definition: Object, resource: Resource) -> None:
    """Install a definition, and wait until its kind is served."""
    cluster.api.apply(f"{_DEFINITIONS}/{definition['metadata']['name']}", definition)
    path = resource.path()
    wait_until(lambda: cluster.api.raw("GET", path)[0] == 200, what=f"{resource.kind} to be served", within=60)


async def create_namespace(client: Client, name: str) -> None:
    await client.create(NAMESPACES, {"metadata": {"name": name}})


class Workload:
    """`count` ManagedResources of `size` objects each, in a namespace.

    Args:
        first: position of their first object, such as `CONFIG_MAP`.
    """

    def __init__(
        self, client: Client, *, namespace: str, count: int, size: int, first: int = 0, resource_class: str = ""
    ) -> None:
        self.count, self.size, self.namespace, self.resource_class = count, size, namespace, resource_class
        self._client = client
        self._first = first

    def name(self, number: int) -> str:
        return f"mr-{number}"

    async def create_secrets(self) -> None:
        await self._each(lambda i: self._client.create(SECRETS, self._secret(i, "1")))

    async def create(self) -> None:
        def managed(number: int) -> Object:
            return managed_resource(self.name(number), self.namespace, resource_class=self.resource_class)

        await self._each(lambda i: self._client.create(MANAGED_RESOURCES, managed(i)))

    async def change(self) -> None:
        """Change every Secret, and so every object."""
        await self._each(lambda i: self._client.replace(SECRETS, self._secret(i, "2")))

    async def delete(self) -> None:
        await self._each(lambda i: self._client.delete(MANAGED_RESOURCES, Key(self.namespace, self.name(i))))

    async def drift(self, number: int) -> Object:
        """Change an object of a ManagedResource by hand, and return it."""
        name = f"o-{number % self.count}-{self._first + self.size - 1 - number // self.count}"
        return await self._client.patch(CONFIG_MAPS, Key(self.namespace, name), {"data": {"version": "drift"}})

    def _secret(self, number: int, version: str) -> Object:
        manifests = objects_of(number, self.size, namespace=self.namespace, version=version, first=self._first)
        documents = b"".join(b"---\n" + orjson.dumps(manifest) + b"\n" for manifest in manifests)
        return secret_of(self.name(number), self.namespace, documents)

    async def _each(self, call: Callable[[int], Awaitable[Any]]) -> None:
        await each_of(range(self.count), call)


async def each_of(items: Iterable[T], call: Callable[[T], Awaitable[R]], *, at_once: int = _AT_ONCE) -> list[R]:
    """Results of the calls, of which at most `at_once` run concurrently."""
    slots = asyncio.Semaphore(at_once)

    async def one(item: T) -> R:
        async with slots:
            return await call(item)

    return await asyncio.gather(*map(one, items))
