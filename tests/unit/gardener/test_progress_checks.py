"""What a roll-out waits for, kind by kind; None means rolled out."""

from typing import Any

import pytest

from gardener.health.checks.deployment import NO_DEADLINE, PodsWanted, buckets, is_over, pods_wanted
from gardener.health.checks.registry import BUILT_IN
from kube.objects import Key, Object, labels

Row = tuple[Object, str | None]
"""An object, and what it waits for."""


def made(*, generation: int = 1, spec: Object | None = None, **status: Any) -> Object:
    return {"metadata": {"name": "a", "generation": generation}, "spec": spec, "status": status}


def deployment(status: str, reason: str, message: str = "") -> Object:
    progressing = {"type": "Progressing", "status": status, "reason": reason, "message": message}
    return made(conditions=[progressing], observedGeneration=1)


def without_deadline(**status: int) -> Object:
    spec = {"replicas": 2, "progressDeadlineSeconds": NO_DEADLINE}
    return made(spec=spec, **{"observedGeneration": 1, **status})


def monitoring(status: str, *, observed: int = 1, **parts: Any) -> Object:
    reconciled = {"type": "Reconciled", "status": status, "observedGeneration": observed}
    return made(conditions=[reconciled], updatedReplicas=1, **parts)


def replicas(wanted: int, updated: int) -> Object:
    return made(spec={"replicas": wanted}, observedGeneration=1, updatedReplicas=updated)


def scheduled(updated: int) -> Object:
    return made(observedGeneration=1, desiredNumberScheduled=5, updatedNumberScheduled=updated)


DEPLOYMENT: list[Row] = [
    (made(), "observed generation outdated (0/1)"),
    (made(observedGeneration=1), 'condition "Progressing" is missing'),
    (deployment("True", "NewReplicaSetAvailable", "done"), None),
    (deployment("True", "ReplicaSetUpdated", "is progressing."), "is progressing."),
    (deployment("False", "NewReplicaSetAvailable", "late"), "late"),
    (deployment("Unknown", "DeploymentPaused", "Deployment is paused"), "Deployment is paused"),
    # An empty message is still a message.
    (deployment("True", "ReplicaSetUpdated"), ""),
    # Without a deadline there is never a condition.
    (without_deadline(observedGeneration=0), "observed generation outdated (0/1)"),
    (without_deadline(replicas=2), "0 of 2 replica(s) have been updated"),
    (
        without_deadline(updatedReplicas=2, replicas=3, availableReplicas=2),
        "there are more replicas than desired (3/2)",
    ),
    (without_deadline(updatedReplicas=2, replicas=2, availableReplicas=1), "1 of 2 replica(s) are available"),
    (without_deadline(updatedReplicas=2, replicas=2, availableReplicas=2), None),
]
STATEFUL_SET: list[Row] = [
    (made(generation=2, observedGeneration=1), "observed generation outdated (1/2)"),
    (made(observedGeneration=1), "0 of 1 replica(s) have been updated"),
    (replicas(3, updated=2), "2 of 3 replica(s) have been updated"),
    (replicas(3, updated=3), None),
    (made(spec={"replicas": 0}, observedGeneration=1), None),
]
DAEMON_SET: list[Row] = [
    (made(), "observed generation outdated (0/1)"),
    (scheduled(updated=3), "3 of 5 replica(s) have been updated"),
    (scheduled(updated=5), None),
]
NOT_RECONCILED = 'condition "Reconciled" has invalid status False (expected True) due to : '
MONITORING: list[Row] = [
    (made(), 'condition "Reconciled" is missing'),
    (monitoring("False", observed=1, generation=2), "observed generation outdated (1/2)"),
    (monitoring("False"), NOT_RECONCILED),
    (monitoring("True", spec={"replicas": 2}), "1 of 2 replica(s) have been updated"),
    (monitoring("True"), None),
]
CERTIFICATE: list[Row] = [
    (made(), "observed generation outdated (0/1)"),
    (made(observedGeneration=1, state="Error"), None),
]
KINDS = {
    "apps/v1 Deployment": DEPLOYMENT,
    "apps/v1 StatefulSet": STATEFUL_SET,
    "apps/v1 DaemonSet": DAEMON_SET,
    "monitoring.coreos.com/v1 Prometheus": MONITORING,
    "monitoring.coreos.com/v1 Alertmanager": MONITORING,
    "cert.gardener.cloud/v1alpha1 Certificate": CERTIFICATE,
    "cert.gardener.cloud/v1alpha1 Issuer": CERTIFICATE,
}
ROWS = [(*kind.split(), *row) for kind, rows in KINDS.items() for row in rows]


@pytest.mark.parametrize(("api_version", "kind", "obj", "expected"), ROWS)
def test_the_first_thing_that_is_waited_for_is_reported(
    api_version: str, kind: str, obj: Object, expected: str | None
) -> None:
    rule = BUILT_IN.progress(api_version, kind)
    assert rule is not None
    assert rule.progress is not None
    assert rule.progress(obj) == expected


@pytest.mark.parametrize(("api_version", "kind"), [("v1", "Pod"), ("apps/v1", "ReplicaSet"), ("x/v1", "Issuer")])
def test_other_kinds_are_never_progressing(api_version: str, kind: str) -> None:
    assert BUILT_IN.progress(api_version, kind) is None


# --- the pods of a Deployment

OLD_PODS = "there are still non-terminated old pods"


def pod(labels: dict[str, str] | None = None, **parts: Any) -> Object:
    status = {"phase": "Running", **parts}
    return {"metadata": {"name": "p", "labels": {"app": "x"} if labels is None else labels}, "status": status}


def terminating() -> Object:
    leaving = pod()
    leaving["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z"
    return leaving


def waits_for(deployment: Object, pods: list[Object]) -> str | None:
    wanted = pods_wanted(deployment)
    return wanted.problem(sum(wanted.select(labels(pod)) and not is_over(pod) for pod in pods))


def because(reason: str) -> Object:
    return pod(reason=reason)


def with_condition(kind: str, status: str, reason: str = "") -> Object:
    return pod(conditions=[{"type": kind, "status": status, "reason": reason}])


@pytest.mark.parametrize(
    ("replicas", "pods", "expected"),
    [
        (2, [pod(), pod()], None),
        (0, [], None),
        (None, [pod()], None),
        (None, [], "there are fewer pods than desired replicas (0/1)"),
        (3, [pod(), pod()], "there are fewer pods than desired replicas (2/3)"),
        (1, [pod(), pod()], OLD_PODS),
        (0, [pod()], OLD_PODS),
        (1, [pod(), terminating()], OLD_PODS),
        (1, [pod(), pod(phase="Pending")], OLD_PODS),
        (1, [pod(), pod(phase="Unknown", reason="SomethingElse")], OLD_PODS),
        (1, [pod(), pod({"app": "y"}), pod({})], None),
        *(
            (1, [pod(), over], None)
            for over in (
                *map(because, ("Evicted", "NodeAffinity", "NodeLost", "Preempting", "WasEvictedEarly", "OutOfcpu")),
                *(pod(phase="Failed"), pod(phase="Succeeded")),
                with_condition("Ready", "False", "PodCompleted"),
                with_condition("DisruptionTarget", "True"),
            )
        ),
        *(
            (1, [pod(), alive], OLD_PODS)
            for alive in (
                because("NotOutOfcpu"),
                with_condition("Ready", "False", "ContainersNotReady"),
                with_condition("Ready", "True", "PodCompleted"),
                with_condition("DisruptionTarget", "False"),
            )
        ),
    ],
)
def test_a_deployment_wants_exactly_its_pods(replicas: int | None, pods: list[Object], expected: str | None) -> None:
    obj = made(spec={"replicas": replicas, "selector": {"matchLabels": {"app": "x"}}})
    assert waits_for(obj, pods) == expected


def test_the_whole_selector_counts() -> None:
    expression = {"key": "tier", "operator": "NotIn", "values": ["old"]}
    obj = made(spec={"selector": {"matchLabels": {"app": "x"}, "matchExpressions": [expression]}})
    assert waits_for(obj, [pod(), pod({"app": "x", "tier": "old"})]) is None


@pytest.mark.parametrize("spec", [None, {}, {"selector": None}])
def test_without_a_selector_no_pod_is_counted(spec: Object | None) -> None:
    assert waits_for(made(spec=spec), [pod()]) == "there are fewer pods than desired replicas (0/1)"


# --- a pod is found among few: it is in the bucket that is looked into for its Deployment


WEB = {"app": "web", "instance": "web-of-somebody", "pod-template-hash": "5d"}


@pytest.mark.parametrize(
    ("selector", "bucket"),
    [
        ({"matchLabels": {"app": "web"}}, ("ns", "app", "web")),
        ({"matchLabels": {"app": "web", "instance": "web-of-somebody"}}, ("ns", "instance", "web-of-somebody")),
        ({"matchLabels": {"app": "my-app", "component": "controlplane"}}, ("ns", "app", "my-app")),
        ({"matchLabels": {"app": "app", "component": "controlplane"}}, ("ns", "app", "app")),
        ({"matchLabels": {"app": "", "component": "controlplane"}}, ("ns", "component", "controlplane")),
        ({"matchLabels": {"a": "x", "b": "y"}}, ("ns", "b", "y")),
        ({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]}, ("ns", "app", "web")),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, ("ns",)),
        ({"matchLabels": {}}, ("ns",)),
        ({}, ("ns",)),
        (None, ("ns",)),
    ],
)  # fmt: skip
def test_a_selector_leads_to_its_most_specific_label(selector: Any, bucket: tuple[str, ...]) -> None:
    wanted = PodsWanted(Key("ns", "my-app"), selector, 1)
    assert wanted.bucket == bucket
    if wanted.select(WEB):
        assert bucket in buckets("ns", WEB)


def test_a_pod_is_in_the_bucket_of_its_namespace_and_of_each_label() -> None:
    assert buckets("ns", {"app": "web", "a": "b"}) == [("ns",), ("ns", "app", "web"), ("ns", "a", "b")]
    assert buckets("ns", {}) == [("ns",)]
