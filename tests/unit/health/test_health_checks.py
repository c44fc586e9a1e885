"""What is wrong with an object, kind by kind; None means healthy."""

from typing import Any

import pytest

from agent.health.checks.registry import health_rule
from agent.health.findings import Reference, health_finding
from kube.objects import Object

Row = tuple[str, str, Object, str | None]


def generation(number: int, **parts: Any) -> Object:
    return {"metadata": {"name": "a", "namespace": "n", "generation": number}, **parts}


def condition(kind: str, status: str, **more: Any) -> Object:
    return {"type": kind, "status": status, **more}


def conditions(*entries: Object, **status: Any) -> Object:
    return generation(1, status={"conditions": list(entries), **status})


def wrong(kind: str, actual: str, expected: str, reason: str = "", message: str = "") -> str:
    return f'condition "{kind}" has invalid status {actual} (expected {expected}) due to {reason}: {message}'


NAMES, SERVED = condition("NamesAccepted", "True"), condition("Established", "True")
CRD = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
CRD_ROWS: list[Row] = [
    (*CRD, conditions(NAMES, SERVED), None),
    (*CRD, conditions(), 'condition "NamesAccepted" is missing'),
    (*CRD, conditions(NAMES), 'condition "Established" is missing'),
    (
        *CRD,
        conditions(
            NAMES,
            condition("Established", "False", reason="Installing", message="the names have been accepted"),
        ),
        wrong("Established", "False", "True", "Installing", "the names have been accepted"),
    ),
    (
        *CRD,
        conditions(SERVED, condition("NamesAccepted", "False"), condition("Terminating", "True")),
        wrong("NamesAccepted", "False", "True"),
    ),
    (
        *CRD,
        conditions(NAMES, SERVED, condition("Terminating", "True", reason="D", message="m")),
        wrong("Terminating", "True", "False", "D", "m"),
    ),
    (*CRD, conditions(NAMES, SERVED, condition("Terminating", "False")), None),
    (
        "apiextensions.k8s.io/v1beta1",
        "CustomResourceDefinition",
        conditions(NAMES),
        'condition "Established" is missing',
    ),
]

DEPLOYMENT = "apps/v1", "Deployment"
AVAILABLE = condition("Available", "True")
DEPLOYMENT_ROWS: list[Row] = [
    (*DEPLOYMENT, conditions(AVAILABLE, observedGeneration=1), None),
    (*DEPLOYMENT, conditions(AVAILABLE, observedGeneration=2), None),
    (
        *DEPLOYMENT,
        generation(2, status={"observedGeneration": 1}),
        "observed generation outdated (1/2)",
    ),
    (*DEPLOYMENT, generation(1), "observed generation outdated (0/1)"),
    (*DEPLOYMENT, conditions(observedGeneration=1), 'condition "Available" is missing'),
    (
        *DEPLOYMENT,
        conditions(
            condition("Available", "False", reason="MinimumReplicasUnavailable", message="Too few."),
            condition("Progressing", "False"),
            observedGeneration=1,
        ),
        wrong("Available", "False", "True", "MinimumReplicasUnavailable", "Too few."),
    ),
    (
        *DEPLOYMENT,
        conditions(AVAILABLE, condition("Progressing", "Unknown", reason="R"), observedGeneration=1),
        wrong("Progressing", "Unknown", "True", "R"),
    ),
    (
        *DEPLOYMENT,
        conditions(
            AVAILABLE,
            condition("Progressing", "True"),
            condition("ReplicaFailure", "True", message="quota"),
            observedGeneration=1,
        ),
        wrong("ReplicaFailure", "True", "False", "", "quota"),
    ),
    (
        *DEPLOYMENT,
        conditions(AVAILABLE, condition("ReplicaFailure", "False"), observedGeneration=1),
        None,
    ),
    # The first condition of a type counts.
    (*DEPLOYMENT, conditions(AVAILABLE, condition("Available", "False"), observedGeneration=1), None),
    # Replicas are never compared.
    (
        *DEPLOYMENT,
        generation(
            1,
            spec={"replicas": 5},
            status={"conditions": [AVAILABLE], "observedGeneration": 1, "updatedReplicas": 1},
        ),
        None,
    ),
]

SET = "apps/v1", "StatefulSet"
SET_ROWS: list[Row] = [
    (*SET, generation(1, status={"observedGeneration": 1, "readyReplicas": 1}), None),
    (*SET, generation(1, status={"observedGeneration": 1}), "not enough ready replicas (0/1)"),
    (*SET, generation(1, spec={"replicas": 0}, status={"observedGeneration": 1}), None),
    (
        *SET,
        generation(1, spec={"replicas": 3}, status={"observedGeneration": 1, "readyReplicas": 2}),
        "not enough ready replicas (2/3)",
    ),
    (
        *SET,
        generation(4, spec={"replicas": 3}, status={"observedGeneration": 3}),
        "observed generation outdated (3/4)",
    ),
]


def daemon_set(max_unavailable: Any = None, *, strategy: str = "RollingUpdate", **numbers: int) -> Object:
    status = {"observedGeneration": 1, "desiredNumberScheduled": 5, "currentNumberScheduled": 5, **numbers}
    rolling = None if max_unavailable is None else {"maxUnavailable": max_unavailable}
    return generation(1, spec={"updateStrategy": {"type": strategy, "rollingUpdate": rolling}}, status=status)


def too_many(unavailable: int, allowed: int | None = None) -> str:
    limit = "" if allowed is None else f", only max. {allowed} unavailable pods allowed"
    return f"too many unavailable pods found ({unavailable}/5{limit})"


DAEMON = "apps/v1", "DaemonSet"
DAEMON_ROWS: list[Row] = [
    (*DAEMON, daemon_set(updatedNumberScheduled=5), None),
    (*DAEMON, daemon_set(observedGeneration=0), "observed generation outdated (0/1)"),
    (
        *DAEMON,
        daemon_set(currentNumberScheduled=4, numberMisscheduled=1),
        "not enough scheduled pods (4/5)",
    ),
    (*DAEMON, daemon_set(numberMisscheduled=2, numberUnavailable=3), "misscheduled pods found (2)"),
    # Rolling out: a percentage is rounded down.
    (*DAEMON, daemon_set("30%", updatedNumberScheduled=3, numberUnavailable=1), None),
    (*DAEMON, daemon_set("30%", updatedNumberScheduled=3, numberUnavailable=2), too_many(2, 1)),
    (*DAEMON, daemon_set(2, updatedNumberScheduled=3, numberUnavailable=2), None),
    (*DAEMON, daemon_set(2, updatedNumberScheduled=3, numberUnavailable=3), too_many(3, 2)),
    (*DAEMON, daemon_set("2", updatedNumberScheduled=3, numberUnavailable=1), too_many(1, 0)),
    (*DAEMON, daemon_set("many%", updatedNumberScheduled=3, numberUnavailable=1), too_many(1, 0)),
    (*DAEMON, daemon_set(updatedNumberScheduled=3, numberUnavailable=1), too_many(1, 0)),
    (
        *DAEMON,
        daemon_set(2, strategy="OnDelete", updatedNumberScheduled=3, numberUnavailable=1),
        too_many(1, 0),
    ),
    # Rolled out: none may be unavailable.
    (*DAEMON, daemon_set(2, updatedNumberScheduled=5, numberUnavailable=1), too_many(1)),
    (*DAEMON, daemon_set(desiredNumberScheduled=0, currentNumberScheduled=0), None),
    (
        *DAEMON,
        daemon_set(3, desiredNumberScheduled=0, numberUnavailable=1),
        "too many unavailable pods found (1/5)",
    ),
]

REPLICA_ROWS: list[Row] = [
    row
    for api_version, kind in (("apps/v1", "ReplicaSet"), ("v1", "ReplicationController"))
    for row in (
        (api_version, kind, generation(1, status={"observedGeneration": 1}), None),
        (
            api_version,
            kind,
            generation(1, spec={"replicas": 2}, status={"observedGeneration": 1, "readyReplicas": 2}),
            None,
        ),
        (
            api_version,
            kind,
            generation(1, spec={"replicas": 2}, status={"observedGeneration": 1, "readyReplicas": 1}),
            f"{kind} does not have minimum availability",
        ),
        (api_version, kind, generation(1, spec={"replicas": 2}), "observed generation outdated (0/1)"),
    )
]

JOB, POD, SERVICE = ("batch/v1", "Job"), ("v1", "Pod"), ("v1", "Service")
VPA = "autoscaling.k8s.io/v1", "VerticalPodAutoscaler"
BALANCER = {"type": "LoadBalancer"}
SMALL_ROWS: list[Row] = [
    (*JOB, generation(1), None),
    (*JOB, conditions(condition("Failed", "False")), None),
    (
        *JOB,
        conditions(
            condition("Complete", "False"),
            condition("Failed", "True", reason="DeadlineExceeded", message="was active too long"),
        ),
        wrong("Failed", "True", "False", "DeadlineExceeded", "was active too long"),
    ),
    (*POD, generation(1, status={"phase": "Running"}), None),
    (*POD, generation(1, status={"phase": "Succeeded"}), None),
    *(
        (
            *POD,
            generation(1, status={"phase": phase}),
            f'pod is in invalid phase "{phase}" (expected one of ["Running" "Succeeded"])',
        )
        for phase in ("Pending", "Failed", "Unknown", "")
    ),
    (*SERVICE, generation(1, spec={"type": "ClusterIP"}), None),
    (*SERVICE, generation(1, spec=BALANCER), "service is missing ingress status"),
    (
        *SERVICE,
        generation(1, spec=BALANCER, status={"loadBalancer": {"ingress": []}}),
        "service is missing ingress status",
    ),
    (*SERVICE, generation(1, spec=BALANCER, status={"loadBalancer": {"ingress": [{"ip": "::1"}]}}), None),
    (*VPA, generation(7), None),
    (*VPA, conditions(condition("ConfigUnsupported", "False")), None),
    (
        *VPA,
        conditions(condition("ConfigUnsupported", "True", reason="R", message="m")),
        wrong("ConfigUnsupported", "True", "False", "R", "m"),
    ),
]


def monitoring(available: int, *, status: str = "True", observed: int = 3, replicas: int | None = None) -> Object:
    entry = condition("Available", status, reason="R", message="m", observedGeneration=observed)
    return generation(3, spec={"replicas": replicas}, status={"conditions": [entry], "availableReplicas": available})


MONITORING_ROWS: list[Row] = [
    row
    for kind in ("Prometheus", "Alertmanager")
    for row in (
        (
            "monitoring.coreos.com/v1",
            kind,
            generation(3, status={"availableReplicas": 1}),
            'condition "Available" is missing',
        ),
        ("monitoring.coreos.com/v1", kind, monitoring(1), None),
        (
            "monitoring.coreos.com/v1",
            kind,
            monitoring(1, observed=2),
            "observed generation outdated (2/3)",
        ),
        (
            "monitoring.coreos.com/v1",
            kind,
            monitoring(1, status="Degraded"),
            wrong("Available", "Degraded", "True", "R", "m"),
        ),
        (
            "monitoring.coreos.com/v1",
            kind,
            monitoring(1, replicas=2),
            "not enough available replicas (1/2)",
        ),
        (
            "monitoring.coreos.com/v1",
            kind,
            monitoring(0),
            "not enough available replicas (0/1)",
        ),
    )
]

CERTIFICATE, ISSUER = (
    ("cert.gardener.cloud/v1alpha1", "Certificate"),
    ("cert.gardener.cloud/v1alpha1", "Issuer"),
)
CERTIFICATE_ROWS: list[Row] = [
    (*CERTIFICATE, generation(5, status={"state": "Ready", "observedGeneration": 1}), None),
    (*CERTIFICATE, generation(1), 'certificate state is "" ("Ready" expected)'),
    (
        *CERTIFICATE,
        generation(1, status={"state": 'a "b"'}),
        r'certificate state is "a \"b\"" ("Ready" expected)',
    ),
    (*CERTIFICATE, conditions(condition("Ready", "True"), state="Ready"), None),
    (
        *CERTIFICATE,
        conditions(condition("Ready", "False"), state="Error"),
        wrong("Ready", "False", "True"),
    ),
    (*ISSUER, generation(5, status={"state": "Ready"}), None),
    (*ISSUER, conditions(condition("Ready", "False"), state="Ready"), None),
    (*ISSUER, generation(1, status={"state": "Error"}), 'issuer state is "Error" ("Ready" expected)'),
]

ROWS: list[Row] = [
    *CRD_ROWS,
    *DEPLOYMENT_ROWS,
    *SET_ROWS,
    *DAEMON_ROWS,
    *REPLICA_ROWS,
    *SMALL_ROWS,
    *MONITORING_ROWS,
    *CERTIFICATE_ROWS,
]


@pytest.mark.parametrize(("api_version", "kind", "obj", "expected"), ROWS)
def test_the_first_thing_that_is_wrong_is_told(api_version: str, kind: str, obj: Object, expected: str | None) -> None:
    rule = health_rule(api_version, kind)
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
    assert health_rule(api_version, kind) is None
    assert health_finding(Reference(api_version, kind, "n", "a"), generation(1)) is None


@pytest.mark.parametrize(
    ("obj", "complaint"),
    [
        (generation(1, spec={"replicas": "2"}), "spec.replicas must be an integer, not a string"),
        (
            generation(1, status={"availableReplicas": True}),
            "status.availableReplicas must be an integer, not a boolean",
        ),
        (generation(1, status=["x"]), "status must be an object, not a list"),
        (
            generation(1, status={"conditions": {}}),
            "status.conditions must be a list, not an object",
        ),
        (
            generation(1, status={"conditions": ["x"]}),
            "status.conditions must be a list of objects, not a string",
        ),
        (
            generation(1, status={"conditions": [{"type": "Available", "reason": 1.5}]}),
            "reason must be a string, not a fraction",
        ),
    ],
)
def test_a_field_of_the_wrong_type_is_a_finding_of_its_own(obj: Object, complaint: str) -> None:
    reference = Reference("monitoring.coreos.com/v1", "Prometheus", "n", "a")
    finding = health_finding(reference, obj)
    assert finding is not None
    assert finding.reason == "HealthCheckError"
    assert finding.message == f'Error executing health check for Prometheus "n/a": {complaint}'
