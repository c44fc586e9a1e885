"""The cluster behaves as a real one does: nodes, pods, jobs, users, audit, restarts."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from devcluster.api import Api
from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kit.eventually import eventually
from kit.objects import CONTAINERS, deployment, obj, pod
from kit.world import Place
from kube.errors import Forbidden, NotFound, ServerFailure, Unreachable
from kube.objects import Object, condition
from localprocesses.components import NODE_ANNOTATION


def kubectl(kubeconfig: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = ["kubectl", "--kubeconfig", str(kubeconfig), *arguments]
    return subprocess.run(command, check=check, capture_output=True, text=True)


def is_ready(live: Object) -> bool:
    return (condition(live, "Ready") or {}).get("status") == "True"


def test_nodes_are_ready_and_lie_in_three_zones(cluster: Cluster) -> None:
    def nodes() -> list[Object]:
        return [cluster.api.get(f"/api/v1/nodes/node-{index}") for index in range(3)]

    # On a machine that stands still for a while they are given up, and come back.
    eventually(lambda: all(is_ready(node) for node in nodes()))
    assert len({node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes()}) == 3


def test_kubectl_works_with_the_kubeconfig(cluster: Cluster) -> None:
    assert "node-0" in kubectl(cluster.kubeconfig, "get", "nodes", "-o", "name").stdout
    assert kubectl(cluster.kubeconfig, "auth", "can-i", "*", "*", "--all-namespaces").stdout.strip() == "yes"


def test_a_node_without_the_annotation_is_left_alone(cluster: Cluster, namespace: str) -> None:
    place, name = Place(cluster, namespace), f"plain-{namespace}"
    place.create(obj("Node", name, spec={"unschedulable": True}))
    try:
        # Once a pod on a simulated node runs, KWOK has seen the older node too.
        run_pod(place)
        assert not is_ready(place.get("Node", name))
    finally:
        place.delete("Node", name)


def run_pod(place: Place, **fields: Any) -> Object:
    place.create(pod("pod", terminationGracePeriodSeconds=30, **fields))
    eventually(lambda: is_ready(place.get("Pod", "pod")))
    return place.get("Pod", "pod")


def test_a_pod_is_scheduled_and_gets_ready(cluster: Cluster, namespace: str) -> None:
    running = run_pod(Place(cluster, namespace))
    assert running["spec"]["nodeName"].startswith("node-")
    assert running["status"]["podIP"]
    assert [status["ready"] for status in running["status"]["containerStatuses"]] == [True]


def test_a_pod_in_the_network_of_a_node_without_an_address_gets_ready(cluster: Cluster, namespace: str) -> None:
    place, name = Place(cluster, namespace), f"bare-{namespace}"
    place.create(obj("Node", name, annotations=dict([NODE_ANNOTATION])))
    try:
        status = run_pod(place, hostNetwork=True, nodeName=name)["status"]
        assert status["podIP"] == status["hostIP"] != ""
    finally:
        place.delete("Node", name)


def test_a_deleted_pod_is_gone_in_a_moment(cluster: Cluster, namespace: str) -> None:
    place = Place(cluster, namespace)
    run_pod(place)
    place.delete("Pod", "pod")
    eventually(lambda: not place.list("Pod"))


def test_a_deployment_becomes_available_and_a_job_completes(cluster: Cluster, namespace: str) -> None:
    place = Place(cluster, namespace)
    place.create(deployment("it", replicas=3))
    template = {"spec": {"restartPolicy": "Never", "containers": CONTAINERS}}
    place.create(obj("Job", "it", spec={"template": template}))
    eventually(lambda: place.get("Deployment", "it").get("status", {}).get("availableReplicas") == 3)
    eventually(lambda: place.get("Job", "it").get("status", {}).get("succeeded") == 1)


def test_tokens_for_the_audience_gardener_are_accepted(cluster: Cluster, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    request = {"spec": {"audiences": ["gardener"], "expirationSeconds": 3600}}
    token = cluster.api.create(path, request)["status"]["token"]
    review = Api(url=cluster.url, ca=cluster.ca, token=token).create(
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
    )
    assert review["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:default"


def test_a_kubeconfig_for_another_user_has_that_user_s_rights_only(cluster: Cluster) -> None:
    kubeconfig = cluster.kubeconfig_for("jane", ["readers", "writers"])
    whoami = kubectl(kubeconfig, "auth", "whoami").stdout
    assert "jane" in whoami
    assert "readers writers" in whoami
    refused = kubectl(kubeconfig, "get", "secrets", check=False)
    assert 'User "jane" cannot list resource "secrets"' in refused.stderr


def test_the_second_cluster_is_another_one(cluster: Cluster, target_cluster: Cluster, namespace: str) -> None:
    assert target_cluster.url != cluster.url
    names = [item["metadata"]["name"] for item in target_cluster.api.get("/api/v1/namespaces")["items"]]
    assert "kube-system" in names
    assert namespace not in names


def test_audit_counts_the_calls_of_one_client_by_verb_and_resource(
    cluster: Cluster, namespace: str, audit: Audit
) -> None:
    api = Api(url=cluster.url, ca=cluster.ca, token=cluster.token, user_agent=f"counted-{namespace}/1.0")
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    api.create(path, {"metadata": {"name": "before"}})
    mark = audit.mark()
    api.create(path, {"metadata": {"name": "one"}})
    api.get(path)
    api.get(path)
    with pytest.raises(Forbidden):
        api.request("DELETE", f"/api/v1/namespaces/{namespace}/bindings", headers={"Impersonate-User": "eve"})
    cluster.api.get(path)

    counted = {("create", "configmaps"): 1, ("list", "configmaps"): 2, ("deletecollection", "bindings"): 1}
    assert audit.count(since=mark, user_agent=f"counted-{namespace}/") == counted
    assert audit.count(since=mark, user_agent=f"counted-{namespace}/", verbs=["create"]) == {
        ("create", "configmaps"): 1
    }
    created = audit.calls(since=mark, namespace=namespace, verbs=["create"])
    assert [(call.name, call.status, call.user) for call in created] == [("one", 201, "devcluster-admin")]
    assert audit.count(since=audit.mark(), user_agent=f"counted-{namespace}/") == {}


def test_audit_counts_leases_and_watches_only_if_requested(cluster: Cluster, namespace: str, audit: Audit) -> None:
    agent = f"watching-{namespace}/"
    api = Api(url=cluster.url, ca=cluster.ca, token=cluster.token, user_agent=agent)
    lease = {"metadata": {"name": "leader"}}
    api.create(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases", lease)
    # Ends after a second: a watch has two entries in the log, but is one call.
    api.raw("GET", f"/api/v1/namespaces/{namespace}/pods?watch=true&timeoutSeconds=1")
    assert audit.count(user_agent=agent) == {}
    assert audit.count(user_agent=agent, leases=True, watches=True) == {
        ("create", "leases"): 1,
        ("watch", "pods"): 1,
    }


def test_the_audit_log_is_read_on_after_a_rotation(cluster: Cluster, namespace: str) -> None:
    """The log is 100 MB long before it is rotated, so a file of our own takes its place here."""
    log = cluster.state / f"{namespace}.log"
    log.touch()

    class Writer:
        def get(self, path: str) -> Object:
            event = {"requestURI": path, "stage": "ResponseComplete", "auditID": "1", "verb": "get", "user": {}}
            with log.open("a") as file:
                file.write(json.dumps(event) + "\n")
            return {}

    writer = Writer()
    audit = Audit(log, writer)  # type: ignore[arg-type]
    writer.get("/first")
    assert [call.uri for call in audit.calls()] == ["/first"]
    log.rename(log.with_suffix(".old"))
    writer.get("/second")
    assert [call.uri for call in audit.calls()] == ["/first", "/second"]
    audit.close()


@pytest.mark.usefixtures("devcluster_run")
async def test_components_can_be_stopped_and_started_and_the_state_outlives_that() -> None:
    async with Cluster() as own:
        url = own.url
        own.api.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "kept"}})
        own.stop_apiserver(kill=True)
        with pytest.raises(Unreachable):
            own.api.get("/version")
        own.start_apiserver()
        assert own.url == url
        own.stop_etcd()
        own.start_etcd()

        def is_kept() -> bool:
            try:
                return bool(own.api.get("/api/v1/namespaces/default/configmaps/kept"))
            except (ServerFailure, Unreachable):  # each kind has a connection to etcd of its own
                return False

        eventually(is_kept)


@pytest.mark.usefixtures("devcluster_run")
def test_a_restored_snapshot_takes_objects_and_versions_back() -> None:
    path = "/api/v1/namespaces/default/configmaps"

    def version(obj: Object) -> int:
        return int(obj["metadata"]["resourceVersion"])

    with Cluster() as own:
        before = own.api.create(path, {"metadata": {"name": "changed"}})
        snapshot = own.snapshot()
        for number in range(200):
            changed = own.api.patch(f"{path}/changed", {"data": {"number": str(number)}})
        for _ in range(2):  # a snapshot is not used up
            own.api.create(path, {"metadata": {"name": "lost"}})
            own.restore(snapshot)
            assert own.api.get(f"{path}/changed") == before
            with pytest.raises(NotFound):
                own.api.get(f"{path}/lost")
            assert version(before) < version(own.api.create(path, {"metadata": {"generateName": "new-"}}))
            assert version(own.api.get(path)) < version(changed)
