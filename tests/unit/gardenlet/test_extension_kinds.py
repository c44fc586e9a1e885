"""When an Etcd is as it was requested, and how long extensions may take."""

from typing import Any

import pytest

from agent.gardenlet.common.extension_objects import kinds
from agent.gardenlet.common.extension_objects.kinds import Kind, etcd_answer
from gardener.extension_contract import Answer, Pending, Ready, Trouble
from kube.objects import Object


def etcd(*, replicas: int = 1, generation: int = 2, operation: str = "", **status: Any) -> Object:
    annotations = {"gardener.cloud/operation": operation} if operation else {}
    counts = dict.fromkeys(("replicas", "currentReplicas", "readyReplicas", "updatedReplicas"), replicas)
    return {
        "metadata": {"generation": generation, "annotations": annotations},
        "spec": {"replicas": replicas},
        "status": {"observedGeneration": 2, "ready": True, **counts, **status},
    }


def members(*states: str) -> list[Object]:
    return [{"name": f"etcd-{number}", "status": state} for number, state in enumerate(states)]


@pytest.mark.parametrize(
    ("obj", "answer"),
    [
        (etcd(), Ready()),
        (etcd(operation="reconcile"), Pending('gardener operation "reconcile" is not yet picked up by controller')),
        (etcd(generation=3), Pending("observed generation outdated (2/3)")),
        (etcd(readyReplicas=0), Pending("0 of 1 members are ready")),
        (etcd(updatedReplicas=0), Pending("0 of 1 members are updated")),
        (etcd(lastError="store: AccessDenied"), Trouble("store: AccessDenied", ("ERR_INFRA_UNAUTHORIZED",))),
        (
            etcd(operation="reconcile", lastError="of before"),
            Pending('gardener operation "reconcile" is not yet picked up by controller'),
        ),
        # Asleep: `ready` reports nothing.
        (etcd(replicas=0), Ready()),
        (etcd(replicas=0, readyReplicas=1), Pending("1 of its members still exist")),
        (etcd(replicas=0, generation=3), Pending("observed generation outdated (2/3)")),
        # Of several members, each has to report so.
        (etcd(replicas=3, members=members("Ready", "Ready", "Ready")), Ready()),
        (
            etcd(replicas=3, members=members("Ready", "NotReady", "Ready")),
            Pending("2 of 3 members are ready"),
        ),
        (etcd(replicas=3, updatedReplicas=2, members=members(*["Ready"] * 3)), Pending("2 of 3 members are updated")),
        (etcd(replicas=3), Pending("0 of 3 members are ready")),
        ({}, Ready()),
    ],
)
def test_an_etcd_is_ready_when_all_its_members_are_as_requested(obj: Object, answer: Answer) -> None:
    assert etcd_answer(obj) == answer


def test_an_answer_belongs_to_what_was_requested_last() -> None:
    obj = etcd()
    obj["metadata"]["annotations"] = {"gardener.cloud/timestamp": "1"}
    assert etcd_answer(obj, kicked="1") == Ready()
    assert isinstance(etcd_answer(obj, kicked="2"), Pending)


def test_releases_that_do_not_count_updated_members_count_current_ones() -> None:
    obj = etcd(currentReplicas=0)
    del obj["status"]["updatedReplicas"]
    assert etcd_answer(obj) == Pending("0 of 1 members are updated")


@pytest.mark.parametrize(
    ("kind", "severe", "longest"),
    [
        (kinds.INFRASTRUCTURE, 180, 600),
        (kinds.WORKER, 30, 600),
        (kinds.CONTROL_PLANE, 30, 180),
        (kinds.NETWORK, 30, 180),
        (kinds.OPERATING_SYSTEM_CONFIG, 30, 180),
        (kinds.CONTAINER_RUNTIME, 30, 180),
        (kinds.EXTENSION, 30, 180),
        (kinds.DNS_RECORD, 15, 120),
        (kinds.BACKUP_ENTRY, 30, 600),
        (kinds.ETCD, 180, 300),
    ],
    ids=lambda one: one.resource.kind if isinstance(one, Kind) else str(one),
)
def test_how_long_an_extension_may_take(kind: Kind, severe: float, longest: float) -> None:
    assert (kind.severe, kind.longest) == (severe, longest)
