"""A namespace, and a user who may do everything in it, whatever a test puts in the way of a program.

`World` is for tests on an event loop, `Place` for those that block. What a method is given or finds without a
namespace is in the world's own, unless its kind has none.
"""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from devcluster.audit import Audit, Call
from devcluster.cluster import Cluster
from kit.eventually import soon
from kit.objects import Kind, placed, resource_of
from kube.errors import Conflict, NotFound
from kube.objects import Key, Object, condition, metadata
from kube.resources import Resource
from kube.runtime.client import Client, Selection
from kube.runtime.connection import load_kubeconfig
from kube.runtime.transport import Transport

WRITES = ("create", "update", "patch", "delete")


@contextlib.asynccontextmanager
async def connected(
    to: Cluster | Path, user_agent: str = "test", *, client: type[Client] | None = None
) -> AsyncIterator[Client]:
    """A client of a cluster, as its administrator, or by a kubeconfig: of a test, or of a program that it runs.

    It is patient unless another type is given. Tests about requests without an answer give `Client`.
    """
    path = to.kubeconfig if isinstance(to, Cluster) else to
    async with Transport(load_kubeconfig(path)) as transport:
        yield (client or PatientClient)(transport, user_agent=user_agent)


class PatientClient(Client):
    """Waits for each answer, however busy the machine is, where `kind_shares` would give requests up."""

    def _share(self, kind: Resource | None, namespace: str) -> contextlib.AbstractAsyncContextManager[None]:
        return contextlib.nullcontext()


class CountingClient(Client):
    requests = 0

    async def request(self, *arguments: Any, **options: Any) -> bytes:
        self.requests += 1
        return await super().request(*arguments, **options)


class World:
    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    def _of(self, kind: Kind, namespace: str | None) -> tuple[Resource, str]:
        resource = resource_of(kind)
        return resource, namespace if namespace is not None else self.namespace if resource.namespaced else ""

    async def create(self, obj: Object, kind: Kind = "") -> Object:
        """Args: kind: unless the object's `kind` reports it."""
        resource = resource_of(kind or obj["kind"])
        return await self.client.create(resource, placed(obj, self.namespace, resource))

    async def get(self, kind: Kind, name: str, *, namespace: str | None = None) -> Object:
        resource, namespace = self._of(kind, namespace)
        return await self.client.get(resource, Key(namespace, name))

    async def find(self, kind: Kind, name: str, *, namespace: str | None = None) -> Object | None:
        try:
            return await self.get(kind, name, namespace=namespace)
        except NotFound:
            return None

    async def patch(
        self, kind: Kind, name: str, body: Object, *, subresource: str = "", namespace: str | None = None
    ) -> Object:
        resource, namespace = self._of(kind, namespace)
        return await self.client.patch(resource, Key(namespace, name), body, subresource=subresource)

    async def delete(self, kind: Kind, name: str, *, propagation: str = "", namespace: str | None = None) -> None:
        resource, namespace = self._of(kind, namespace)
        await self.client.delete(resource, Key(namespace, name), propagation=propagation)

    async def remove(self, kind: Kind, name: str, *, namespace: str | None = None) -> None:
        """Deletes what may be gone, or going, already."""
        with contextlib.suppress(NotFound, Conflict):
            await self.delete(kind, name, namespace=namespace)

    async def events(self, reason: str = "", *, event_type: str = "") -> list[Object]:
        """Of this reason and type, if they are given."""
        found = await self.list("Event")
        return [event for event in found if reason in {"", event["reason"]} and event_type in {"", event["type"]}]

    async def condition(self, name: str, condition_type: str) -> Object:
        """Of a ManagedResource; empty if it has none."""
        return condition(await self.get("ManagedResource", name), condition_type) or {}

    async def until_gone(self, kind: Kind, name: str, *, namespace: str | None = None) -> None:
        async def is_gone() -> bool:
            return await self.find(kind, name, namespace=namespace) is None

        await soon(is_gone, f"{kind} {name} to be gone")

    async def names(self, kind: Kind) -> set[str]:
        return {metadata(obj)["name"] for obj in await self.list(kind)}

    async def list(self, kind: Kind, *, namespace: str | None = None) -> list[Object]:
        resource, namespace = self._of(kind, namespace)
        return await self.client.list(resource, Selection(namespace))


class Place:
    """The same for tests that block."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.api = cluster.api
        self.namespace = namespace

    def path(self, kind: Kind, name: str = "", *, subresource: str = "") -> str:
        resource = resource_of(kind)
        namespace = self.namespace if resource.namespaced else ""
        return resource.path(namespace=namespace, name=name, subresource=subresource)

    def create(self, obj: Object, kind: Kind = "") -> Object:
        """Args: kind: unless the object's `kind` reports it."""
        resource = resource_of(kind or obj["kind"])
        return self.api.create(resource.path(namespace=metadata(obj).get("namespace") or self.namespace), obj)

    def dry_run(self, obj: Object, kind: Kind = "") -> Object:
        """The object as it would be stored."""
        return self.api.create(f"{self.path(kind or obj['kind'])}?dryRun=All", obj)

    def placed(self, obj: Object) -> Object:
        return placed(obj, self.namespace)

    def put(self, obj: Object) -> Object:
        """Create it or replace its content; finalizers stay."""
        obj = self.placed(obj)
        kind, name = obj["kind"], obj["metadata"]["name"]
        while True:
            live = self.find(kind, name)
            if live is None:
                return self.create(obj)
            with contextlib.suppress(Conflict, NotFound):  # a user wrote to it or removed it meanwhile
                meta = {**live["metadata"], **obj["metadata"]}
                return self.api.update(self.path(kind, name), {**obj, "metadata": meta})

    def get(self, kind: Kind, name: str) -> Object:
        return self.api.get(self.path(kind, name))

    def find(self, kind: Kind, name: str) -> Object | None:
        return find_at(self.cluster, self.path(kind, name))

    def list(self, kind: Kind) -> list[Object]:
        found: list[Object] = self.api.get(self.path(kind))["items"]
        return found

    def patch(self, kind: Kind, name: str, body: Object, *, subresource: str = "") -> Object:
        return self.api.patch(self.path(kind, name, subresource=subresource), body)

    def delete(self, kind: Kind, name: str) -> None:
        self.api.delete(self.path(kind, name))

    def remove(self, kind: Kind, name: str) -> None:
        """Deletes what may be gone already."""
        with contextlib.suppress(NotFound):
            self.delete(kind, name)

    def condition(self, name: str, condition_type: str) -> Object:
        """Of a ManagedResource; empty if it has none, or there is no such ManagedResource."""
        return condition(self.find("ManagedResource", name) or {}, condition_type) or {}

    def statuses(self, name: str) -> tuple[str, str, str]:
        """Of a ManagedResource: whether it is applied, healthy, progressing."""
        kinds = ("ResourcesApplied", "ResourcesHealthy", "ResourcesProgressing")
        applied, healthy, progressing = (self.condition(name, kind).get("status", "") for kind in kinds)
        return applied, healthy, progressing


def writes(audit: Audit, *, user: str, since: int = 0, namespace: str | None = None) -> list[Call]:
    """By a user; refused ones are among them."""
    return [call for call in audit.calls(since=since, namespace=namespace, verbs=WRITES) if call.user == user]


def find_at(cluster: Cluster, path: str) -> Object | None:
    try:
        return cluster.api.get(path)
    except NotFound:
        return None
