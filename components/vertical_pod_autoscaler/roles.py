"""Rights of the parts of the vertical pod autoscaler.

Roles are named after their purpose; each is bound to the parts that need it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from components.access import (
    READ,
    cluster_role,
    cluster_role_binding,
    role,
    role_binding,
    rule,
    service_account,
)
from components.parts import GARDEN
from kube.objects import Object

ADMISSION, RECOMMENDER, UPDATER = "vpa-admission-controller", "vpa-recommender", "vpa-updater"
PARTS = (ADMISSION, RECOMMENDER, UPDATER)
_GROUP = "autoscaling.k8s.io"
_AUTOSCALERS = "verticalpodautoscalers"
_PREFIX = "gardener.cloud:vpa:source:"


class _Role(NamedTuple):
    rules: Sequence[Object]
    parts: Sequence[str]


_ROLES: Mapping[str, _Role] = {
    "actor": _Role(
        [
            rule("", ("pods", "nodes", "limitranges"), READ),
            rule("", "events", (*READ, "create")),
            rule(_GROUP, _AUTOSCALERS, READ),
            rule("coordination.k8s.io", "leases", READ),
        ],
        (RECOMMENDER, UPDATER),
    ),
    "admission-controller": _Role(
        [
            rule("", ("pods", "configmaps", "nodes", "limitranges"), READ),
            rule("admissionregistration.k8s.io", "mutatingwebhookconfigurations", ("create", "delete", "get", "list")),
            rule(_GROUP, _AUTOSCALERS, READ),
            rule("coordination.k8s.io", "leases", ("create", "update", *READ)),
        ],
        (ADMISSION,),
    ),
    "checkpoint-actor": _Role(
        [
            rule(_GROUP, "verticalpodautoscalercheckpoints", (*READ, "create", "patch", "delete")),
            rule("", "namespaces", ("get", "list")),
        ],
        (RECOMMENDER,),
    ),
    "evictioner": _Role(
        [rule(("apps", "extensions"), "replicasets", "get"), rule("", "pods/eviction", "create")], (UPDATER,)
    ),
    "metrics-reader": _Role([rule("metrics.k8s.io", "pods", ("get", "list"))], (RECOMMENDER,)),
    "status-actor": _Role([rule(_GROUP, f"{_AUTOSCALERS}/status", ("get", "patch"))], (RECOMMENDER,)),
    "target-reader": _Role(
        [
            rule("*", "*/scale", ("get", "watch")),
            rule("", "replicationcontrollers", READ),
            rule("apps", ("daemonsets", "deployments", "replicasets", "statefulsets"), READ),
            rule("batch", ("jobs", "cronjobs"), READ),
            rule("druid.gardener.cloud", ("etcds", "etcds/scale"), READ),
        ],
        PARTS,
    ),
}


def objects(labels: Mapping[str, str]) -> Iterator[Object]:
    """ServiceAccounts of all parts, and their roles."""
    for part in PARTS:
        yield service_account(part, GARDEN, labels=labels)
    for name, (rules, parts) in _ROLES.items():
        full = f"{_PREFIX}{name}"
        yield cluster_role(full, *rules, labels=labels)
        yield cluster_role_binding(full, *parts, namespace=GARDEN, labels=labels, is_replaceable=True)
    for part in (RECOMMENDER, UPDATER):
        full = f"{_PREFIX}leader-locking-{part}"
        leases = [
            rule("coordination.k8s.io", "leases", "create"),
            rule("coordination.k8s.io", "leases", ("get", "watch", "update"), names=[part]),
        ]
        yield role(full, GARDEN, *leases, labels=labels)
        yield role_binding(full, GARDEN, part, labels=labels)
