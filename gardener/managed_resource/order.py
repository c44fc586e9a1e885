"""Order in which objects are applied and removed.

Objects are applied by kind and then by name, prerequisites first. They are removed in stages (`Stage`), each after the
one before is gone: a controller among the workloads has to see its custom resources go, and pods need their Secrets
until they end.
"""

from collections.abc import Callable, Iterable
from enum import IntEnum, auto
from itertools import groupby
from typing import TypeVar

from kube.objects import Object, group_of, metadata
from kube.resources import BUILT_IN_GROUPS

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
        items: any representation of objects.
        obj: gives the manifest of an item.
    """
    ordered = sorted(items, key=lambda item: (_kind_rank(obj(item)), metadata(obj(item)).get("name") or ""))
    return [list(stage) for _, stage in groupby(ordered, key=lambda item: _kind_rank(obj(item)))]


# --- removal


class Stage(IntEnum):
    """Stages in the order of removal."""

    ADMISSION = auto()
    """Webhooks and policies that could refuse the following, since their backends do not work."""
    CUSTOM_RESOURCES = auto()
    FINALIZED = auto()
    """Objects of Kubernetes' own kinds, with finalizers of others; at the same time as custom resources."""
    DEFINITIONS_IN_USE = auto()
    """CustomResourceDefinitions with objects that are not listed; these are removed with them."""
    FINALIZED_WORKLOADS = auto()
    WORKLOADS = auto()
    OTHERS = auto()
    """Other objects, at the same time as workloads: no traffic is routed to terminating pods."""
    USED = auto()
    """Objects that pods may need until they end."""
    DEFINITIONS = auto()
    """The other CustomResourceDefinitions."""


_RUN_PODS = frozenset(
    {
        *(("", kind) for kind in ("Pod", "ReplicationController")),
        *(("apps", kind) for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")),
        *(("extensions", kind) for kind in ("Deployment", "DaemonSet", "ReplicaSet")),
        *(("batch", kind) for kind in ("Job", "CronJob")),
    }
)
_USED_IN_NAMESPACE = frozenset(
    ("", kind) for kind in ("ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim")
)
_USED_ANYWHERE = frozenset(
    {
        ("", "PersistentVolume"),
        ("node.k8s.io", "RuntimeClass"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storage.k8s.io", "StorageClass"),
    }
)
_RIGHTS = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
_API_SERVICE = ("apiregistration.k8s.io", "APIService")
_NEVER_EARLY = frozenset(("", kind) for kind in ("Namespace", "PersistentVolume", "PersistentVolumeClaim"))
"""Kinds that stay in their stage despite finalizers: a Namespace takes its content along, and volumes wait for pods."""
_OF_KUBERNETES = frozenset(
    {
        *("foregroundDeletion", "kubernetes", "orphan"),
        *("kubernetes.io/pv-protection", "kubernetes.io/pvc-protection"),
        *("batch.kubernetes.io/job-tracking", "resource.kubernetes.io/delete-protection"),
        "customresourcecleanup.apiextensions.k8s.io",
    }
)
"""Finalizers that the control plane itself removes, independent of workloads."""


def removal_stage(reference: Object, finalizers: Iterable[str] = ()) -> Stage:
    """Stage of an object. Args: finalizers: of the live object."""
    name = _group_kind(reference)
    if name[0] not in BUILT_IN_GROUPS:
        return Stage.CUSTOM_RESOURCES
    if name[0] == _ADMISSION:
        return Stage.ADMISSION
    if name == _DEFINITION:
        return Stage.DEFINITIONS
    is_finalized = has_finalizers_of_others(finalizers)
    if name in _RUN_PODS:
        return Stage.FINALIZED_WORKLOADS if is_finalized else Stage.WORKLOADS
    if is_finalized and name not in _NEVER_EARLY:
        return Stage.FINALIZED
    return Stage.OTHERS if place_of_use(reference) is None else Stage.USED


def has_finalizers_of_others(finalizers: Iterable[str]) -> bool:
    return not _OF_KUBERNETES.issuperset(finalizers)


def runs_pods(reference: Object) -> bool:
    """Whether an object is gone only when its pods are, if it is deleted in the foreground."""
    return _group_kind(reference) in _RUN_PODS


def place_of_use(reference: Object) -> str | None:
    """The namespace whose pods may need an object until they end; empty for all namespaces, None if none does.

    Pod templates are not examined: a program may need more at its end than is mounted.
    """
    group, kind = name = _group_kind(reference)
    if (group, kind) == ("", "Namespace"):
        return reference.get("name") or ""
    if name in _USED_IN_NAMESPACE:
        return reference.get("namespace") or ""
    return "" if group == _RIGHTS or name in _USED_ANYWHERE else None


def is_api_service(reference: Object) -> bool:
    return _group_kind(reference) == _API_SERVICE


def defined_groups(references: Iterable[Object]) -> frozenset[str]:
    """API groups of the kinds that these objects define."""
    names = (each.get("name") or "" for each in references if _group_kind(each) in {_DEFINITION, _API_SERVICE})
    return frozenset(name.partition(".")[2] for name in names)


def _group_kind(reference: Object) -> tuple[str, str]:
    return group_of(reference.get("apiVersion") or ""), reference.get("kind") or ""
