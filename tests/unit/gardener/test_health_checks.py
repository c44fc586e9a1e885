"""What is wrong with an object, kind by kind; None means healthy."""

from typing import Any

import pytest

from gardener.health.checks.registry import BUILT_IN
from gardener.health.findings import Reference, health_finding
from kube.objects import Object

Row = tuple[Object, str | None]
"""An object, and what is wrong with it."""


def generation(number: int, **parts: Any) -> Object:
    return {"metadata": {"name": "a", "namespace": "n", "generation": number}, **parts}


def observed(spec: Object | None = None, **status: Any) -> Object:
    """Its controller has seen it as it is."""
    return generation(1, spec=spec, status={"observedGeneration": 1, **status})


def condition(kind_and_status: str, **more: Any) -> Object:
    kind, status = kind_and_status.split()
    return {"type": kind, "status": status, **more}


def conditions(*entries: Object, **status: Any) -> Object:
    return generation(1, status={"conditions": list(entries), **status})


def wrong(kind_and_status: str, reason: str = "", message: str = "") -> str:
    kind, status = kind_and_status.split()
    expected = "False" if status == "True" else "True"
    return f'condition "{kind}" has invalid status {status} (expected {expected}) due to {reason}: {message}'


NAMES, SERVED = condition("NamesAccepted True"), condition("Established True")
INSTALLING = {"reason": "Installing", "message": "the names have been accepted"}
CRD: list[Row] = [
    (conditions(NAMES, SERVED), None),
    (conditions(), 'condition "NamesAccepted" is missing'),
    (conditions(NAMES), 'condition "Established" is missing'),
    (conditions(NAMES, condition("Established False", **INSTALLING)), wrong("Established False", **INSTALLING)),
    (conditions(SERVED, condition("NamesAccepted False"), condition("Terminating True")), wrong("NamesAccepted False")),
    (
        conditions(NAMES, SERVED, condition("Terminating True", reason="D", message="m")),
        wrong("Terminating True", "D", "m"),
    ),
    (conditions(NAMES, SERVED, condition("Terminating False")), None),
]


def deployment(*entries: Object) -> Object:
    return conditions(*entries, observedGeneration=1)


AVAILABLE = condition("Available True")
TOO_FEW = {"reason": "MinimumReplicasUnavailable", "message": "Too few."}
DEPLOYMENT: list[Row] = [
    (deployment(AVAILABLE), None),
    (conditions(AVAILABLE, observedGeneration=2), None),
    (generation(2, status={"observedGeneration": 1}), "observed generation outdated (1/2)"),
    (generation(1), "observed generation outdated (0/1)"),
    (deployment(), 'condition "Available" is missing'),
    (
        deployment(condition("Available False", **TOO_FEW), condition("Progressing False")),
        wrong("Available False", **TOO_FEW),
    ),
    (deployment(AVAILABLE, condition("Progressing Unknown", reason="R")), wrong("Progressing Unknown", "R")),
    (
        deployment(AVAILABLE, condition("Progressing True"), condition("ReplicaFailure True", message="quota")),
        wrong("ReplicaFailure True", "", "quota"),
    ),
    (deployment(AVAILABLE, condition("ReplicaFailure False")), None),
    # The first condition of a type counts.
    (deployment(AVAILABLE, condition("Available False")), None),
    # Replicas are never compared.
    (observed({"replicas": 5}, conditions=[AVAILABLE], updatedReplicas=1), None),
]

STATEFUL_SET: list[Row] = [
    (observed(readyReplicas=1), None),
    (observed(), "not enough ready replicas (0/1)"),
    (observed({"replicas": 0}), None),
    (observed({"replicas": 3}, readyReplicas=2), "not enough ready replicas (2/3)"),
    (generation(4, spec={"replicas": 3}, status={"observedGeneration": 3}), "observed generation outdated (3/4)"),
]


def daemon_set(max_unavailable: Any = None, *, strategy: str = "RollingUpdate", **numbers: int) -> Object:
    rolling = None if max_unavailable is None else {"maxUnavailable": max_unavailable}
    spec = {"updateStrategy": {"type": strategy, "rollingUpdate": rolling}}
    return observed(spec, **{"desiredNumberScheduled": 5, "currentNumberScheduled": 5, **numbers})


def too_many(unavailable: int, allowed: int | None = None) -> str:
    limit = "" if allowed is None else f", only max. {allowed} unavailable pods allowed"
    return f"too many unavailable pods found ({unavailable}/5{limit})"


DAEMON_SET: list[Row] = [
    (daemon_set(updatedNumberScheduled=5), None),
    (daemon_set(observedGeneration=0), "observed generation outdated (0/1)"),
    (daemon_set(currentNumberScheduled=4, numberMisscheduled=1), "not enough scheduled pods (4/5)"),
    (daemon_set(numberMisscheduled=2, numberUnavailable=3), "misscheduled pods found (2)"),
    # Rolling out: a percentage is rounded down.
    (daemon_set("30%", updatedNumberScheduled=3, numberUnavailable=1), None),
    (daemon_set("30%", updatedNumberScheduled=3, numberUnavailable=2), too_many(2, 1)),
    (daemon_set(2, updatedNumberScheduled=3, numberUnavailable=2), None),
    (daemon_set(2, updatedNumberScheduled=3, numberUnavailable=3), too_many(3, 2)),
    (daemon_set("2", updatedNumberScheduled=3, numberUnavailable=1), too_many(1, 0)),
    (daemon_set("many%", updatedNumberScheduled=3, numberUnavailable=1), too_many(1, 0)),
    (daemon_set(updatedNumberScheduled=3, numberUnavailable=1), too_many(1, 0)),
    (daemon_set(2, strategy="OnDelete", updatedNumberScheduled=3, numberUnavailable=1), too_many(1, 0)),
    # Rolled out: none may be unavailable.
    (daemon_set(2, updatedNumberScheduled=5, numberUnavailable=1), too_many(1)),
    (daemon_set(desiredNumberScheduled=0, currentNumberScheduled=0), None),
    (daemon_set(3, desiredNumberScheduled=0, numberUnavailable=1), too_many(1)),
]


def replicas(kind: str) -> list[Row]:
    return [
        (observed(), None),
        (observed({"replicas": 2}, readyReplicas=2), None),
        (observed({"replicas": 2}, readyReplicas=1), f"{kind} does not have minimum availability"),
        (generation(1, spec={"replicas": 2}), "observed generation outdated (0/1)"),
    ]


TOO_LATE = {"reason": "DeadlineExceeded", "message": "was active too long"}
JOB: list[Row] = [
    (generation(1), None),
    (conditions(condition("Failed False")), None),
    (conditions(condition("Complete False"), condition("Failed True", **TOO_LATE)), wrong("Failed True", **TOO_LATE)),
]

INVALID_PHASE = 'pod is in invalid phase "{}" (expected one of ["Running" "Succeeded"])'
POD: list[Row] = [
    *((generation(1, status={"phase": phase}), None) for phase in ("Running", "Succeeded")),
    *(
        (generation(1, status={"phase": phase}), INVALID_PHASE.format(phase))
        for phase in ("Pending", "Failed", "Unknown", "")
    ),
]


def balancer(**status: Any) -> Object:
    return generation(1, spec={"type": "LoadBalancer"}, status=status)


SERVICE: list[Row] = [
    (generation(1, spec={"type": "ClusterIP"}), None),
    (balancer(), "service is missing ingress status"),
    (balancer(loadBalancer={"ingress": []}), "service is missing ingress status"),
    (balancer(loadBalancer={"ingress": [{"ip": "::1"}]}), None),
]

AUTOSCALER: list[Row] = [
    (generation(7), None),
    (conditions(condition("ConfigUnsupported False")), None),
    (
        conditions(condition("ConfigUnsupported True", reason="R", message="m")),
        wrong("ConfigUnsupported True", "R", "m"),
    ),
]


def monitoring(available: int, *, status: str = "True", observed: int = 3, replicas: int | None = None) -> Object:
    entry = condition(f"Available {status}", reason="R", message="m", observedGeneration=observed)
    return generation(3, spec={"replicas": replicas}, status={"conditions": [entry], "availableReplicas": available})


MONITORING: list[Row] = [
    (generation(3, status={"availableReplicas": 1}), 'condition "Available" is missing'),
    (monitoring(1), None),
    (monitoring(1, observed=2), "observed generation outdated (2/3)"),
    (monitoring(1, status="Degraded"), wrong("Available Degraded", "R", "m")),
    (monitoring(1, replicas=2), "not enough available replicas (1/2)"),
    (monitoring(0), "not enough available replicas (0/1)"),
]

CERTIFICATE: list[Row] = [
    (generation(5, status={"state": "Ready", "observedGeneration": 1}), None),
    (generation(1), 'certificate state is "" ("Ready" expected)'),
    (generation(1, status={"state": 'a "b"'}), r'certificate state is "a \"b\"" ("Ready" expected)'),
    (conditions(condition("Ready True"), state="Ready"), None),
    (conditions(condition("Ready False"), state="Error"), wrong("Ready False")),
]

ISSUER: list[Row] = [
    (generation(5, status={"state": "Ready"}), None),
    (conditions(condition("Ready False"), state="Ready"), None),
    (generation(1, status={"state": "Error"}), 'issuer state is "Error" ("Ready" expected)'),
]

KINDS: dict[str, list[Row]] = {
    "apiextensions.k8s.io/v1 CustomResourceDefinition": CRD,
    "apiextensions.k8s.io/v1beta1 CustomResourceDefinition": [
        (conditions(NAMES), 'condition "Established" is missing')
    ],
    "apps/v1 Deployment": DEPLOYMENT,
    "apps/v1 StatefulSet": STATEFUL_SET,
    "apps/v1 DaemonSet": DAEMON_SET,
    "apps/v1 ReplicaSet": replicas("ReplicaSet"),
    "v1 ReplicationController": replicas("ReplicationController"),
    "batch/v1 Job": JOB,
    "v1 Pod": POD,
    "v1 Service": SERVICE,
    "autoscaling.k8s.io/v1 VerticalPodAutoscaler": AUTOSCALER,
    "monitoring.coreos.com/v1 Prometheus": MONITORING,
    "monitoring.coreos.com/v1 Alertmanager": MONITORING,
    "cert.gardener.cloud/v1alpha1 Certificate": CERTIFICATE,
    "cert.gardener.cloud/v1alpha1 Issuer": ISSUER,
}
ROWS = [(*kind.split(), *row) for kind, rows in KINDS.items() for row in rows]


@pytest.mark.parametrize(("api_version", "kind", "obj", "expected"), ROWS)
def test_the_first_thing_that_is_wrong_is_reported(
    api_version: str, kind: str, obj: Object, expected: str | None
) -> None:
    rule = BUILT_IN.health(api_version, kind)
    assert rule is not None
    assert rule.health(obj) == expected


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("apps/v1beta1", "Deployment"),
        ("extensions/v1beta1", "DaemonSet"),
        ("batch/v1beta1", "Job"),
        ("cert-manager.io/v1", "Certificate"),
        ("example.com/v1", "Pod"),
        ("v1", "PersistentVolumeClaim"),
    ],
)
def test_other_kinds_and_versions_are_healthy_when_they_exist(api_version: str, kind: str) -> None:
    assert BUILT_IN.health(api_version, kind) is None
    assert health_finding(Reference(api_version, kind, "n", "a"), generation(1)) is None


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"spec": {"replicas": "2"}}, "spec.replicas must be an integer, not a string"),
        ({"status": {"availableReplicas": True}}, "status.availableReplicas must be an integer, not a boolean"),
        ({"status": ["x"]}, "status must be an object, not a list"),
        ({"status": {"conditions": {}}}, "status.conditions must be a list, not an object"),
        ({"status": {"conditions": ["x"]}}, "status.conditions must be a list of objects, not a string"),
        ({"status": {"conditions": [{"type": "Available", "reason": 1.5}]}}, "reason must be a string, not a fraction"),
    ],
)
def test_a_field_of_the_wrong_type_is_a_finding_of_its_own(fields: Any, complaint: str) -> None:
    reference = Reference("monitoring.coreos.com/v1", "Prometheus", "n", "a")
    finding = health_finding(reference, generation(1, **fields))
    assert finding is not None
    assert finding.reason == "HealthCheckError"
    assert finding.message == f'Error executing health check for Prometheus "n/a": {complaint}'
