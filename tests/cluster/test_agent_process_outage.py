"""The agent as a process, with a cluster of its own: an API server that goes away, and the identity of the cluster."""

import contextlib
from collections.abc import Iterator

import pytest

from devcluster.cluster import Cluster
from kit.processes.agent import AgentProcess, configuration
from kube.errors import NotFound

NAMESPACE = "outage"


@pytest.fixture(scope="module")
def own_cluster(devcluster_run: object) -> Iterator[Cluster]:
    with Cluster() as own:
        own.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        yield own


@contextlib.contextmanager
def api_server_down(cluster: Cluster) -> Iterator[None]:
    cluster.stop_apiserver()
    try:
        yield
    finally:
        cluster.start_apiserver()


def test_it_survives_an_outage_as_long_as_its_lease_and_stays_alive_and_ready(own_cluster: Cluster) -> None:
    patient = configuration(
        NAMESPACE, leaderElection={"resourceName": "patient", "leaseDuration": "250s", "renewDeadline": "200s"}
    )
    impatient = configuration(
        NAMESPACE, leaderElection={"resourceName": "impatient", "leaseDuration": "40s", "renewDeadline": "10s"}
    )
    with (
        AgentProcess(patient, kubeconfig=own_cluster.kubeconfig) as survivor,
        AgentProcess(impatient, kubeconfig=own_cluster.kubeconfig) as victim,
    ):
        for agent in (survivor, victim):
            agent.wait_until_ready().wait_until_leading()
        with api_server_down(own_cluster):
            assert victim.wait(seconds=40) == 1  # no other may lead before
            # A restart would not mend it, and what is known is still known: a replica that was ready stays so.
            assert survivor.probe("/healthz") == (200, "ok")
            assert survivor.probe("/readyz") == (200, "ok")
        assert survivor.probe("/readyz")[0] == 200
        assert survivor.is_leading()
        assert survivor.stop() == 0
    assert victim.output == "leader election lost\n"


def test_it_is_not_ready_before_it_could_list_what_it_needs(own_cluster: Cluster) -> None:
    with contextlib.ExitStack() as stack:
        with api_server_down(own_cluster):
            agent = stack.enter_context(AgentProcess(configuration(NAMESPACE), kubeconfig=own_cluster.kubeconfig))
            agent.wait_for(lambda: agent.probe("/readyz")[0] == 500, what="/readyz to be bad")
            not_synced = "internal server error: informers not synced yet\n"
            assert agent.probe("/readyz/source-informer-sync") == (500, not_synced)
        agent.wait_until_ready().wait_until_leading()


# --- identity

IDENTITY_PATH = "/api/v1/namespaces/kube-system/configmaps"


@pytest.fixture
def without_identity(own_cluster: Cluster) -> Cluster:
    with contextlib.suppress(NotFound):
        own_cluster.api.delete(f"{IDENTITY_PATH}/cluster-identity")
    return own_cluster


def identified(cluster_id: str, cluster: Cluster) -> AgentProcess:
    config = configuration(NAMESPACE, controllers={"clusterID": cluster_id}, leaderElection={"leaderElect": False})
    return AgentProcess(config, kubeconfig=cluster.kubeconfig)


@pytest.mark.parametrize("cluster_id", ["<cluster>", "<default>"])
def test_the_identity_is_read_once_from_a_namespace_that_caches_do_not_cover(
    without_identity: Cluster, cluster_id: str
) -> None:
    own_cluster = without_identity
    content = {"metadata": {"name": "cluster-identity"}, "data": {"cluster-identity": "landscape-seed"}}
    own_cluster.api.create(IDENTITY_PATH, content)
    with contextlib.closing(own_cluster.audit()) as audit, identified(cluster_id, own_cluster) as agent:
        agent.wait_for_log("Trying to get cluster id from cluster")
        assert agent.wait_for_log("Using cluster id")["clusterID"] == "landscape-seed"
        calls = audit.calls(user_agent="gardener-resource-manager/", watches=True)
    assert [call.verb for call in calls if call.resource == "configmaps"] == ["get"]


def test_an_identity_that_is_missing_ends_the_process(without_identity: Cluster) -> None:
    with identified("<cluster>", without_identity) as agent:
        assert agent.wait() == 1
    assert agent.output == (
        "failed during bootstrapping: unable to determine cluster id: "
        'cannot determine cluster identity from configmap: configmaps "cluster-identity" not found\n'
    )


def test_an_identity_that_may_be_missing_is_empty(without_identity: Cluster) -> None:
    with identified("<default>", without_identity) as agent:
        assert agent.wait_for_log("Using cluster id")["clusterID"] == ""


def test_a_literal_identity_is_not_looked_up(without_identity: Cluster) -> None:
    with identified("my-seed", without_identity) as agent:
        assert agent.wait_for_log("Using cluster id")["clusterID"] == "my-seed"
        assert "Trying to get cluster id from cluster" not in agent.messages()
