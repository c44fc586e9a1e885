"""In which order objects are applied and removed.

Applied by kind and then by name: what others need first. Removed all at once, except what pods may need until they end:
ConfigMaps, Secrets, ServiceAccounts, RBAC and Namespaces are removed after the workloads that may use them.
"""

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import TypeVar

from kube.objects import Object, group_of, metadata

T = TypeVar("T")

_KINDS = (
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
)
_RANK = {kind: rank for rank, kind in enumerate(_KINDS)}


def _kind_rank(obj: Object) -> tuple[int, str]:
    kind = obj.get("kind") or ""
    return (_RANK[kind], "") if kind in _RANK else (len(_RANK), kind)


def in_stages(items: Iterable[T], obj: Callable[[T], Object]) -> list[list[T]]:
    """The items in the order in which they are applied, those of one kind together.

    Objects of one kind don't need each other, so they may be applied at the same time.

    Args:
        items: whatever stands for an object.
        obj: gives the manifest of an item.
    """
    ordered = sorted(items, key=lambda item: (_kind_rank(obj(item)), metadata(obj(item)).get("name") or ""))
    return [list(stage) for _, stage in groupby(ordered, key=lambda item: _kind_rank(obj(item)))]


# --- removal

_RUN_PODS = frozenset(
    {
        *(("", kind) for kind in ("Pod", "ReplicationController")),
        *(("apps", kind) for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")),
        *(("extensions", kind) for kind in ("Deployment", "DaemonSet", "ReplicaSet")),
        *(("batch", kind) for kind in ("Job", "CronJob")),
    }
)
_USED_IN_NAMESPACE = frozenset(("", kind) for kind in ("ConfigMap", "Secret", "ServiceAccount"))
_RIGHTS = "rbac.authorization.k8s.io"


def runs_pods(reference: Object) -> bool:
    """Whether an object is gone only when its pods are, if it is deleted in the foreground."""
    return _group_kind(reference) in _RUN_PODS


def place_of_use(reference: Object) -> str | None:
    """The namespace whose pods may need an object until they end; empty for all namespaces, None if none does.

    It is not looked into pod templates: what a program needs at its end is not only what is mounted.
    """
    group, kind = _group_kind(reference)
    if (group, kind) == ("", "Namespace"):
        return reference.get("name") or ""
    if (group, kind) in _USED_IN_NAMESPACE:
        return reference.get("namespace") or ""
    return "" if group == _RIGHTS else None


def _group_kind(reference: Object) -> tuple[str, str]:
    return group_of(reference.get("apiVersion") or ""), reference.get("kind") or ""
