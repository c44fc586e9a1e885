"""Why a pod is not ready, in the words of those who know."""

from typing import Any

import pytest

from gardener.health.checks.workload_pods import cause_of_pod
from kube.objects import Object


def pod(*, conditions: Any = (), spec: Object | None = None, **status: Any) -> Object:
    meta = {"namespace": "shop", "name": "web"}
    return {"metadata": meta, "spec": spec or {}, "status": {"conditions": list(conditions), **status}}


def waiting(reason: str, message: str = "") -> Object:
    return {"name": "web", "state": {"waiting": {"reason": reason, "message": message}}}


def ended(code: int, reason: str = "Error", message: str = "") -> Object:
    return {"terminated": {"exitCode": code, "reason": reason, "message": message}}


UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available:\n insufficient memory.",
}


@pytest.mark.parametrize(
    ("obj", "cause"),
    [
        (pod(), ""),
        (pod(containerStatuses=[{"name": "web", "state": {"running": {}}, "ready": True}]), ""),
        (pod(containerStatuses=[waiting("ContainerCreating")]), ""),
        (
            pod(conditions=[UNSCHEDULABLE]),
            "Pod/shop/web is not scheduled: 0/3 nodes are available: insufficient memory.",
        ),
        (
            pod(containerStatuses=[waiting("ImagePullBackOff", "Back-off pulling image x")]),
            "Pod/shop/web, container web: ImagePullBackOff: Back-off pulling image x",
        ),
        (
            pod(
                containerStatuses=[
                    {**waiting("CrashLoopBackOff", "back-off 5m0s"), "lastState": ended(137, "OOMKilled")}
                ]
            ),
            "Pod/shop/web, container web: CrashLoopBackOff: ended with 137 (OOMKilled)",
        ),
        (
            pod(containerStatuses=[{"name": "web", "state": ended(2, message="no\nconfig")}]),
            "Pod/shop/web, container web: ended with 2 (Error): no config",
        ),
        (
            pod(containerStatuses=[{"name": "web", "state": ended(0, "Completed")}]),
            "",
        ),
        (
            pod(phase="Failed", reason="Evicted", message="The node was low on resource: memory."),
            "Pod/shop/web: Evicted: The node was low on resource: memory.",
        ),
        # The same words while it fails again and again.
        *(
            (
                pod(containerStatuses=[{"name": "web", "restartCount": 2, "ready": False, **state}]),
                "Pod/shop/web, container web: CrashLoopBackOff: ended with 1 (Error)",
            )
            for state in (
                {"state": ended(1)},
                {"state": {"running": {}}, "lastState": ended(1)},
                {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended(1)},
            )
        ),
        (
            pod(containerStatuses=[{**waiting("CrashLoopBackOff"), "lastState": ended(0, "Completed")}]),
            "Pod/shop/web, container web: CrashLoopBackOff: ended with 0 (Completed)",
        ),
        (
            pod(
                spec={"containers": [{"name": "web", "readinessProbe": {}}]},
                containerStatuses=[{"name": "web", "state": {"running": {}}, "ready": False}],
            ),
            "Pod/shop/web, container web: it runs but is not ready: its readinessProbe fails",
        ),
        # It is running again, and what was is over.
        (pod(containerStatuses=[{"name": "web", "state": {"running": {}}, "lastState": ended(1)}]), ""),
        (
            pod(initContainerStatuses=[waiting("CreateContainerConfigError", 'secret "x" not found')]),
            'Pod/shop/web, container web: CreateContainerConfigError: secret "x" not found',
        ),
    ],
)
def test_the_cause_of_a_pod(obj: Object, cause: str) -> None:
    assert cause_of_pod(obj) == cause
