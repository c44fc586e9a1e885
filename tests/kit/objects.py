"""Objects as tests need them: what is not said is left out.

obj("apps/v1 Deployment", "shop/web", labels={"app": "web"}, spec={"replicas": 2})
managed_resource("garden/shop", conditions=conditions(applied="False", reason="ApplyFailed"))
"""

from typing import Any

from gardener.kinds import MANAGED_RESOURCES
from kube.errors import KindNotServed
from kube.objects import Object
from kube.resources import Resource

_METADATA = {
    *("annotations", "creationTimestamp", "deletionTimestamp", "finalizers", "generateName", "generation", "labels"),
    *("managedFields", "ownerReferences", "resourceVersion", "uid"),
}


def obj(kind: str, name: str = "", **fields: Any) -> Object:
    """Args:
    kind: behind its API version.
    name: `namespace/name`, or the name alone.
    fields: those of the metadata go there, others stand beside it.
    """
    api_version, _, kind = kind.rpartition(" ")
    namespace, _, name = name.rpartition("/")
    named = {"name": name, **({"namespace": namespace} if namespace else {})} if name else {}
    metadata = {field: value for field, value in fields.items() if field in _METADATA}
    others = {field: value for field, value in fields.items() if field not in _METADATA}
    return {"apiVersion": api_version, "kind": kind, "metadata": {**named, **metadata}, **others}


def config_map(name: str = "", **fields: Any) -> Object:
    return obj("v1 ConfigMap", name, **fields)


def secret(name: str = "", **fields: Any) -> Object:
    return obj("v1 Secret", name, **fields)


def managed_resource(name: str = "", *, conditions: list[Object] | None = None, **fields: Any) -> Object:
    status = {} if conditions is None else {"status": {"conditions": conditions, **fields.pop("status", {})}}
    return obj(f"{MANAGED_RESOURCES.api_version} {MANAGED_RESOURCES.kind}", name, **fields, **status)


def conditions(
    *, applied: str = "True", healthy: str = "True", progressing: str = "False", **fields: str
) -> list[Object]:
    """Those of a ManagedResource, of a healthy one unless something else is said; an empty status: there is none."""
    statuses = {"ResourcesApplied": applied, "ResourcesHealthy": healthy, "ResourcesProgressing": progressing}
    return [{"type": kind, "status": status, **fields} for kind, status in statuses.items() if status]


def reference(kind: str, name: str, **fields: Any) -> Object:
    """An object as an inventory lists it."""
    api_version, _, kind = kind.rpartition(" ")
    namespace, _, name = name.rpartition("/")
    return {"apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name, **fields}


class Served:
    """Discovery of a cluster that serves these kinds, without one."""

    def __init__(self, *kinds: Resource) -> None:
        self._kinds = kinds

    async def find(self, api_version: str, kind: str) -> Resource:
        for resource in self._kinds:
            if (resource.api_version, resource.kind) == (api_version, kind):
                return resource
        raise KindNotServed(api_version, kind)
