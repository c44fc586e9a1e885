"""Why a pod is not ready, in the words of those who know."""

from typing import Any

import pytest

from kube.objects import Object
from kubectl.mr.causes import cause_of_pod


def pod(*, conditions: Any = (), **statuses: list[Object]) -> Object:
    return {"metadata": {"namespace": "shop", "name": "web"}, "status": {"conditions": list(conditions), **statuses}}


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
