"""What pods may need until they end, and which workloads are waited for."""

import pytest

from gardener.managed_resource.messages import in_use_text
from gardener.managed_resource.order import place_of_use, runs_pods
from kit.objects import reference

RBAC = "rbac.authorization.k8s.io/v1"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        *((f"v1 {kind}", "ns") for kind in ("ConfigMap", "Secret", "ServiceAccount")),
        # Accounts of a namespace may have rights by bindings of others.
        *((f"{RBAC} {kind}", "") for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")),
        # With it goes all that is in it.
        ("v1 Namespace", "n"),
        *(
            (kind, None)
            for kind in ("v1 Service", "apps/v1 Deployment", "v1 Pod", "networking.k8s.io/v1 NetworkPolicy")
        ),
        ("example.com/v1 Secret", None),
    ],
)
def test_where_an_object_may_be_in_use(kind: str, expected: str | None) -> None:
    namespace = {} if kind == "v1 Namespace" else {"namespace": "ns"}
    assert place_of_use(reference(kind, "n", **namespace)) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        *((f"apps/v1 {kind}", True) for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")),
        *((f"batch/v1 {kind}", True) for kind in ("Job", "CronJob")),
        *((f"v1 {kind}", True) for kind in ("Pod", "ReplicationController")),
        ("extensions/v1beta1 Deployment", True),
        *((kind, False) for kind in ("v1 Service", "apps/v1 ControllerRevision", "example.com/v1 Deployment")),
    ],
)
def test_what_is_waited_for(kind: str, expected: bool) -> None:
    assert runs_pods(reference(kind, "n")) == expected


def test_the_first_workload_is_named() -> None:
    assert in_use_text(["apps/v1/Deployment/ns/b", "apps/v1/Deployment/ns/a"], timeout="10m") == (
        'waiting for at most 10m until "apps/v1/Deployment/ns/a" and 1 more are gone together with all pods, '
        "which may need it"
    )
