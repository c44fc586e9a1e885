"""Which workloads are spread as for another number of Nodes."""

import pytest

from agent.resource_manager.node.high_availability_config import is_outdated
from gardener.keys import HIGH_AVAILABILITY_SKIP
from kube.objects import Object

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def workload(*constraints: tuple[str, str], **labels: str) -> Object:
    listed = [{"topologyKey": key, "whenUnsatisfiable": action, "maxSkew": 1} for key, action in constraints]
    template = {"spec": {"topologySpreadConstraints": listed}}
    return {"metadata": {"labels": labels}, "spec": {"template": template}}


@pytest.mark.parametrize(
    ("constraints", "outdated_for_one", "outdated_for_several"),
    [
        ([], False, False),
        ([(ZONE, "DoNotSchedule")], False, False),
        ([(HOST, "ScheduleAnyway")], False, True),
        ([(HOST, "DoNotSchedule")], True, False),
        ([(ZONE, "DoNotSchedule"), (HOST, "ScheduleAnyway"), (HOST, "DoNotSchedule")], False, True),
    ],
)
def test_the_first_constraint_over_hosts_decides(
    constraints: list[tuple[str, str]], outdated_for_one: bool, outdated_for_several: bool
) -> None:
    assert is_outdated(workload(*constraints), several_nodes=False) is outdated_for_one
    assert is_outdated(workload(*constraints), several_nodes=True) is outdated_for_several


def test_what_the_webhook_skips_and_workloads_without_pods_are_left_alone() -> None:
    skipped = workload((HOST, "DoNotSchedule"), **{HIGH_AVAILABILITY_SKIP: "false"})
    assert not is_outdated(skipped, several_nodes=False)
    assert not is_outdated({"metadata": {"name": "a"}}, several_nodes=True)
