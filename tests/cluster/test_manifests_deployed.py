"""What the manifests deploy works with exactly the rights that they grant.

The overlays are applied by `kubectl apply -k`, and of each Deployment one Pod is run as real processes, with the Pod's
arguments and the token of its ServiceAccount. A source and a target cluster of this module's own hold nothing else.

For the role that stands for "whatever ManagedResources contain" the tests put one that names the kinds that they use:
otherwise nothing would ever be forbidden.
"""

import base64
import contextlib
import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster.audit import Audit, Call
from devcluster.cluster import Cluster
from kit.eventually import eventually
from kit.granted_rights import Right, rights, unused
from kit.kinds import custom_resource, serve
from kit.processes.deployed_pods import DeployedPod, kubeconfig
from kit.signing.requests import CLIENT, csr_object, signing_request
from kube.errors import ApiError, KubeError, NotFound
from kube.objects import Object, annotations, condition, is_deleting, labels, metadata, uid

MANIFESTS = Path(__file__).parents[2] / "manifests"
PATIENCE = 300.0
GARDEN, WORK = "garden", "shoot--work"
SHOOT = "shoot--project--name"
AGENT, WEBHOOKS = "gardener-resource-manager", "gardener-resource-manager-webhooks"
CLUSTER_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
DOMAIN = "resources.gardener.cloud"
HA = f"high-availability-config.{DOMAIN}"
RBAC_KINDS = ("roles", "rolebindings", "clusterroles", "clusterrolebindings")

pytestmark = [
    pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl"),
    pytest.mark.timeout(600),
]


# --- the clusters


@pytest.fixture(scope="module")
def source(devcluster_run: object) -> Iterator[Cluster]:
    with Cluster(nodes=2) as own:
        for namespace, role in ((GARDEN, "garden"), (WORK, "shoot"), (SHOOT, "shoot")):
            restricted = {"pod-security.kubernetes.io/enforce": "restricted"} if namespace != WORK else {}
            make_namespace(own, namespace, **{"gardener.cloud/role": role, **restricted})
        serve(own, custom_resource("extensions.gardener.cloud", "Bastion", version="v1alpha1"))
        serve(own, custom_resource("extensions.gardener.cloud", "Infrastructure", version="v1alpha1"))
        serve(own, custom_resource("druid.gardener.cloud", "Etcd", version="v1alpha1"))
        for group, plural in (("extensions.gardener.cloud", "infrastructures"), ("druid.gardener.cloud", "etcds")):
            kind = {"apiVersion": f"{group}/v1alpha1", "kind": "Etcd" if plural == "etcds" else "Infrastructure"}
            own.api.create(f"/apis/{group}/v1alpha1/namespaces/{WORK}/{plural}", {**kind, "metadata": {"name": "kept"}})
        serve(own, custom_resource("machine.sapcloud.io", "Machine", version="v1alpha1"))
        serve(own, custom_resource("networking.istio.io", "Gateway", version="v1beta1"))
        serve(own, custom_resource("networking.istio.io", "VirtualService", version="v1beta1"))
        install_what_is_scaled(own)
        yield own


@pytest.fixture(scope="module")
def target(devcluster_run: object) -> Iterator[Cluster]:
    with Cluster(nodes=2) as own:
        make_namespace(own, "kubernetes-dashboard")
        install_what_is_scaled(own)
        yield own


def install_what_is_scaled(cluster: Cluster) -> None:
    serve(cluster, custom_resource("autoscaling.k8s.io", "Hvpa", version="v1alpha1"))
    serve(cluster, custom_resource("monitoring.coreos.com", "Prometheus"))


def make_namespace(cluster: Cluster, name: str, **labelled: str) -> None:
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labelled}})


def kubectl(cluster: Cluster, *arguments: str) -> str:
    command = ["kubectl", "--kubeconfig", str(cluster.kubeconfig), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def apply(cluster: Cluster, overlay: str) -> str:
    """First as a trial of everything, then really."""
    directory = str(MANIFESTS / "overlays" / overlay)
    kubectl(cluster, "apply", "--server-side", "--dry-run=server", "-k", directory)
    return kubectl(cluster, "apply", "--server-side", "-k", directory)


until = partial(eventually, seconds=PATIENCE, passing=(KubeError,))


def pod_of(cluster: Cluster, namespace: str, app: str) -> Object:
    """A running one."""
    path = f"/api/v1/namespaces/{namespace}/pods?labelSelector=app%3D{app}"

    def running() -> Object | None:
        pods = cluster.api.get(path)["items"]
        return next((pod for pod in pods if (condition(pod, "Ready") or {}).get("status") == "True"), None)

    return until(running, f"a pod of {app}")


def is_available(cluster: Cluster, namespace: str, deployment: str) -> bool:
    live = cluster.api.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/{deployment}")
    return (condition(live, "Available") or {}).get("status") == "True" and live["status"]["readyReplicas"] == 2


def rbac(cluster: Cluster) -> list[Object]:
    kinds = {"roles": "Role", "rolebindings": "RoleBinding", "clusterroles": "ClusterRole"}
    return [
        {**each, "kind": kinds.get(plural, "ClusterRoleBinding")}
        for plural in RBAC_KINDS
        for each in cluster.api.get(f"/apis/rbac.authorization.k8s.io/v1/{plural}")["items"]
    ]


NARROWED = {"gardener-resource-manager-seed", "gardener-resource-manager-managed-kinds"}


def narrow(cluster: Cluster, role: str) -> None:
    """ManagedResources may contain no more than those of the tests do."""
    every = ["get", "list", "watch", "create", "update", "patch", "delete"]
    rules = [
        {"apiGroups": [""], "resources": ["configmaps", "services", "namespaces"], "verbs": every},
        {"apiGroups": ["apps"], "resources": ["deployments", "statefulsets"], "verbs": every},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": [*every, "escalate", "bind"]},
    ]
    cluster.api.patch(f"{CLUSTER_ROLES}/{role}", {"rules": rules})


def often(config: dict[str, Any]) -> None:
    """What a test can't wait for."""
    controllers = config["controllers"]
    controllers["garbageCollector"] |= {"syncPeriod": "15s", "minimumObjectLifetime": "0s"}
    controllers["managedResource"]["syncPeriod"] = "15s"
    controllers["health"]["syncPeriod"] = "15s"


# --- rights that nothing here leads to for certain, and the test that does

_TOO_NEW = "test_webhook_state.py::test_a_service_account_that_is_not_known_yet_is_read_once"
ELSEWHERE = {
    # In this scenario it says nothing twice of an object of the target cluster.
    f"kube-system:{AGENT}": {"patch events": "test_event_recorder.py::test_a_repeated_event_is_counted_up"},
    # The webhook is faster than whoever makes an account and a pod of it.
    f"{GARDEN}:{WEBHOOKS}": {"get serviceaccounts": _TOO_NEW},
    f"kube-system:{WEBHOOKS}": {"get serviceaccounts": _TOO_NEW},
}


def test_what_is_said_to_be_tested_elsewhere_is() -> None:
    for test in {test for rights_ in ELSEWHERE.values() for test in rights_.values()}:
        file, name = test.split("::")
        assert f"def {name}(" in (Path(__file__).parent / file).read_text()


# --- what is asked of them


def managed(namespace: str, name: str, *objects: Object, **spec: Any) -> list[tuple[str, Object]]:
    """A ManagedResource and its Secret, and where they are created."""
    text = "\n---\n".join(json.dumps(obj) for obj in objects)
    secret = {"metadata": {"name": name}, "data": {"objects.yaml": base64.b64encode(text.encode()).decode()}}
    resource = {
        "apiVersion": f"{DOMAIN}/v1alpha1",
        "kind": "ManagedResource",
        "metadata": {"name": name},
        "spec": {"secretRefs": [{"name": name}], **spec},
    }
    return [
        (f"/api/v1/namespaces/{namespace}/secrets", secret),
        (f"/apis/{DOMAIN}/v1alpha1/namespaces/{namespace}/managedresources", resource),
    ]


def named(api_version: str, kind: str, namespace: str, name: str, **fields: Any) -> Object:
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **place}, **fields}


def pod_spec(**spec: Any) -> Object:
    return {"containers": [{"name": "c", "image": "example/c"}], **spec}


def workload(namespace: str, kind: str, name: str, **spec: Any) -> Object:
    template = {"metadata": {"labels": {"app": name}}, "spec": pod_spec()}
    selector = {"matchLabels": {"app": name}}
    obj = named("apps/v1", kind, namespace, name, spec={"selector": selector, "template": template, **spec})
    obj["metadata"]["labels"] = {f"{HA}/type": "server"}
    return obj


def bundle(namespace: str) -> list[Object]:
    """One of everything whose handling needs rights of its own."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    stateful = workload(
        namespace,
        "StatefulSet",
        "stateful",
        serviceName="stateful",
        replicas=1,
        volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": claim}],
    )
    rule = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["*"]}
    balanced = {"type": "LoadBalancer", "selector": {"app": "deployed"}, "ports": [{"port": 80}]}
    finalized = named("v1", "Namespace", "", "finalized")
    finalized["metadata"]["annotations"] = {f"{DOMAIN}/finalize-deletion-after": "1s"}
    return [
        finalized,
        named("v1", "ConfigMap", namespace, "configured", data={"key": "value"}),
        named("rbac.authorization.k8s.io/v1", "Role", namespace, "granted", rules=[rule]),
        named("v1", "Service", namespace, "balanced", spec=balanced),
        workload(namespace, "Deployment", "deployed", replicas=1),
        stateful,
    ]


def apply_and_remove_a_managed_resource(source: Cluster, target: Cluster, place: str, to: str, **spec: Any) -> None:
    name = "everything"
    path = f"/apis/{DOMAIN}/v1alpha1/namespaces/{place}/managedresources/{name}"

    def is_applied() -> bool:
        live = source.api.get(path)
        found = condition(live, "ResourcesApplied") or {} if live.get("status") else {}
        return found.get("status") == "True" and live["status"].get("observedGeneration") == 1

    def is_told_unhealthy() -> bool:
        found = condition(source.api.get(path), "ResourcesHealthy") or {}
        return "balanced" in found.get("message", "")

    objects = managed(place, name, *bundle(to), deletePersistentVolumeClaims=True, **spec)
    for collection, obj in objects:
        source.api.create(collection, obj)
    until(is_applied, "the ManagedResource to be applied")
    until(is_told_unhealthy, "the Service without an address to be told")
    # High availability: the webhook was asked about the agent's write.
    assert target.api.get(f"/apis/apps/v1/namespaces/{to}/deployments/deployed")["spec"]["replicas"] == 2
    claims = f"/api/v1/namespaces/{to}/persistentvolumeclaims"
    claimed = {uid(claim) for claim in until(lambda: target.api.get(claims)["items"], "claims of the StatefulSet")}
    changed = f"/api/v1/namespaces/{to}/configmaps/configured"
    target.api.patch(changed, {"data": {"key": "other"}})
    until(lambda: target.api.get(changed)["data"] == {"key": "value"}, "a change to be put right")
    target.api.patch(changed, {"data": {"key": "once more"}})
    until(lambda: target.api.get(changed)["data"] == {"key": "value"}, "the same to be done, and told, again")
    held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    target.api.create("/api/v1/namespaces/finalized/configmaps", held)
    source.api.delete(path)
    until(lambda: is_gone(source, path), "the ManagedResource to be gone")
    # The control plane may make new ones until it has seen that the StatefulSet goes.
    until(lambda: not claimed & {uid(each) for each in kept(target, claims)}, "claims to be gone")


def share_a_secret(source: Cluster, audit: Audit, place: str, to: str, user: str, **spec: Any) -> None:
    """Manifests are read again when they are wanted again, and a ManagedResource when others write it, too."""
    for name in ("first", "second"):
        (secrets, secret), (collection, resource) = managed(place, name, named("v1", "ConfigMap", to, name), **spec)
        if name == "first":
            source.api.create(secrets, secret)
        resource["spec"]["secretRefs"] = [{"name": "first"}]
        path = f"{collection}/{name}"
        source.api.create(collection, resource)

        def is_applied(path: str = path) -> bool:
            live = source.api.get(path)
            return (condition(live, "ResourcesApplied") or {}).get("status") == "True" if live.get("status") else False

        until(is_applied, f"{name} to be applied")

        def write(number: int, path: str = path) -> None:
            source.api.patch(path, {"spec": {"injectLabels": {"number": str(number)}}})
            for note in range(10):
                source.api.patch(path, {"metadata": {"annotations": {"note": str(note)}}})

        provoke(audit, user, Right(DOMAIN, "managedresources", "get"), write)
        source.api.delete(path)
        until(lambda path=path: is_gone(source, path), f"{name} to be gone")  # type: ignore[misc]


def provoke(audit: Audit, user: str, right: Right, act: Callable[[int], object]) -> None:
    """Do something again until it has led to a use of that right: it depends on who is faster."""
    deadline = time.monotonic() + PATIENCE
    number = 0
    while unused({right}, calls_of(audit, user)):
        assert time.monotonic() < deadline, f"waited in vain for: {right}"
        act(number)
        number += 1


def outdated_workloads(cluster: Cluster, namespace: str) -> None:
    """Spread as if there were one Node only, from before there were webhooks."""
    spread = [{"topologyKey": "kubernetes.io/hostname", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]
    for kind, plural in (("Deployment", "deployments"), ("StatefulSet", "statefulsets")):
        name = f"outdated-{kind.lower()}"
        obj = workload(namespace, kind, name, replicas=2)
        constraints = [{**each, "labelSelector": {"matchLabels": {"app": name}}} for each in spread]
        obj["spec"]["template"]["spec"]["topologySpreadConstraints"] = constraints
        cluster.api.create(f"/apis/apps/v1/namespaces/{namespace}/{plural}", obj)


def wait_with_another_replica(cluster: Cluster, directory: Path, audit: Audit, namespace: str) -> None:
    another = DeployedPod(cluster, pod_of(cluster, namespace, f"{AGENT}-agent"), directory)
    watching = {Right("coordination.k8s.io", "leases", "watch", (AGENT,))}
    with another.start("agent"):
        until(lambda: not unused(watching, calls_of(audit, f"{namespace}:{AGENT}")), "the Lease to be watched")


def break_the_certificate(cluster: Cluster, namespace: str) -> None:
    path, broken = f"/api/v1/namespaces/{namespace}/secrets/{AGENT}-server", base64.b64encode(b"broken").decode()
    until(lambda: cluster.api.patch(path, {"data": {"tls.crt": broken}}), "the certificate")
    until(lambda: cluster.api.get(path)["data"]["tls.crt"] != broken, "another certificate")


def kept(cluster: Cluster, collection: str) -> list[Object]:
    return [obj for obj in cluster.api.get(collection)["items"] if not is_deleting(obj)]


def is_gone(cluster: Cluster, path: str) -> bool:
    try:
        cluster.api.get(path)
    except NotFound:
        return True
    return False


def collect_garbage(cluster: Cluster, namespace: str) -> None:
    paths = []
    for plural in ("configmaps", "secrets"):
        collection = f"/api/v1/namespaces/{namespace}/{plural}"
        label = {f"{DOMAIN}/garbage-collectable-reference": "true"}
        cluster.api.create(collection, {"metadata": {"name": "garbage", "labels": label}, "immutable": True})
        paths.append(f"{collection}/garbage")
    until(lambda: all(is_gone(cluster, path) for path in paths), "garbage to be collected")


def invalidate_a_token(cluster: Cluster, namespace: str) -> None:
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    cluster.api.create(accounts, {"metadata": {"name": "static"}, "automountServiceAccountToken": False})
    named_by = {"kubernetes.io/service-account.name": "static"}
    secret = {"metadata": {"name": "static", "annotations": named_by}, "type": "kubernetes.io/service-account-token"}
    path = f"/api/v1/namespaces/{namespace}/secrets"
    cluster.api.create(path, secret)
    invalid = base64.b64encode(b"\0\0\0").decode()

    def is_invalid() -> bool:
        return (cluster.api.get(f"{path}/static").get("data") or {}).get("token") == invalid

    until(is_invalid, "the token to be invalid")


def mount_a_token(cluster: Cluster, namespace: str, **spec: Any) -> Object:
    """A pod of a ServiceAccount that nothing is mounted for by the API server itself."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    cluster.api.create(accounts, {"metadata": {"name": "mounted"}, "automountServiceAccountToken": False})
    meta = {"name": "mounted", "labels": {f"{DOMAIN}/managed-by": "gardener", "pod-template-hash": "x"}}
    spread = [{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]
    spread = [{**each, "labelSelector": {"matchLabels": {"app": "x"}}} for each in spread]
    pod = {"metadata": meta, "spec": pod_spec(serviceAccountName="mounted", topologySpreadConstraints=spread, **spec)}
    made = cluster.api.create(f"/api/v1/namespaces/{namespace}/pods", pod)
    assert "kube-api-access-gardener" in [volume["name"] for volume in made["spec"]["volumes"]]
    (constraint,) = made["spec"]["topologySpreadConstraints"]
    assert constraint["labelSelector"]["matchLabels"]["pod-template-hash"] == "x"
    return made


def write_network_policies(cluster: Cluster, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/services"
    policies = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"

    def names() -> set[str]:
        found = cluster.api.get(policies)["items"]
        return {metadata(policy)["name"] for policy in found if "db" in metadata(policy)["name"]}

    nobodys = {"metadata": {"name": "ingress-to-db-tcp-3306"}, "spec": {"podSelector": {}}}
    cluster.api.create(policies, nobodys)
    port = {"port": 80, "targetPort": 3306}
    cluster.api.create(path, {"metadata": {"name": "db"}, "spec": {"selector": {"app": "db"}, "ports": [port]}})
    until(lambda: names() == {"ingress-to-db-tcp-3306", "egress-to-db-tcp-3306"}, "policies")
    name = "ingress-to-db-tcp-3306"
    until(lambda: cluster.api.get(f"{policies}/{name}")["spec"]["podSelector"], "the policy to be taken over")
    cluster.api.patch(f"{policies}/{name}", {"spec": {"podSelector": {"matchLabels": {"app": "other"}}}})
    is_right = {"app": "db"}
    until(lambda: cluster.api.get(f"{policies}/{name}")["spec"]["podSelector"]["matchLabels"] == is_right, "mending")
    cluster.api.delete(f"{path}/db")
    until(lambda: not names(), "policies to be gone")


def refuse(write: Callable[[], object], *, message: str) -> None:
    with pytest.raises(ApiError, match=message):
        write()


def calls_of(audit: Audit, user: str) -> list[Call]:
    return [call for call in audit.calls(leases=True, watches=True) if call.user == f"system:serviceaccount:{user}"]


def approvals(cluster: Cluster, calls: list[Call]) -> Iterator[Call]:
    """Who approves needs a right for the signer as well; the API server asks for it by itself, and logs no call."""
    for call in calls:
        if (call.resource, call.verb, call.status) == ("certificatesigningrequests/approval", "update", 200):
            request = cluster.api.get(f"/apis/certificates.k8s.io/v1/certificatesigningrequests/{call.name}")
            yield replace(call, resource="signers", verb="approve", name=request["spec"]["signerName"])


def assert_all_rights_are_needed(cluster: Cluster, audit: Audit, user: str) -> None:
    """No call was forbidden, and each right was used, but for those that other tests prove."""
    granted = rights([each for each in rbac(cluster) if metadata(each)["name"] not in NARROWED], user.replace(":", "/"))

    def left() -> set[str]:
        calls = calls_of(audit, user)
        spare = {str(right) for right in unused(granted, [*calls, *approvals(cluster, calls)])}
        return spare - ELSEWHERE.get(user, {}).keys()

    # Some calls, such as those for Events, are made by the way.
    deadline = time.monotonic() + PATIENCE
    while left() and time.monotonic() < deadline:
        time.sleep(1)
    assert not left(), f"granted to {user}, and never used: {sorted(left())}"
    calls = calls_of(audit, user)
    assert calls, f"{user} asked nothing"
    assert not {f"{call.verb} {call.resource} {call.namespace}/{call.name}" for call in calls if call.status == 403}


# --- an instance for its own cluster


@contextlib.contextmanager
def served_by(cluster: Cluster, namespace: str, port: int) -> Iterator[None]:
    """The Service leads to a port of this machine, as kube-proxy would see to."""
    path = f"/api/v1/namespaces/{namespace}/services/{AGENT}"
    external = {"type": "ExternalName", "externalName": "127.0.0.1", "clusterIP": None, "clusterIPs": None}
    cluster.api.patch(path, {"spec": {**external, "selector": None}})
    for kind in ("mutating", "validating"):
        configuration = f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/{AGENT}"
        live = cluster.api.get(configuration)
        for webhook in live["webhooks"]:
            webhook["clientConfig"]["service"]["port"] = port
        cluster.api.patch(configuration, {"webhooks": live["webhooks"]})
    yield


def test_an_instance_for_its_own_cluster_works_with_the_rights_that_it_is_given(
    source: Cluster, tmp_path: Path
) -> None:
    source.api.patch(f"/api/v1/namespaces/{WORK}", {"metadata": {"labels": {f"{HA}/consider": "true"}}})
    outdated_workloads(source, WORK)
    with contextlib.closing(source.audit()) as audit:
        kubectl(source, "apply", "--server-side", "-f", str(MANIFESTS / "crds"))
        assert "Warning" not in apply(source, "runtime")
        for deployment in (AGENT, f"{AGENT}-agent"):
            until(lambda name=deployment: is_available(source, GARDEN, name), f"{deployment} to be available")  # type: ignore[misc]
        server = DeployedPod(source, pod_of(source, GARDEN, AGENT), tmp_path / "webhooks", change=often)
        agent = DeployedPod(source, pod_of(source, GARDEN, f"{AGENT}-agent"), tmp_path / "agent", change=often)
        with server.start("certificates") as certificates:
            certificates.wait_for_log("Issued a certificate for the server", seconds=PATIENCE)
            certificates.wait_for(lambda: bundle_told(source, AGENT), what="the CA in configurations", seconds=PATIENCE)
            # Applying again takes nothing away from what was put in.
            apply(source, "runtime")
            narrow(source, "gardener-resource-manager-seed")
            assert bundle_told(source, AGENT)
            break_the_certificate(source, GARDEN)
            with (
                server.start(AGENT) as webhooks,
                served_by(source, GARDEN, server.webhook_port),
                agent.start("agent") as process,
            ):
                webhooks.wait_until_ready(seconds=PATIENCE)
                process.wait_until_ready(seconds=PATIENCE).wait_until_leading(seconds=PATIENCE)
                apply_and_remove_a_managed_resource(source, source, WORK, WORK, **{"class": "seed"})
                share_a_secret(source, audit, WORK, WORK, f"{GARDEN}:{AGENT}", **{"class": "seed"})
                write_network_policies(source, WORK)
                collect_garbage(source, WORK)
                invalidate_a_token(source, WORK)
                mount_a_token(source, WORK)
                wait_with_another_replica(source, tmp_path / "another", audit, GARDEN)
                refuse_deletions(source)
                assert_all_rights_are_needed(source, audit, f"{GARDEN}:{AGENT}")
                assert_all_rights_are_needed(source, audit, f"{GARDEN}:{WEBHOOKS}")


def bundle_told(cluster: Cluster, name: str) -> bool:
    path = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{name}"
    return all(webhook["clientConfig"].get("caBundle") for webhook in cluster.api.get(path)["webhooks"])


def refuse_deletions(cluster: Cluster) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    managed_resources = f"{definitions}/managedresources.{DOMAIN}"
    refuse(lambda: cluster.api.delete(managed_resources), message="confirmation.gardener.cloud/deletion")
    protected = "?labelSelector=gardener.cloud%2Fdeletion-protected%3Dtrue"
    refuse(lambda: cluster.api.delete(definitions + protected), message="confirmation.gardener.cloud/deletion")
    for group, plural in (("extensions.gardener.cloud", "infrastructures"), ("druid.gardener.cloud", "etcds")):
        collection = f"/apis/{group}/v1alpha1/namespaces/{WORK}/{plural}"
        refuse(lambda path=collection: cluster.api.delete(path), message="confirmation")  # type: ignore[misc]
    invalid = {"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Bastion", "metadata": {"name": "b"}}
    bastions = f"/apis/extensions.gardener.cloud/v1alpha1/namespaces/{WORK}/bastions"
    refuse(lambda: cluster.api.create(bastions, {**invalid, "spec": {}}), message="spec.type")


# --- an instance for another cluster


def test_an_instance_for_another_cluster_works_with_the_rights_that_it_is_given(
    source: Cluster, target: Cluster, tmp_path: Path
) -> None:
    with contextlib.closing(source.audit()) as audit, contextlib.closing(target.audit()) as target_audit:
        target.api.patch("/api/v1/namespaces/kube-system", {"metadata": {"labels": {f"{HA}/consider": "true"}}})
        outdated_workloads(target, "kube-system")
        assert "Warning" not in apply(target, "target-cluster")
        narrow(target, "gardener-resource-manager-managed-kinds")
        assert "Warning" not in apply(source, "target")
        give_access(source, target)
        agent = DeployedPod(source, pod_of(source, SHOOT, f"{AGENT}-agent"), tmp_path / "agent", change=often)
        with agent.start("agent") as process:
            process.wait_until_ready(seconds=PATIENCE).wait_until_leading(seconds=PATIENCE)
            until(lambda: token_in(source, f"shoot-access-{WEBHOOKS}"), "a token for the webhooks")
            server = DeployedPod(source, pod_of(source, SHOOT, AGENT), tmp_path / "webhooks", change=often)
            with server.start("certificates", "--dns-name=127.0.0.1") as certificates:
                certificates.wait_for(
                    lambda: bundle_told(target, f"{AGENT}-shoot"), what="the CA in configurations", seconds=PATIENCE
                )
                break_the_certificate(source, SHOOT)
                with server.start(AGENT) as webhooks:
                    reach_by_address(target, server.webhook_port)
                    webhooks.wait_until_ready(seconds=PATIENCE)
                    apply_and_remove_a_managed_resource(source, target, SHOOT, "kube-system")
                    share_a_secret(source, audit, SHOOT, "kube-system", f"{SHOOT}:{AGENT}")
                    collect_garbage(target, "kube-system")
                    invalidate_a_token(target, "kube-system")
                    mount_a_token(target, "kube-system")
                    wait_with_another_replica(source, tmp_path / "another", audit, SHOOT)
                    approve_certificates(source, target)
                    free_a_node(target)
                    request_a_token(source, target)
                    renew(source, f"shoot-access-{AGENT}")
                    assert_all_rights_are_needed(source, audit, f"{SHOOT}:{AGENT}")
                    assert_all_rights_are_needed(source, audit, f"{SHOOT}:{WEBHOOKS}")
                    assert_all_rights_are_needed(target, target_audit, f"kube-system:{AGENT}")
                    assert_all_rights_are_needed(target, target_audit, f"kube-system:{WEBHOOKS}")


def request_a_token(source: Cluster, target: Cluster) -> None:
    """For a ServiceAccount that is not there yet, to a Secret of the target cluster; then with labels."""
    prefix = f"serviceaccount.{DOMAIN}"
    meta = {
        "name": "robot",
        "labels": {f"{DOMAIN}/purpose": "token-requestor", f"{DOMAIN}/class": "shoot"},
        "annotations": {
            f"{prefix}/name": "robot",
            f"{prefix}/namespace": "kube-system",
            f"token-requestor.{DOMAIN}/target-secret-name": "robot",
            f"token-requestor.{DOMAIN}/target-secret-namespace": "kube-system",
        },
    }
    source.api.create(f"/api/v1/namespaces/{SHOOT}/secrets", {"metadata": meta})
    path = "/api/v1/namespaces/kube-system/secrets/robot"

    def token() -> str:
        return str((target.api.get(path).get("data") or {}).get("token", ""))

    def renewal() -> str:
        live = source.api.get(f"/api/v1/namespaces/{SHOOT}/secrets/robot")
        return annotations(live).get(f"{prefix}/token-renew-timestamp", "")

    first = until(token, "a token in the target cluster")
    until(renewal, "the time of its renewal")  # written later; what is written before it would be lost
    changes = {f"{prefix}/token-renew-timestamp": "2020-01-01T00:00:00Z", f"{prefix}/labels": '{"a": "b"}'}
    source.api.patch(f"/api/v1/namespaces/{SHOOT}/secrets/robot", {"metadata": {"annotations": changes}})
    until(lambda: token() != first, "a new token in the target cluster")


def give_access(source: Cluster, target: Cluster) -> None:
    """What an operator does once: the kubeconfig without credentials, and the agent's first token."""
    account = f"/api/v1/namespaces/kube-system/serviceaccounts/{AGENT}/token"
    token = target.api.create(account, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    file = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/token"
    text = kubeconfig(target.url, ca=base64.b64encode(target.ca.encode()).decode(), token_file=file)
    secrets = f"/api/v1/namespaces/{SHOOT}/secrets"
    generic = {"metadata": {"name": "generic-token-kubeconfig"}, "stringData": {"kubeconfig": text}}
    source.api.create(secrets, generic)
    source.api.patch(f"{secrets}/shoot-access-{AGENT}", {"stringData": {"token": token}})


def token_in(cluster: Cluster, secret: str) -> str:
    data = cluster.api.get(f"/api/v1/namespaces/{SHOOT}/secrets/{secret}").get("data") or {}
    return str(data.get("token", ""))


def reach_by_address(target: Cluster, port: int) -> None:
    path = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{AGENT}-shoot"
    live = target.api.get(path)
    for webhook in live["webhooks"]:
        url = webhook["clientConfig"]["url"]
        webhook["clientConfig"]["url"] = f"https://127.0.0.1:{port}/{url.split('/', 3)[3]}"
    target.api.patch(path, {"webhooks": live["webhooks"]})


def approve_certificates(source: Cluster, target: Cluster) -> None:
    """A kubelet's for its Node, and a node agent's for a Machine that has not become a Node yet."""
    nodes, name = "/api/v1/nodes", "machine-node"
    target.api.create(nodes, {"metadata": {"name": name}})
    addresses = [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": "10.1.2.3"}]
    target.api.patch(f"{nodes}/{name}/status", {"status": {"addresses": addresses}})
    for machine, node in (("m", {"node": name}), ("new", {})):
        obj = named("machine.sapcloud.io/v1alpha1", "Machine", SHOOT, machine)
        obj["metadata"]["labels"] = node
        source.api.create(f"/apis/machine.sapcloud.io/v1alpha1/namespaces/{SHOOT}/machines", obj)
    user = f"system:node:{name}"
    approve(target, user, csr_object(signing_request(user, dns=[name], ips=["10.1.2.3"]), name="serving"))
    agent = signing_request("gardener.cloud:node-agent:machine:new", organizations=["gardener.cloud:node-agents"])
    approve(target, "system:bootstrap:abcdef", csr_object(agent, name="client", signer=CLIENT))


def approve(target: Cluster, user: str, request: Object) -> None:
    requester = target.kubeconfig_for(user, ["system:nodes", "system:masters"])
    made = subprocess.run(
        ["kubectl", "--kubeconfig", str(requester), "create", "-f", "-"],
        check=False,
        input=yaml.safe_dump(request),
        text=True,
        capture_output=True,
        timeout=PATIENCE,
    )
    assert made.returncode == 0, made.stderr
    path = f"/apis/certificates.k8s.io/v1/certificatesigningrequests/{metadata(request)['name']}"
    until(lambda: (condition(target.api.get(path), "Approved") or {}).get("status") == "True", "an approval")


def free_a_node(target: Cluster) -> None:
    taint = {"key": "node.gardener.cloud/critical-components-not-ready", "effect": "NoSchedule"}
    nodes = "/api/v1/nodes"
    target.api.create(nodes, {"metadata": {"name": "tainted"}, "spec": {"taints": [taint]}})

    def is_free() -> bool:
        live = target.api.get(f"{nodes}/tainted")
        keys = {each["key"] for each in live["spec"].get("taints") or ()}
        delayed = any("reconciliation-delay" in name for name in annotations(live))
        return taint["key"] not in keys and delayed

    until(is_free, "the taint to go and a delay to come")


def renew(source: Cluster, secret: str) -> None:
    path = f"/api/v1/namespaces/{SHOOT}/secrets/{secret}"
    before = token_in(source, secret)
    renewal = {f"serviceaccount.{DOMAIN}/token-renew-timestamp": "2020-01-01T00:00:00Z"}
    source.api.patch(path, {"metadata": {"annotations": renewal}})
    until(lambda: token_in(source, secret) != before, "a new token")
    assert labels(source.api.get(path))[f"{DOMAIN}/purpose"] == "token-requestor"
