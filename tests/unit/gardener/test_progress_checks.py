"""What a roll-out waits for, kind by kind; None means rolled out."""

from typing import Any

import pytest

from gardener.health.checks.deployment import NO_DEADLINE
from gardener.health.checks.deployment import health as deployment_health
from gardener.health.checks.registry import BUILT_IN
from gardener.health.checks.workload_pods import PodsWanted, buckets, is_over, pods_wanted
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


ON_DELETE: dict[str, Any] = {"updateStrategy": {"type": "OnDelete"}}
BY_DELETION = "since spec.updateStrategy.type is OnDelete: delete the other pods to update them"


def stateful(updated: int, *, exist: int = 3, **spec: Any) -> Object:
    status = {"observedGeneration": 1, "replicas": exist, "updatedReplicas": updated}
    return made(spec={"replicas": 3, **spec}, **status)


def parted(updated: int, partition: int, **spec: Any) -> Object:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    return stateful(updated, updateStrategy=strategy, **spec)


def on_delete(updated: int, *, exist: int = 5) -> Object:
    status = {"desiredNumberScheduled": 5, "currentNumberScheduled": exist, "updatedNumberScheduled": updated}
    return made(spec=ON_DELETE, observedGeneration=1, **status)


def paused(updated: int, *, available: str = "True", **status: Any) -> Object:
    conditions = [
        {"type": "Available", "status": available, "reason": "A", "message": "a"},
        {"type": "Progressing", "status": "Unknown", "reason": "DeploymentPaused", "message": "Deployment is paused"},
    ]
    spec = {"replicas": 2, "paused": True}
    return made(spec=spec, **{"observedGeneration": 1, "conditions": conditions, "updatedReplicas": updated, **status})


def job(*, spec: Object | None = None, finished: str = "", status: str = "True", **pods: int) -> Object:
    return made(spec=spec, conditions=[{"type": finished or "Suspended", "status": status}], **pods)


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
    # A person has to resume it; whether it has a deadline does not matter.
    (paused(1), None),
    (paused(1, observedGeneration=0), "observed generation outdated (0/1)"),
    (paused(0, available="False"), "Deployment is paused"),
    (paused(1, conditions=[{"type": "Available", "status": "True"}]), None),
]
STATEFUL_SET: list[Row] = [
    (made(generation=2, observedGeneration=1), "observed generation outdated (1/2)"),
    (made(observedGeneration=1), "0 of 1 replica(s) have been updated"),
    (replicas(3, updated=2), "2 of 3 replica(s) have been updated"),
    (replicas(3, updated=3), None),
    (made(spec={"replicas": 0}, observedGeneration=1), None),
    (parted(0, 2), "0 of 1 replica(s) have been updated"),
    (parted(1, 2), None),
    (parted(1, 2, ordinals={"start": 5}), None),
    (parted(1, 0), "1 of 3 replica(s) have been updated"),
    (parted(0, 3), None),
    (parted(0, 7), None),
    (stateful(0, **ON_DELETE), None),
    # It is about to be created again.
    (stateful(0, exist=2, **ON_DELETE), "2 of 3 replica(s) exist"),
]
DAEMON_SET: list[Row] = [
    (made(), "observed generation outdated (0/1)"),
    (scheduled(updated=3), "3 of 5 replica(s) have been updated"),
    (scheduled(updated=5), None),
    (on_delete(updated=0), None),
    (on_delete(updated=1, exist=4), "not enough scheduled pods (4/5)"),
]
JOB: list[Row] = [
    (job(), "it has not completed yet (0 pod(s) succeeded, 0 active, 0 failed)"),
    (
        job(spec={"completions": 3}, succeeded=1, active=2, failed=1),
        "it has not completed yet (1 of 3 pod(s) succeeded, 2 active, 1 failed)",
    ),
    # A person has to resume it.
    (job(spec={"suspend": True}), None),
    (
        job(spec={"completions": 1}, finished="Complete", status="False", active=1),
        "it has not completed yet (0 of 1 pod(s) succeeded, 1 active, 0 failed)",
    ),
    # Its pods have not ended yet.
    (
        job(spec={"completions": 1}, finished="FailureTarget", active=1),
        "it has not completed yet (0 of 1 pod(s) succeeded, 1 active, 0 failed)",
    ),
    (job(finished="Complete"), None),
    # Its health reports so.
    (job(finished="Failed"), None),
]
NOT_RECONCILED = 'condition "Reconciled" has invalid status False (expected True) due to : '
MONITORING: list[Row] = [
    (made(), 'condition "Reconciled" is missing'),
    (monitoring("False", observed=1, generation=2), "observed generation outdated (1/2)"),
    (monitoring("False"), NOT_RECONCILED),
    (monitoring("True", spec={"replicas": 2}), "1 of 2 replica(s) have been updated"),
    (monitoring("True"), None),
    (monitoring("False", spec={"paused": True}), None),
]
CERTIFICATE: list[Row] = [
    (made(), "observed generation outdated (0/1)"),
    (made(observedGeneration=1, state="Error"), None),
]
KINDS = {
    "apps/v1 Deployment": DEPLOYMENT,
    "apps/v1 StatefulSet": STATEFUL_SET,
    "apps/v1 DaemonSet": DAEMON_SET,
    "batch/v1 Job": JOB,
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


OF_PARTITION = "since spec.updateStrategy.rollingUpdate.partition is 2: lower the partition to update the others"
OF_PAUSE = "since spec.paused is true: set it to false to"


@pytest.mark.parametrize(
    ("api_version", "kind", "obj", "expected"),
    [
        ("apps/v1", "StatefulSet", parted(1, 2), f"1 of 3 replica(s) have been updated, {OF_PARTITION}"),
        ("apps/v1", "StatefulSet", parted(3, 2), None),
        ("apps/v1", "StatefulSet", stateful(2), None),
        ("apps/v1", "StatefulSet", stateful(1, **ON_DELETE), f"1 of 3 replica(s) have been updated, {BY_DELETION}"),
        ("apps/v1", "StatefulSet", stateful(3, **ON_DELETE), None),
        ("apps/v1", "DaemonSet", on_delete(1), f"1 of 5 replica(s) have been updated, {BY_DELETION}"),
        ("apps/v1", "DaemonSet", on_delete(5), None),
        ("apps/v1", "DaemonSet", scheduled(1), None),
        ("apps/v1", "Deployment", paused(1), f"1 of 2 replica(s) have been updated, {OF_PAUSE} update the others"),
        ("apps/v1", "Deployment", paused(2), None),
        (
            *("batch/v1", "Job", job(spec={"suspend": True})),
            f"it has not completed, {OF_PAUSE.replace('paused', 'suspend')} run it",
        ),
        ("batch/v1", "Job", job(spec={"suspend": True}, finished="Complete"), None),
        ("batch/v1", "Job", job(), None),
        ("apps/v1", "Deployment", paused(0, available="False"), None),
        (
            "monitoring.coreos.com/v1",
            "Prometheus",
            monitoring("True", spec={"paused": True, "replicas": 2}),
            f"1 of 2 replica(s) have been updated, {OF_PAUSE} complete the roll-out",
        ),
        ("monitoring.coreos.com/v1", "Alertmanager", monitoring("True", spec={"paused": True}), None),
    ],
)
def test_what_a_roll_out_leaves_to_a_person_is_reported(
    api_version: str, kind: str, obj: Object, expected: str | None
) -> None:
    rule = BUILT_IN.progress(api_version, kind)
    assert rule is not None
    assert rule.manual is not None
    assert rule.manual(obj) == expected


def test_a_paused_deployment_that_is_available_is_healthy() -> None:
    assert deployment_health(paused(1)) is None
    assert deployment_health(deployment("Unknown", "DeploymentPaused")) is not None


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
