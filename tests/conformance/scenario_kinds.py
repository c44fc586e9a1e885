"""Kinds that scenarios take for granted, as CustomResourceDefinitions whose objects may be anything."""

from typing import Any

from served_kinds import wait_until_served

from devcluster.cluster import Cluster

KINDS = [
    ("autoscaling.k8s.io", "v1", "VerticalPodAutoscaler", "Namespaced"),
    ("monitoring.coreos.com", "v1", "Prometheus", "Namespaced"),
    ("monitoring.coreos.com", "v1", "Alertmanager", "Namespaced"),
    ("cert.gardener.cloud", "v1alpha1", "Certificate", "Namespaced"),
    ("cert.gardener.cloud", "v1alpha1", "Issuer", "Namespaced"),
    ("conf.example.com", "v1", "Thing", "Namespaced"),
    ("conf.example.com", "v1", "GlobalThing", "Cluster"),
]
"""Group, version, kind, scope."""
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def install_kinds(cluster: Cluster) -> None:
    """Returns when they are served."""
    for kind in KINDS:
        cluster.api.create(DEFINITIONS, _definition(*kind))
    wait_until_served(cluster, *(f"/apis/{group}/{version}/{_plural(kind)}" for group, version, kind, _ in KINDS))


def _plural(kind: str) -> str:
    return kind.lower() + ("es" if kind.endswith("s") else "s")


def _definition(group: str, version: str, kind: str, scope: str) -> dict[str, Any]:
    plural = _plural(kind)
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [
                {"name": version, "served": True, "storage": True, "subresources": {"status": {}}, "schema": schema}
            ],
        },
    }
