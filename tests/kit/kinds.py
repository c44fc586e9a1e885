"""Kinds of a test's own, which an API server serves without knowing what is in their objects.

An API server takes a CustomResourceDefinition well before it serves what it defines: wait for that.
"""

from collections.abc import Mapping

from devcluster.cluster import Cluster
from kit.eventually import eventually, soon
from kube.errors import NoStatus, NotFound, TooManyRequests
from kube.objects import Object
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from kube.runtime.client import Client


def custom_resource(group: str, kind: str, *, version: str = "v1", namespaced: bool = True) -> Resource:
    plural = kind.lower() + ("es" if kind.endswith("s") else "s")
    return Resource(group, version, kind, plural, namespaced=namespaced)


def definition(resource: Resource, *, has_status: bool = False, labels: Mapping[str, str] | None = None) -> Object:
    """The CustomResourceDefinition of a kind whose objects may contain anything."""
    version: Object = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        **({"subresources": {"status": {}}} if has_status else {}),
    }
    return {
        **CUSTOM_RESOURCE_DEFINITIONS.type_meta,
        "metadata": {
            "name": f"{resource.plural}.{resource.group}",
            "labels": dict(labels or {}),
            # Demanded for groups of Kubernetes.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
            },
            "versions": [version],
        },
    }


def definition_path(resource: Resource) -> str:
    return CUSTOM_RESOURCE_DEFINITIONS.path(name=f"{resource.plural}.{resource.group}")


def serve(
    cluster: Cluster, *resources: Resource, has_status: bool = False, labels: Mapping[str, str] | None = None
) -> None:
    """Has kinds served; another test may have done so before."""
    for resource in resources:
        cluster.api.apply(definition_path(resource), definition(resource, has_status=has_status, labels=labels))
    wait_until_served(cluster, *(resource.path() for resource in resources))


def wait_until_served(cluster: Cluster, *paths: str) -> None:
    """Returns when the collections at all these paths can be listed."""
    for path in paths:
        eventually(lambda path=path: cluster.api.get(path), path, passing=(NotFound, TooManyRequests))  # type: ignore[misc]


async def kinds_are_served(client: Client, *kinds: Resource) -> None:
    """The same on an event loop."""
    for kind in kinds:
        await soon(lambda kind=kind: client.read(kind.path()), kind.path(), passing=(NoStatus, TooManyRequests))  # type: ignore[misc]
