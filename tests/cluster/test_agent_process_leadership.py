"""Agents as processes: one leads, another takes over when it stops or is killed."""

import re
import time
from typing import Any

import pytest

from devcluster.cluster import Cluster
from kit.managed_resources import install_crd
from kit.objects import bundle, config_map, managed_resource
from kit.processes.agent import AgentProcess, configuration
from kit.world import Place
from kube.clock import parse_time

LEASE_SECONDS = 15
RETRY_SECONDS = 0.2


@pytest.fixture
def config(namespace: str) -> dict[str, Any]:
    times = {"leaseDuration": f"{LEASE_SECONDS}s", "renewDeadline": "10s", "retryPeriod": f"{RETRY_SECONDS}s"}
    return configuration(namespace, leaderElection=times)


def lease(cluster: Cluster, namespace: str) -> dict[str, Any]:
    spec: dict[str, Any] = Place(cluster, namespace).get("Lease", "gardener-resource-manager")["spec"]
    return spec


def test_the_lease_names_the_leader_and_is_released_at_its_end(
    cluster: Cluster, namespace: str, config: dict[str, Any]
) -> None:
    with AgentProcess(config, kubeconfig=cluster.kubeconfig) as agent:
        agent.wait_until_leading()
        spec = lease(cluster, namespace)
        assert re.fullmatch(r".+_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", spec["holderIdentity"])
        assert (spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (LEASE_SECONDS, 0)
        identity = spec["holderIdentity"]
        became = ("Normal", "LeaderElection", "Lease", f"{identity} became leader")
        agent.wait_for(lambda: became in events_of(cluster, namespace), what="the event of its start")
        assert agent.stop() == 0
    released = lease(cluster, namespace)
    assert (released["holderIdentity"], released["leaseDurationSeconds"], released["leaseTransitions"]) == ("", 1, 0)
    # At the end there is only a moment for it.
    in_time = "Some events were not written in time" not in agent.messages()
    stopped = ("Normal", "LeaderElection", "Lease", f"{identity} stopped leading")
    assert stopped in events_of(cluster, namespace) or not in_time


def events_of(cluster: Cluster, namespace: str) -> set[tuple[str, str, str, str]]:
    events = Place(cluster, namespace).list("Event")
    return {(event["type"], event["reason"], event["involvedObject"]["kind"], event["message"]) for event in events}


def test_who_does_not_lead_is_ready_and_takes_over_at_once_when_the_leader_stops(
    cluster: Cluster, namespace: str, config: dict[str, Any]
) -> None:
    with AgentProcess(config, kubeconfig=cluster.kubeconfig) as first:
        first.wait_until_leading()
        with AgentProcess(config, kubeconfig=cluster.kubeconfig) as second:
            second.wait_until_ready()
            second.wait_for_log(f"attempting to acquire leader lease {namespace}/gardener-resource-manager...")
            assert second.metric("leader_election_master_status") == 0
            assert not [s for s in second.metrics() if s.startswith(("controller_runtime_", "workqueue_depth"))]
            assert "Using cluster id" not in second.messages()
            series = 'controller_runtime_max_concurrent_reconciles{controller="managedresource"}'
            first.wait_for(lambda: first.metrics().get(series) == 5, what="the metrics of a leader's controllers")

            assert first.stop() == 0
            stopped = time.monotonic()
            second.wait_until_leading()
            assert time.monotonic() - stopped < LEASE_SECONDS - 0.5
            second.wait_for_log("Using cluster id")


def test_what_changes_without_a_leader_is_made_good_by_the_successor_at_once(cluster: Cluster, namespace: str) -> None:
    install_crd(cluster)
    # A look at the Lease once in 100 to 220 s: who leads earlier has seen that it was given up.
    seldom = {"leaseDuration": "200s", "renewDeadline": "150s", "retryPeriod": "100s"}
    config = configuration(namespace, leaderElection=seldom)
    place = Place(cluster, namespace)

    def write(version: str) -> None:
        place.put(bundle("mr", config_map("c", {"version": version}, namespace=namespace)))

    def applied() -> str:
        return str((place.find("ConfigMap", "c") or {"data": {"version": ""}})["data"]["version"])

    write("1")
    place.create(managed_resource("mr"))
    with AgentProcess(config, kubeconfig=cluster.kubeconfig) as first:
        first.wait_for(lambda: applied() == "1", what="the first version")
        with AgentProcess(config, kubeconfig=cluster.kubeconfig) as second:
            second.wait_for(
                lambda: any(message.startswith("new leader elected") for message in second.messages()),
                what="the first look at the Lease",
            )
            assert first.stop() == 0
            write("2")
            second.wait_for(lambda: applied() == "2", what="the second version")
            place.delete("ManagedResource", "mr")
            second.wait_for(lambda: not applied(), what="the removal")


def test_when_the_leader_is_killed_the_other_takes_over_when_the_lease_has_expired(
    cluster: Cluster, namespace: str, config: dict[str, Any]
) -> None:
    with AgentProcess(config, kubeconfig=cluster.kubeconfig) as first:
        first.wait_until_leading()
        with AgentProcess(config, kubeconfig=cluster.kubeconfig) as second:
            second.wait_until_ready()
            second.wait_for_log(f"attempting to acquire leader lease {namespace}/gardener-resource-manager...")
            time.sleep(RETRY_SECONDS * 3)  # so that it has seen a lease that is being renewed
            before = lease(cluster, namespace)
            first.kill()
            second.wait_until_leading(seconds=LEASE_SECONDS + 60)
            spec = lease(cluster, namespace)
            assert spec["holderIdentity"] != before["holderIdentity"]
            assert spec["leaseTransitions"] == 1
    # By the times in the Lease, as the last renewal may have been long before the kill, or the test be slow to look.
    took = parse_time(spec["acquireTime"]) - parse_time(before["renewTime"])
    assert took.total_seconds() > LEASE_SECONDS - 0.5


def test_without_election_it_acts_as_leader_at_once(cluster: Cluster, namespace: str) -> None:
    config = configuration(namespace, leaderElection={"leaderElect": False})
    with AgentProcess(config, kubeconfig=cluster.kubeconfig) as agent:
        agent.wait_until_ready().wait_for_log("Using cluster id")
        assert agent.metric("leader_election_master_status") is None
        assert cluster.api.get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")["items"] == []
