"""Simulated cluster that is made of files, for commands without a cluster."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

from kube.errors import NotFound
from kube.objects import Key, Object, group_of, key, key_of, labels
from kube.resources import Resource
from kube.runtime.cache import Caches
from kube.runtime.client import Client, Selection
from kube.runtime.connection import Connection, Fixed
from kube.runtime.discovery import Discovery
from kube.runtime.transport import Transport
from process.clusters import Cluster

_CLUSTER_SCOPED = frozenset(
    (
        *("APIService", "CSIDriver", "CSINode", "CertificateSigningRequest", "ClusterIssuer", "ClusterRole"),
        *("ClusterRoleBinding", "CustomResourceDefinition", "FlowSchema", "IngressClass"),
        *("MutatingWebhookConfiguration", "Namespace", "Node", "PersistentVolume", "PodSecurityPolicy"),
        *("PriorityClass", "PriorityLevelConfiguration", "RuntimeClass", "StorageClass"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration"),
        "VolumeAttachment",
    )
)
_PLURALS = {"Endpoints": "endpoints", "Hvpa": "hvpas", "Etcd": "etcds"}


class Kinds(Discovery):
    """Every kind is served; custom ones according to their definitions, or else namespaced.

    Args: objects: among them definitions.
    """

    def __init__(self, objects: Iterable[Object] = ()) -> None:
        super().__init__(OfflineClient(()))
        self._defined = dict(_definitions(objects))

    async def find(self, api_version: str, kind: str) -> Resource:
        return self.resource(api_version, kind)

    def resource(self, api_version: str, kind: str) -> Resource:
        group, version = group_of(api_version), api_version.rpartition("/")[2]
        plural, namespaced = self._defined.get((group, kind), (plural_of(kind), kind not in _CLUSTER_SCOPED))
        return Resource(group, version, kind, plural, namespaced)


def _definitions(objects: Iterable[Object]) -> Iterable[tuple[tuple[str, str], tuple[str, bool]]]:
    for obj in objects:
        if obj.get("kind") == "CustomResourceDefinition":
            spec = obj.get("spec") or {}
            names = spec.get("names") or {}
            named = str(spec.get("group") or ""), str(names.get("kind") or "")
            yield named, (str(names.get("plural") or ""), spec.get("scope") != "Cluster")


def plural_of(kind: str) -> str:
    """Plural of a kind in paths, right for the built-in kinds."""
    if kind in _PLURALS:
        return _PLURALS[kind]
    lower = kind.lower()
    if lower.endswith("y"):
        return f"{lower[:-1]}ies"
    return f"{lower}es" if lower.endswith(("s", "x", "ch")) else f"{lower}s"


class OfflineClient(Client):
    """Answers from objects, without a connection. Nothing ever changes."""

    def __init__(self, objects: Sequence[Object]) -> None:
        connection = Connection(server="https://offline.invalid", tls=None, credentials=Fixed(), identity=())
        super().__init__(Transport(connection), user_agent="offline")
        self._objects = objects

    def _of(self, resource: Resource) -> list[Object]:
        wanted = (resource.group, resource.kind)
        return [obj for obj in self._objects if (group_of(obj.get("apiVersion") or ""), obj.get("kind")) == wanted]

    async def get(self, resource: Resource, name: Key | str, **_: Any) -> Object:
        own = key_of(name)
        for obj in self._of(resource):
            found = key(obj)
            if found.name == own.name and (not resource.namespaced or found.namespace == own.namespace):
                return obj
        message = f'{resource.plural} "{own.name}" not found'
        raise NotFound(404, message=message, reason="NotFound", details={"name": own.name, "kind": resource.plural})

    async def list_page(self, resource: Resource, selection: Selection, **_: Any) -> Object:
        found = [obj for obj in self._of(resource) if _is_selected(obj, selection)]
        return {"metadata": {"resourceVersion": "1"}, "items": found}

    @contextlib.asynccontextmanager
    async def watch(self, *_: Any, **_options: Any) -> AsyncIterator[AsyncIterator[Object]]:
        yield _nothing()


async def _nothing() -> AsyncIterator[Object]:
    await asyncio.Event().wait()
    yield {}


def _is_selected(obj: Object, selection: Selection) -> bool:
    if selection.namespace and key(obj).namespace != selection.namespace:
        return False
    if not _has(labels(obj), selection.label_selector):
        return False
    fields = {"metadata.name": key(obj).name, "metadata.namespace": key(obj).namespace}
    return _has(fields, selection.field_selector)


def _has(values: Mapping[str, str], selector: str) -> bool:
    """Whether the values match a selector of the form `a=b,c=d`."""
    wanted = (part.partition("=") for part in selector.split(",") if part)
    return all(values.get(name) == value for name, _, value in wanted)


def cluster_of(objects: Sequence[Object]) -> Cluster:
    """Cluster made of these objects; close it by closing its caches."""
    client = OfflineClient(objects)
    return Cluster(
        transport=client.transport, client=client, caches=Caches(client), discovery=Kinds(objects), namespaces=()
    )
