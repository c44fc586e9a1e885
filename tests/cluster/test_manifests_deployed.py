"""What the manifests deploy works with exactly the rights that they grant.

The overlays are applied by `kubectl apply -k`, and of each Deployment one Pod is run as real processes, with the Pod's
arguments and the token of its ServiceAccount. A source and a target cluster of this module's own hold nothing else.

For the role that stands for "whatever ManagedResources contain" the tests put one that names the kinds that they use:
otherwise nothing would ever be forbidden.
"""

import contextlib
import shutil
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
from gardener import keys
from gardener.api.kinds import GATEWAYS, HVPAS, MACHINES, PROMETHEUSES, VIRTUAL_SERVICES
from kit.deployments import MANIFESTS, apply, is_available, kubectl, pod_of, reported_bundle, serve_at, until
from kit.eventually import PATIENCE
from kit.granted_rights import Right, rights, unused
from kit.kinds import custom_resource, serve
from kit.kubeconfigs import with_token_file
from kit.objects import (
    Kind,
    bundle,
    config_map,
    decoded,
    deployment,
    encoded,
    managed_resource,
    obj,
    pod,
    role,
    rule,
    secret,
    service,
    stateful_set,
    workload,
)
from kit.processes.deployed_pods import DeployedPod
from kit.signing.requests import CLIENT, csr_object, signing_request
from kit.world import Place
from kube.errors import ApiError
from kube.objects import Object, annotations, condition, is_deleting, labels, metadata, uid
from kube.resources import (
    API_SERVICES,
    CERTIFICATE_SIGNING_REQUESTS,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOKS,
    RBAC_GROUP,
    ROLE_BINDINGS,
    ROLES,
    VOLUME_CLAIMS,
)

GARDEN, WORK = "garden", "shoot--work"
SHOOT = "shoot--project--name"
AGENT, WEBHOOKS = "gardener-resource-manager", "gardener-resource-manager-webhooks"
DOMAIN = "resources.gardener.cloud"
HA = f"high-availability-config.{DOMAIN}"

pytestmark = [
    pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl"),
    pytest.mark.timeout(600),
]


# --- the clusters


EXTENSIONS = "extensions.gardener.cloud"
INFRASTRUCTURES = custom_resource(EXTENSIONS, "Infrastructure", version="v1alpha1")
BASTIONS = custom_resource(EXTENSIONS, "Bastion", version="v1alpha1")
ETCDS = custom_resource("druid.gardener.cloud", "Etcd", version="v1alpha1")


@pytest.fixture(scope="module")
def source(devcluster_run: object) -> Iterator[Cluster]:
    with Cluster(nodes=2) as own:
        for namespace, purpose in ((GARDEN, "garden"), (WORK, "shoot"), (SHOOT, "shoot")):
            restricted = {"pod-security.kubernetes.io/enforce": "restricted"} if namespace != WORK else {}
            marks = {"gardener.cloud/role": purpose, **restricted}
            Place(own, "").create(obj("Namespace", namespace, labels=marks))
        serve(own, INFRASTRUCTURES, BASTIONS, ETCDS, MACHINES, GATEWAYS, VIRTUAL_SERVICES, HVPAS, PROMETHEUSES)
        for kind in (INFRASTRUCTURES, ETCDS):
            Place(own, WORK).create(obj(kind, "kept"), kind)
        yield own


@pytest.fixture(scope="module")
def target(devcluster_run: object) -> Iterator[Cluster]:
    with Cluster(nodes=2) as own:
        Place(own, "").create(obj("Namespace", "kubernetes-dashboard"))
        serve(own, HVPAS, PROMETHEUSES)
        yield own


def rbac(cluster: Cluster) -> list[Object]:
    return [
        {**each, "kind": kind.kind}
        for kind in (ROLES, ROLE_BINDINGS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
        for each in cluster.api.get(kind.path())["items"]
    ]


NARROWED = {"gardener-resource-manager-seed", "gardener-resource-manager-managed-kinds"}


def narrow(cluster: Cluster, role: str) -> None:
    """ManagedResources may contain no more than those of the tests do."""
    every = "get list watch create update patch delete"
    rules = [
        rule("", "configmaps services namespaces", every),
        rule("apps", "deployments statefulsets", every),
        rule(RBAC_GROUP, "roles", f"{every} escalate bind"),
    ]
    Place(cluster, "").patch(CLUSTER_ROLES, role, {"rules": rules})


def often(config: dict[str, Any]) -> None:
    """What a test can't wait for."""
    controllers = config["controllers"]
    controllers["garbageCollector"] |= {"syncPeriod": "15s", "minimumObjectLifetime": "0s"}
    controllers["managedResource"]["syncPeriod"] = "15s"
    controllers["health"]["syncPeriod"] = "15s"


# --- rights that nothing here leads to for certain, and the test that does

_TOO_NEW = "test_webhook_state.py::test_a_service_account_that_is_not_known_yet_is_read_once"
_REPEATED = "test_event_recorder.py::test_a_repeated_event_is_counted_up"
_LISTED = "../unit/kube/test_watch.py::test_what_does_not_come_in_a_stream_is_listed"
_AUTOSCALERS = {
    f"list {kind}": _LISTED for kind in ("horizontalpodautoscalers.autoscaling", "hvpas.autoscaling.k8s.io")
}
_ABSENT = "test_cache_and_crds.py::test_a_store_of_a_kind_that_does_not_exist_yet_is_empty_and_fills_when_it_comes"
# Here all kinds that are watched are served.
_GONE_KINDS = {f"list {each.plural}.{each.group}": _ABSENT for each in (API_SERVICES, CUSTOM_RESOURCE_DEFINITIONS)}
ELSEWHERE = {
    # In these scenarios it reports nothing twice, and this API server has no need of lists.
    f"{GARDEN}:{AGENT}": {"patch events": _REPEATED, **_AUTOSCALERS, **_GONE_KINDS},
    f"{SHOOT}:{AGENT}": {"patch events": _REPEATED},
    f"kube-system:{AGENT}": {"patch events": _REPEATED, **_AUTOSCALERS, **_GONE_KINDS},
    # The webhook is faster than a client that makes an account and a pod of it.
    f"{GARDEN}:{WEBHOOKS}": {"get serviceaccounts": _TOO_NEW, **_GONE_KINDS},
    f"kube-system:{WEBHOOKS}": {"get serviceaccounts": _TOO_NEW, **_GONE_KINDS},
}


def test_what_is_reported_to_be_tested_elsewhere_is() -> None:
    for test in {test for rights_ in ELSEWHERE.values() for test in rights_.values()}:
        file, name = test.split("::")
        assert f"def {name}(" in (Path(__file__).parent / file).read_text()


# --- what is requested from them


HIGHLY_AVAILABLE = {f"{HA}/type": "server"}


def content(namespace: str) -> list[Object]:
    """One of everything whose handling needs rights of its own."""
    return [
        obj("Namespace", "finalized", annotations={f"{DOMAIN}/finalize-deletion-after": "1s"}),
        config_map("configured", {"key": "value"}, namespace=namespace),
        role("granted", rule("", "nodes"), namespace=namespace),
        service("balanced", namespace=namespace, type="LoadBalancer", selector={"app": "deployed"}),
        deployment("deployed", namespace=namespace, labels=HIGHLY_AVAILABLE, replicas=1),
        stateful_set("stateful", namespace=namespace, labels=HIGHLY_AVAILABLE, replicas=1),
    ]


def is_applied(place: Place, name: str) -> bool:
    """A ManagedResource that was not changed since it was created."""
    applied = place.condition(name, "ResourcesApplied").get("status") == "True"
    return applied and place.get("ManagedResource", name)["status"].get("observedGeneration") == 1


def is_gone(place: Place, name: str) -> bool:
    return not place.find("ManagedResource", name)


def apply_and_remove_a_managed_resource(source: Place, target: Place, **spec: Any) -> None:
    name = "everything"

    def is_reported_unhealthy() -> bool:
        return "balanced" in source.condition(name, "ResourcesHealthy").get("message", "")

    source.create(bundle(name, *content(target.namespace)))
    source.create(managed_resource(name, spec={"deletePersistentVolumeClaims": True, **spec}))
    until(partial(is_applied, source, name), "the ManagedResource to be applied")
    until(is_reported_unhealthy, "the Service without an address to be reported")
    # High availability: the webhook was queried about the agent's write.
    assert target.get("Deployment", "deployed")["spec"]["replicas"] == 2
    claimed = {uid(claim) for claim in until(lambda: target.list(VOLUME_CLAIMS), "claims of the StatefulSet")}
    for change, what in (
        ("other", "a change to be restored"),
        ("once more", "the same to be done, and reported, again"),
    ):
        target.patch("ConfigMap", "configured", {"data": {"key": change}})
        until(lambda: target.get("ConfigMap", "configured")["data"] == {"key": "value"}, what)
    Place(target.cluster, "finalized").create(config_map("held", finalizers=["example.com/hold"]))
    source.delete("ManagedResource", name)
    until(partial(is_gone, source, name), "the ManagedResource to be gone")
    # The control plane may make new ones until it has seen that the StatefulSet goes.
    until(lambda: not claimed & {uid(each) for each in kept(target, VOLUME_CLAIMS)}, "claims to be gone")


def share_a_secret(source: Place, audit: Audit, to: str, user: str, **spec: Any) -> None:
    """Manifests are read again when they are wanted again, and a ManagedResource when others write it, too."""
    source.create(bundle("first", config_map("first", namespace=to)))
    for name in ("first", "second"):
        source.create(managed_resource(name, spec={"secretRefs": [{"name": "first"}], **spec}))
        until(partial(is_applied, source, name), f"{name} to be applied")

        def write(number: int, name: str = name) -> None:
            source.patch("ManagedResource", name, {"spec": {"injectLabels": {"number": str(number)}}})
            for note in range(10):
                source.patch("ManagedResource", name, {"metadata": {"annotations": {"note": str(note)}}})

        provoke(audit, user, Right(DOMAIN, "managedresources", "get"), write)
        source.delete("ManagedResource", name)
        until(partial(is_gone, source, name), f"{name} to be gone")


def provoke(audit: Audit, user: str, right: Right, act: Callable[[int], object]) -> None:
    """Do something again until it has led to a use of that right: it depends on who is faster."""
    deadline = time.monotonic() + PATIENCE
    number = 0
    while unused({right}, calls_of(audit, user)):
        assert time.monotonic() < deadline, f"waited in vain for: {right}"
        act(number)
        number += 1


def outdated_workloads(place: Place) -> None:
    """Spread as if there were one Node only, from before there were webhooks."""
    for kind in ("Deployment", "StatefulSet"):
        name = f"outdated-{kind.lower()}"
        constraints = {"topologySpreadConstraints": [spread("kubernetes.io/hostname", name)]}
        place.create(workload(kind, name, labels=HIGHLY_AVAILABLE, replicas=2, pod=constraints))


def spread(topology_key: str, app: str) -> Object:
    constraint = {"topologyKey": topology_key, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    return {**constraint, "labelSelector": {"matchLabels": {"app": app}}}


def wait_with_another_replica(place: Place, directory: Path, audit: Audit) -> None:
    another = DeployedPod(place.cluster, pod_of(place, f"{AGENT}-agent"), directory)
    watching = {Right("coordination.k8s.io", "leases", "watch", (AGENT,))}
    with another.start("agent"):
        until(lambda: not unused(watching, calls_of(audit, f"{place.namespace}:{AGENT}")), "the Lease to be watched")


def break_the_certificate(place: Place) -> None:
    name, broken = f"{AGENT}-server", encoded({"tls.crt": "broken"})
    until(lambda: place.patch("Secret", name, {"data": broken}), "the certificate")
    until(lambda: place.get("Secret", name)["data"]["tls.crt"] != broken["tls.crt"], "another certificate")


def kept(place: Place, kind: Kind) -> list[Object]:
    return [each for each in place.list(kind) if not is_deleting(each)]


def collect_garbage(place: Place) -> None:
    kinds = ("ConfigMap", "Secret")
    for kind in kinds:
        label = {f"{DOMAIN}/garbage-collectable-reference": "true"}
        place.create(obj(kind, "garbage", labels=label, immutable=True))
    until(lambda: not any(place.find(kind, "garbage") for kind in kinds), "garbage to be collected")


def invalidate_a_token(place: Place) -> None:
    place.create(obj("ServiceAccount", "static", automountServiceAccountToken=False))
    of_account = {"kubernetes.io/service-account.name": "static"}
    place.create(secret("static", annotations=of_account, type="kubernetes.io/service-account-token"))
    until(lambda: decoded(place.get("Secret", "static")).get("token") == "\0\0\0", "the token to be invalid")


def mount_a_token(place: Place) -> None:
    """A pod of a ServiceAccount that nothing is mounted for by the API server itself."""
    place.create(obj("ServiceAccount", "mounted", automountServiceAccountToken=False))
    marks = {f"{DOMAIN}/managed-by": "gardener", "pod-template-hash": "x"}
    constraints = [spread("zone", "x")]
    mounted = pod("mounted", labels=marks, serviceAccountName="mounted", topologySpreadConstraints=constraints)
    made = place.create(mounted)
    assert "kube-api-access-gardener" in [volume["name"] for volume in made["spec"]["volumes"]]
    (constraint,) = made["spec"]["topologySpreadConstraints"]
    assert constraint["labelSelector"]["matchLabels"]["pod-template-hash"] == "x"


def write_network_policies(place: Place) -> None:
    name, kind = "ingress-to-db-tcp-3306", "NetworkPolicy"

    def names() -> set[str]:
        return {metadata(policy)["name"] for policy in place.list(kind) if "db" in metadata(policy)["name"]}

    def selected() -> Any:
        return place.get(kind, name)["spec"]["podSelector"]

    place.create(obj(kind, name, spec={"podSelector": {}}))
    place.create(service("db", selector={"app": "db"}, ports=[{"port": 80, "targetPort": 3306}]))
    until(lambda: names() == {"ingress-to-db-tcp-3306", "egress-to-db-tcp-3306"}, "policies")
    until(selected, "the policy to be taken over")
    place.patch(kind, name, {"spec": {"podSelector": {"matchLabels": {"app": "other"}}}})
    until(lambda: selected()["matchLabels"] == {"app": "db"}, "mending")
    place.delete("Service", "db")
    until(lambda: not names(), "policies to be gone")


def calls_of(audit: Audit, user: str) -> list[Call]:
    return [call for call in audit.calls(leases=True, watches=True) if call.user == f"system:serviceaccount:{user}"]


def approvals(cluster: Cluster, calls: list[Call]) -> Iterator[Call]:
    """Who approves needs a right for the signer as well; the API server requests it by itself, and logs no call."""
    for call in calls:
        if (call.resource, call.verb, call.status) == ("certificatesigningrequests/approval", "update", 200):
            request = Place(cluster, "").get(CERTIFICATE_SIGNING_REQUESTS, call.name)
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


def test_an_instance_for_its_own_cluster_works_with_the_rights_that_it_is_given(
    source: Cluster, tmp_path: Path
) -> None:
    garden, work = Place(source, GARDEN), Place(source, WORK)
    work.patch("Namespace", WORK, {"metadata": {"labels": {f"{HA}/consider": "true"}}})
    outdated_workloads(work)
    with contextlib.closing(source.audit()) as audit:
        kubectl(source.kubeconfig, "apply", "--server-side", "-f", str(MANIFESTS / "crds"))
        assert "Warning" not in apply(source, "runtime")
        for name in (AGENT, f"{AGENT}-agent"):
            until(partial(is_available, garden, name), f"{name} to be available")
        server = DeployedPod(source, pod_of(garden, AGENT), tmp_path / "webhooks", change=often)
        agent = DeployedPod(source, pod_of(garden, f"{AGENT}-agent"), tmp_path / "agent", change=often)
        with server.start("certificates") as certificates:
            certificates.wait_for_log("Issued a certificate for the server", seconds=PATIENCE)
            certificates.wait_for(
                lambda: reported_bundle(source, AGENT), what="the CA in configurations", seconds=PATIENCE
            )
            # Applying again takes nothing away from what was put in.
            apply(source, "runtime")
            narrow(source, "gardener-resource-manager-seed")
            assert reported_bundle(source, AGENT)
            break_the_certificate(garden)
            with server.start(AGENT) as webhooks:
                serve_at(garden, server.webhook_port, name=AGENT)
                with agent.start("agent") as process:
                    webhooks.wait_until_ready(seconds=PATIENCE)
                    process.wait_until_ready(seconds=PATIENCE).wait_until_leading(seconds=PATIENCE)
                    apply_and_remove_a_managed_resource(work, work, **{"class": "seed"})
                    share_a_secret(work, audit, WORK, f"{GARDEN}:{AGENT}", **{"class": "seed"})
                    write_network_policies(work)
                    collect_garbage(work)
                    invalidate_a_token(work)
                    mount_a_token(work)
                    wait_with_another_replica(garden, tmp_path / "another", audit)
                    refuse_deletions(work)
                    assert_all_rights_are_needed(source, audit, f"{GARDEN}:{AGENT}")
                    assert_all_rights_are_needed(source, audit, f"{GARDEN}:{WEBHOOKS}")


def refuse_deletions(place: Place) -> None:
    definitions = CUSTOM_RESOURCE_DEFINITIONS.path()
    protected = "?labelSelector=gardener.cloud%2Fdeletion-protected%3Dtrue"
    for path, message in (
        (f"{definitions}/managedresources.{DOMAIN}", "confirmation.gardener.cloud/deletion"),
        (definitions + protected, "confirmation.gardener.cloud/deletion"),
        (place.path(INFRASTRUCTURES), "confirmation"),
        (place.path(ETCDS), "confirmation"),
    ):
        with pytest.raises(ApiError, match=message):
            place.api.delete(path)
    with pytest.raises(ApiError, match="spec.type"):
        place.create(obj(BASTIONS, "b", spec={}), BASTIONS)


# --- an instance for another cluster


def test_an_instance_for_another_cluster_works_with_the_rights_that_it_is_given(
    source: Cluster, target: Cluster, tmp_path: Path
) -> None:
    shoot, system = Place(source, SHOOT), Place(target, "kube-system")
    with contextlib.closing(source.audit()) as audit, contextlib.closing(target.audit()) as target_audit:
        system.patch("Namespace", "kube-system", {"metadata": {"labels": {f"{HA}/consider": "true"}}})
        outdated_workloads(system)
        assert "Warning" not in apply(target, "target-cluster")
        narrow(target, "gardener-resource-manager-managed-kinds")
        assert "Warning" not in apply(source, "target")
        give_access(shoot, system)
        agent = DeployedPod(source, pod_of(shoot, f"{AGENT}-agent"), tmp_path / "agent", change=often)
        with agent.start("agent") as process:
            process.wait_until_ready(seconds=PATIENCE).wait_until_leading(seconds=PATIENCE)
            until(lambda: token_in(shoot, f"shoot-access-{WEBHOOKS}"), "a token for the webhooks")
            server = DeployedPod(source, pod_of(shoot, AGENT), tmp_path / "webhooks", change=often)
            with server.start("certificates", "--dns-name=127.0.0.1") as certificates:
                certificates.wait_for(
                    lambda: reported_bundle(target, f"{AGENT}-shoot"), what="the CA in configurations", seconds=PATIENCE
                )
                break_the_certificate(shoot)
                with server.start(AGENT) as webhooks:
                    reach_by_address(system, server.webhook_port)
                    webhooks.wait_until_ready(seconds=PATIENCE)
                    apply_and_remove_a_managed_resource(shoot, system)
                    share_a_secret(shoot, audit, "kube-system", f"{SHOOT}:{AGENT}")
                    collect_garbage(system)
                    invalidate_a_token(system)
                    mount_a_token(system)
                    wait_with_another_replica(shoot, tmp_path / "another", audit)
                    approve_certificates(shoot, system)
                    free_a_node(system)
                    request_a_token(shoot, system)
                    renew(shoot, f"shoot-access-{AGENT}")
                    assert_all_rights_are_needed(source, audit, f"{SHOOT}:{AGENT}")
                    assert_all_rights_are_needed(source, audit, f"{SHOOT}:{WEBHOOKS}")
                    assert_all_rights_are_needed(target, target_audit, f"kube-system:{AGENT}")
                    assert_all_rights_are_needed(target, target_audit, f"kube-system:{WEBHOOKS}")


def request_a_token(shoot: Place, system: Place) -> None:
    """For a ServiceAccount that does not exist yet, to a Secret of the target cluster; then with labels."""
    wanted = {
        keys.SERVICE_ACCOUNT_NAME: "robot",
        keys.SERVICE_ACCOUNT_NAMESPACE: "kube-system",
        keys.TARGET_SECRET_NAME: "robot",
        keys.TARGET_SECRET_NAMESPACE: "kube-system",
    }
    marks = {keys.PURPOSE: keys.PURPOSE_TOKEN_REQUESTOR, keys.CLASS: "shoot"}
    shoot.create(secret("robot", labels=marks, annotations=wanted))

    def renewal() -> str:
        return annotations(shoot.get("Secret", "robot")).get(keys.TOKEN_RENEW_TIMESTAMP, "")

    first = until(lambda: token_in(system, "robot"), "a token in the target cluster")
    until(renewal, "the time of its renewal")  # written later; what is written before it would be lost
    changes = {keys.TOKEN_RENEW_TIMESTAMP: "2020-01-01T00:00:00Z", keys.SERVICE_ACCOUNT_LABELS: '{"a": "b"}'}
    shoot.patch("Secret", "robot", {"metadata": {"annotations": changes}})
    until(lambda: token_in(system, "robot") != first, "a new token in the target cluster")


def give_access(shoot: Place, system: Place) -> None:
    """What an operator does once: the kubeconfig without credentials, and the agent's first token."""
    request = system.path("ServiceAccount", AGENT, subresource="token")
    token = system.api.create(request, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    file = Path("/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/token")
    generic = with_token_file(system.cluster.url, ca=system.cluster.ca.encode(), file=file)
    shoot.create(secret("generic-token-kubeconfig", {"kubeconfig": yaml.safe_dump(generic)}))
    shoot.patch("Secret", f"shoot-access-{AGENT}", {"stringData": {"token": token}})


def token_in(place: Place, name: str) -> str:
    return decoded(place.get("Secret", name)).get("token", "")


def reach_by_address(system: Place, port: int) -> None:
    webhooks = system.get(MUTATING_WEBHOOKS, f"{AGENT}-shoot")["webhooks"]
    for webhook in webhooks:
        url = webhook["clientConfig"]["url"]
        webhook["clientConfig"]["url"] = f"https://127.0.0.1:{port}/{url.split('/', 3)[3]}"
    system.patch(MUTATING_WEBHOOKS, f"{AGENT}-shoot", {"webhooks": webhooks})


def approve_certificates(shoot: Place, system: Place) -> None:
    """A kubelet's for its Node, and a node agent's for a Machine that has not become a Node yet."""
    name = "machine-node"
    system.create(obj("Node", name))
    addresses = [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": "10.1.2.3"}]
    system.patch("Node", name, {"status": {"addresses": addresses}}, subresource="status")
    for machine, node in (("m", {"node": name}), ("new", {})):
        shoot.create(obj(MACHINES, machine, labels=node))
    user = f"system:node:{name}"
    approve(system, user, csr_object(signing_request(user, dns=[name], ips=["10.1.2.3"]), name="serving"))
    agent = signing_request("gardener.cloud:node-agent:machine:new", organizations=["gardener.cloud:node-agents"])
    approve(system, "system:bootstrap:abcdef", csr_object(agent, name="client", signer=CLIENT))


def approve(system: Place, user: str, request: Object) -> None:
    requester = system.cluster.kubeconfig_for(user, ["system:nodes", "system:masters"])
    kubectl(requester, "create", "-f", "-", stdin=yaml.safe_dump(request))

    def approval() -> Object:
        return condition(system.get(CERTIFICATE_SIGNING_REQUESTS, metadata(request)["name"]), "Approved") or {}

    until(lambda: approval().get("status") == "True", "an approval")


def free_a_node(system: Place) -> None:
    taint = {"key": "node.gardener.cloud/critical-components-not-ready", "effect": "NoSchedule"}
    system.create(obj("Node", "tainted", spec={"taints": [taint]}))

    def is_free() -> bool:
        live = system.get("Node", "tainted")
        taints = {each["key"] for each in live["spec"].get("taints") or ()}
        return taint["key"] not in taints and any("reconciliation-delay" in name for name in annotations(live))

    until(is_free, "the taint to go and a delay to come")


def renew(shoot: Place, name: str) -> None:
    before = token_in(shoot, name)
    shoot.patch("Secret", name, {"metadata": {"annotations": {keys.TOKEN_RENEW_TIMESTAMP: "2020-01-01T00:00:00Z"}}})
    until(lambda: token_in(shoot, name) != before, "a new token")
    assert labels(shoot.get("Secret", name))[keys.PURPOSE] == keys.PURPOSE_TOKEN_REQUESTOR
