"""A failure that lasts is reported once: while the same is tried again, nothing in the status changes."""

from collections.abc import Iterator

import pytest

from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kit.objects import config_map, deployment, obj, service
from kit.processes.agent import AgentProcess
from kit.rig import Agent, Rig
from kit.world import WRITES

_TRIES = 3
_INVALID = config_map("Bad_Name")


def status_writes(rig: Rig, audit: Audit, mark: int) -> list[str]:
    calls = audit.calls(since=mark, namespace=rig.namespace, verbs=WRITES)
    return [f"{call.verb} {call.resource}" for call in calls if call.resource.startswith("managedresources")]


def until_tried_again(rig: Rig, audit: Audit, mark: int, *, resource: str) -> None:
    def tries() -> bool:
        calls = audit.calls(since=mark, namespace=rig.namespace, verbs=WRITES)
        return len([call for call in calls if call.user == rig.agent.user and call.resource == resource]) >= _TRIES

    rig.until(tries, f"{_TRIES} more writes of {resource}")


@pytest.fixture(scope="module")
def checking_agent(own_agent: Agent, cluster: Cluster) -> Agent:
    health = {"syncPeriod": "15s", "checkWhileFailing": True}
    return Agent(cluster, resource_class=f"{own_agent.resource_class}-failing", health=health)


@pytest.fixture(scope="module")
def checking_process(checking_agent: Agent) -> Iterator[AgentProcess]:
    with checking_agent.start() as process:
        yield process


@pytest.fixture
def checking_rig(cluster: Cluster, namespace: str, checking_agent: Agent, checking_process: AgentProcess) -> Rig:
    """Of an agent that checks objects while others can't be applied."""
    return Rig(cluster, namespace, checking_agent, checking_process)


def reported(rig: Rig, name: str) -> dict[str, str]:
    """The status of each condition, with its reason."""
    found = rig.get("ManagedResource", name)["status"]["conditions"]
    return {each["type"]: f"{each['status']} {each['reason']}" for each in found}


def test_a_failure_that_lasts_stays_as_it_was_first_reported(rig: Rig, audit: Audit) -> None:
    rig.write("mr", config_map("c", {"k": "v"}), _INVALID)
    rig.until_failed("mr", "is invalid")
    conditions = rig.get("ManagedResource", "mr")["status"]["conditions"]

    mark = audit.mark()
    until_tried_again(rig, audit, mark, resource="configmaps")
    assert rig.get("ManagedResource", "mr")["status"]["conditions"] == conditions
    assert status_writes(rig, audit, mark) == []


def limit_services(rig: Rig, most: int) -> None:
    hard = {"count/services": str(most)}
    rig.put(obj("ResourceQuota", "quota", spec={"hard": hard}))
    rig.until(
        lambda: rig.get("ResourceQuota", "quota").get("status", {}).get("hard") == hard, "the quota to be counted"
    )


def test_when_the_text_of_a_failure_changes_it_is_written_once(rig: Rig, audit: Audit) -> None:
    rig.put(service("taken"))
    limit_services(rig, 1)
    rig.write("mr", service("s"))
    rig.until_failed("mr", "exceeded quota", "limited: count/services=1")
    before = rig.condition("mr", "ResourcesApplied")

    mark = audit.mark()
    limit_services(rig, 0)
    rig.until_failed("mr", "limited: count/services=0")
    after = rig.condition("mr", "ResourcesApplied")
    assert after["lastTransitionTime"] == before["lastTransitionTime"]
    assert status_writes(rig, audit, mark) == ["patch managedresources/status"]

    limit_services(rig, 2)
    rig.until_applied("mr")


def test_while_some_objects_fail_the_others_are_not_checked(rig: Rig) -> None:
    rig.write("mr", deployment("d", replicas=1), _INVALID)
    rig.until_failed("mr", "is invalid")
    assert reported(rig, "mr") == {
        "ResourcesHealthy": "Unknown ChecksPending",
        "ResourcesProgressing": "Unknown ChecksPending",
        "ResourcesApplied": "False ApplyFailed",
    }


def test_by_option_the_others_are_checked_while_some_objects_fail(checking_rig: Rig, audit: Audit) -> None:
    rig = checking_rig
    rig.write("mr", config_map("c"), deployment("d", replicas=1), _INVALID)
    rig.until_failed("mr", "is invalid")
    failed = {"ResourcesApplied": "False ApplyFailed"}
    healthy = {"ResourcesHealthy": "True ResourcesHealthy", "ResourcesProgressing": "False ResourcesRolledOut"}
    rig.until(lambda: reported(rig, "mr") == failed | healthy, "the others to be found healthy")
    assert rig.condition("mr", "ResourcesHealthy")["message"] == "All resources that could be applied are healthy."

    mark = audit.mark()
    until_tried_again(rig, audit, mark, resource="configmaps")
    assert reported(rig, "mr") == failed | healthy
    assert status_writes(rig, audit, mark) == []

    nowhere = {"nodeSelector": {"there": "none"}}
    stuck = deployment("stuck", replicas=1, pod=nowhere)
    rig.write_secret("mr", config_map("c"), deployment("d", replicas=1), stuck, _INVALID)
    rig.until(
        lambda: "DeploymentUnhealthy" in reported(rig, "mr")["ResourcesHealthy"], "the Deployment to be unhealthy"
    )
    assert rig.applied("mr")[:2] == ("False", "ApplyFailed")

    rig.write_secret("mr", config_map("c"), deployment("d", replicas=1))
    rig.until(lambda: reported(rig, "mr") == {"ResourcesApplied": "True ApplySucceeded"} | healthy, "all to be well")


def test_by_option_one_of_which_nothing_could_be_applied_is_not_healthy(checking_rig: Rig, audit: Audit) -> None:
    rig = checking_rig
    rig.write("mr", _INVALID)
    mark = audit.mark()
    rig.until_failed("mr", "is invalid")
    until_tried_again(rig, audit, mark, resource="configmaps")
    assert reported(rig, "mr")["ResourcesHealthy"] == "Unknown ChecksPending"
