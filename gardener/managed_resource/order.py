"""In which order objects are applied: what others need first, by kind and then by name."""

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import TypeVar

from kube.objects import Object, metadata

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
