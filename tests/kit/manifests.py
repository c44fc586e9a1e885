"""Objects for tests: what the API server demands, and what a test says beside it."""

import base64
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import orjson

from gardener import kinds
from gardener.kinds import MANAGED_RESOURCES
from kube import resources
from kube.objects import Object
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)

RBAC_GROUP = "rbac.authorization.k8s.io"
ROLES = Resource(RBAC_GROUP, "v1", "Role", "roles", namespaced=True)
ROLE_BINDINGS = Resource(RBAC_GROUP, "v1", "RoleBinding", "rolebindings", namespaced=True)
CLUSTER_ROLES = Resource(RBAC_GROUP, "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDINGS = Resource(RBAC_GROUP, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
VOLUME_CLAIMS = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True)
RESOURCE_QUOTAS = Resource("", "v1", "ResourceQuota", "resourcequotas", namespaced=True)
CONTAINERS: list[Object] = [{"name": "c", "image": "i"}]
GIBIBYTE: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
"""The spec of a claim."""

KINDS = {
    each.kind: each
    for names in (vars(resources), vars(kinds), globals())
    for each in names.values()
    if isinstance(each, Resource)
}
Kind: TypeAlias = Resource | str
"""The name will do for kinds that are named here, in `kube.resources` or in `gardener.kinds`."""


def resource_of(kind: Kind) -> Resource:
    return KINDS[kind] if isinstance(kind, str) else kind


def manifest(
    resource: Resource,
    name: str,
    *,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: Iterable[str] = (),
    **fields: Any,
) -> Object:
    given = {
        "namespace": namespace,
        "labels": dict(labels or {}),
        "annotations": dict(annotations or {}),
        "finalizers": list(finalizers),
    }
    meta = {"name": name, **{field: value for field, value in given.items() if value}}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **fields}


def placed(obj: Object, namespace: str, kind: Kind = "") -> Object:
    """In this namespace, if it names none and is of a kind with namespaces; one that is not known stays as it is."""
    kind = kind or obj.get("kind") or ""
    resource = KINDS.get(kind) if isinstance(kind, str) else kind
    if resource is None or not resource.namespaced:
        return obj
    return {**obj, "metadata": {"namespace": namespace, **obj.get("metadata", {})}}


def config_map(name: str, annotations: Mapping[str, str] | None = None, *, namespace: str = "", **data: str) -> Object:
    return manifest(CONFIG_MAPS, name, annotations=annotations, namespace=namespace, data=data or {"k": "v"})


def secret(name: str, data: Mapping[str, str | bytes] | None = None, **more: Any) -> Object:
    if data:
        more["data"] = encoded(data)
    return manifest(SECRETS, name, **more)


def encoded(data: Mapping[str, str | bytes]) -> dict[str, str]:
    """As the `data` of a Secret."""
    return {
        key: base64.b64encode(value if isinstance(value, bytes) else value.encode()).decode()
        for key, value in data.items()
    }


def decoded(secret: Object | None) -> dict[str, str]:
    """The `data` of a Secret; empty if there is no Secret, or nothing in it."""
    return {key: base64.b64decode(value).decode() for key, value in ((secret or {}).get("data") or {}).items()}


def bundle(name: str, *objects: Object, **more: Any) -> Object:
    """A Secret with these objects for a ManagedResource."""
    return secret(name, {"objects.yaml": b"".join(b"---\n" + orjson.dumps(obj) + b"\n" for obj in objects)}, **more)


def managed_resource(
    name: str, *, namespace: str = "", annotations: Mapping[str, str] | None = None, **spec: Any
) -> Object:
    """Of the Secret of the same name, unless the spec names others."""
    spec = {"secretRefs": [{"name": name}], **spec}
    return manifest(MANAGED_RESOURCES, name, namespace=namespace, annotations=annotations, spec=spec)


def service(name: str, *, ports: Iterable[Object] = ({"port": 80},), namespace: str = "", **spec: Any) -> Object:
    return manifest(SERVICES, name, namespace=namespace, spec={"ports": list(ports), **spec})


def pod(
    name: str,
    *,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """No kubelet is waited for when it is deleted."""
    spec = {"containers": CONTAINERS, "terminationGracePeriodSeconds": 0, **spec}
    return manifest(PODS, name, namespace=namespace, labels=labels, annotations=annotations, spec=spec)


def unscheduled_pod(name: str, **more: Any) -> Object:
    """Its status is whatever a test says."""
    return pod(name, schedulerName="nobody", **more)


def workload(
    resource: Resource,
    name: str,
    *,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    pod_labels: Mapping[str, str] | None = None,
    pod: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Object:
    """What has a selector and a template. Args: pod: further fields of the template's spec."""
    selected = {"app": name}
    template = {
        "metadata": {"labels": {**selected, **(pod_labels or {})}},
        "spec": {"containers": CONTAINERS, **(pod or {})},
    }
    spec = {"selector": {"matchLabels": selected}, "template": template, **spec}
    return manifest(resource, name, namespace=namespace, labels=labels, annotations=annotations, spec=spec)


def deployment(name: str, *, replicas: int = 0, **more: Any) -> Object:
    return workload(DEPLOYMENTS, name, replicas=replicas, **more)


def stateful_set(name: str, *, replicas: int = 0, **more: Any) -> Object:
    """With a claim `data` for each of its Pods."""
    claim = {"metadata": {"name": "data"}, "spec": GIBIBYTE}
    return workload(
        STATEFUL_SETS, name, **{"replicas": replicas, "serviceName": name, "volumeClaimTemplates": [claim], **more}
    )


def new_namespace(name: str, *, labels: Mapping[str, str] | None = None, **more: Any) -> Object:
    return manifest(NAMESPACES, name, labels=labels, **more)


def service_account(name: str, **more: Any) -> Object:
    return manifest(SERVICE_ACCOUNTS, name, **more)


def rule(group: str, plurals: str, verbs: str = "*", **more: Any) -> Object:
    """Of a role; several plurals and verbs with spaces between them."""
    return {"apiGroups": [group], "resources": plurals.split(), "verbs": verbs.split(), **more}


def role(name: str, *rules: Object, resource: Resource = ROLES, **more: Any) -> Object:
    return manifest(resource, name, rules=list(rules) or [rule("", "pods", "get")], **more)


def role_binding(name: str, *subjects: Object, of: Resource = ROLES, to: str = "", **more: Any) -> Object:
    """Of a role of that name, or of another."""
    resource = CLUSTER_ROLE_BINDINGS if of is CLUSTER_ROLES and not more.get("namespace") else ROLE_BINDINGS
    reference = {"apiGroup": RBAC_GROUP, "kind": of.kind, "name": to or name}
    return manifest(resource, name, roleRef=reference, subjects=list(subjects), **more)


def user(name: str) -> Object:
    return {"apiGroup": RBAC_GROUP, "kind": "User", "name": name}


def account(name: str, namespace: str) -> Object:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
