"""Objects as tests need them: what is not specified is left out, but for what the API server demands.

obj("apps/v1 Deployment", "shop/web", labels={"app": "web"}, spec={"replicas": 2})
deployment("web", namespace="shop", replicas=2)
managed_resource("garden/shop", conditions=conditions(applied="False", reason="ApplyFailed"))

Names are `namespace/name`, or the name alone. Fields of the metadata go there; each factory states where others go.
"""

import base64
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import orjson

from gardener.api import kinds
from gardener.api.kinds import MANAGED_RESOURCES
from kube import resources
from kube.errors import KindNotServed
from kube.objects import Object
from kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    PODS,
    RBAC_GROUP,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from kube.runtime.discovery import Discovery

CONTAINERS: list[Object] = [{"name": "c", "image": "i"}]
GIBIBYTE: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
"""The spec of a claim."""

KINDS = {
    each.kind: each
    for names in (vars(resources), vars(kinds))
    for each in names.values()
    if isinstance(each, Resource) and each != resources.NEW_EVENTS
}
Kind: TypeAlias = Resource | str
"""The name will do for kinds that are named in `kube.resources` or in `gardener.api.kinds`."""

_METADATA = {
    *("annotations", "creationTimestamp", "deletionTimestamp", "finalizers", "generateName", "generation", "labels"),
    *("managedFields", "namespace", "ownerReferences", "resourceVersion", "uid"),
}


def resource_of(kind: Kind) -> Resource:
    return KINDS[kind] if isinstance(kind, str) else kind


def obj(kind: Kind, name: str = "", **fields: Any) -> Object:
    """Args:
    kind: a kind, or its name behind its API version.
    fields: those that are not of the metadata stand beside it; None or "" in the metadata is as if it were not given.
    """
    if isinstance(kind, Resource) or " " not in kind:
        resource = resource_of(kind)
        kind = f"{resource.api_version} {resource.kind}"
    api_version, _, kind = kind.rpartition(" ")
    namespace, _, name = name.rpartition("/")
    named = {"name": name, **({"namespace": namespace} if namespace else {})} if name else {}
    metadata = {field: value for field, value in fields.items() if field in _METADATA and value not in (None, "")}
    others = {field: value for field, value in fields.items() if field not in _METADATA}
    return {"apiVersion": api_version, "kind": kind, "metadata": {**named, **metadata}, **others}


def specified(kind: Kind, name: str, defaults: Object, fields: Mapping[str, Any]) -> Object:
    """Fields that are not of the metadata are the spec's."""
    metadata = {field: value for field, value in fields.items() if field in _METADATA}
    spec = {field: value for field, value in fields.items() if field not in _METADATA}
    return obj(kind, name, spec={**defaults, **spec}, **metadata)


def placed(obj: Object, namespace: str, kind: Kind = "") -> Object:
    """In this namespace, if it names none and is of a kind with namespaces; one that is not known stays as it is."""
    kind = kind or obj.get("kind") or ""
    resource = KINDS.get(kind) if isinstance(kind, str) else kind
    if resource is None or not resource.namespaced:
        return obj
    return {**obj, "metadata": {"namespace": namespace, **obj.get("metadata", {})}}


def config_map(name: str = "", content: Mapping[str, str] | None = None, **fields: Any) -> Object:
    """Args: content: its `data`; none: something."""
    return obj(CONFIG_MAPS, name, **{"data": content or {"k": "v"}, **fields})


def secret(name: str = "", content: Mapping[str, str | bytes] | None = None, **fields: Any) -> Object:
    """Args: content: its `data`, not encoded yet."""
    if content:
        fields["data"] = encoded(content)
    return obj(SECRETS, name, **fields)


def encoded(data: Mapping[str, str | bytes]) -> dict[str, str]:
    """As the `data` of a Secret."""
    return {
        key: base64.b64encode(value if isinstance(value, bytes) else value.encode()).decode()
        for key, value in data.items()
    }


def decoded(secret: Object | None) -> dict[str, str]:
    """The `data` of a Secret; empty if there is no Secret, or nothing in it."""
    return {key: base64.b64decode(value).decode() for key, value in ((secret or {}).get("data") or {}).items()}


def bundle(name: str, *objects: Object, **fields: Any) -> Object:
    """A Secret with these objects for a ManagedResource."""
    return secret(name, {"objects.yaml": b"".join(b"---\n" + orjson.dumps(obj) + b"\n" for obj in objects)}, **fields)


def managed_resource(
    name: str = "", *, spec: Object | None = None, conditions: list[Object] | None = None, **fields: Any
) -> Object:
    """Of the Secret of the same name, unless the spec names others."""
    status = {} if conditions is None else {"status": {"conditions": conditions, **fields.pop("status", {})}}
    spec = {"secretRefs": [{"name": name.rpartition("/")[2]}], **(spec or {})}
    return obj(MANAGED_RESOURCES, name, spec=spec, **fields, **status)


def conditions(
    *, applied: str = "True", healthy: str = "True", progressing: str = "False", **fields: str
) -> list[Object]:
    """Those of a ManagedResource, of a healthy one unless something else is specified; an empty status: there is none."""
    statuses = {"ResourcesApplied": applied, "ResourcesHealthy": healthy, "ResourcesProgressing": progressing}
    return [{"type": kind, "status": status, **fields} for kind, status in statuses.items() if status]


def reference(kind: str, name: str, **fields: Any) -> Object:
    """An object as an inventory lists it."""
    api_version, _, kind = kind.rpartition(" ")
    namespace, _, name = name.rpartition("/")
    return {"apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name, **fields}


def service(name: str, *, ports: Iterable[Object] = ({"port": 80},), **fields: Any) -> Object:
    """Args: fields: of the spec."""
    return specified(SERVICES, name, {"ports": list(ports)}, fields)


def service_warning(name: str, message: str) -> Object:
    """An Event `e` about a Service whose load balancer could not be made."""
    about = reference("v1 Service", name)
    reported = {"type": "Warning", "reason": "SyncLoadBalancerFailed", "message": message}
    return obj(EVENTS, "e", involvedObject=about, source={"component": "service-controller"}, **reported)


def pod(name: str, **fields: Any) -> Object:
    """No kubelet is waited for when it is deleted. Args: fields: of the spec."""
    return specified(PODS, name, {"containers": CONTAINERS, "terminationGracePeriodSeconds": 0}, fields)


def unscheduled_pod(name: str, **fields: Any) -> Object:
    """Its status is whatever a test states."""
    return pod(name, schedulerName="none", **fields)


def workload(
    kind: Kind,
    name: str,
    *,
    pod_labels: Mapping[str, str] | None = None,
    pod: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Object:
    """What has a selector and a template, and further fields of the spec. Args: pod: those of the template's spec."""
    selected = {"app": name}
    template = {
        "metadata": {"labels": {**selected, **(pod_labels or {})}},
        "spec": {"containers": CONTAINERS, **(pod or {})},
    }
    return specified(kind, name, {"selector": {"matchLabels": selected}, "template": template}, fields)


def deployment(name: str, *, replicas: int = 0, **fields: Any) -> Object:
    return workload(DEPLOYMENTS, name, replicas=replicas, **fields)


def stateful_set(name: str, *, replicas: int = 0, **fields: Any) -> Object:
    """With a claim `data` for each of its Pods."""
    claim = {"metadata": {"name": "data"}, "spec": GIBIBYTE}
    return workload(
        STATEFUL_SETS, name, replicas=replicas, serviceName=name, **{"volumeClaimTemplates": [claim], **fields}
    )


def rule(group: str, plurals: str, verbs: str = "*", **fields: Any) -> Object:
    """Of a role; several plurals and verbs with spaces between them."""
    return {"apiGroups": [group], "resources": plurals.split(), "verbs": verbs.split(), **fields}


def role(name: str, *rules: Object, kind: Resource = ROLES, **fields: Any) -> Object:
    return obj(kind, name, rules=list(rules) or [rule("", "pods", "get")], **fields)


def role_binding(name: str, *subjects: Object, of: Resource = ROLES, to: str = "", **fields: Any) -> Object:
    """Of a role of that name, or of another."""
    kind = CLUSTER_ROLE_BINDINGS if of is CLUSTER_ROLES and not fields.get("namespace") else ROLE_BINDINGS
    reference = {"apiGroup": RBAC_GROUP, "kind": of.kind, "name": to or name}
    return obj(kind, name, roleRef=reference, subjects=list(subjects), **fields)


def user(name: str) -> Object:
    return {"apiGroup": RBAC_GROUP, "kind": "User", "name": name}


def account(name: str, namespace: str) -> Object:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


class Served(Discovery):
    """Discovery of a cluster that serves these kinds, without one."""

    def __init__(self, *kinds: Resource) -> None:
        self._listed = kinds

    async def find(self, api_version: str, kind: str) -> Resource:
        for resource in self._listed:
            if (resource.api_version, resource.kind) == (api_version, kind):
                return resource
        raise KindNotServed(api_version, kind)

    async def served(self) -> tuple[Resource, ...]:
        return self._listed
