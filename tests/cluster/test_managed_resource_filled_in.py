"""What controllers of Kubernetes fill in stays, and there are no endless writes: neither they nor the agent.

One object of every kind, and one for every field that some controller fills in, in a cluster of their own with all of
them. From then on the agent has nothing to write; that is looked at for some seconds, or for FILLED_IN_SECONDS.
"""

import base64
import collections
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from devcluster.cluster import Cluster
from kit.bundles import filled_in
from kit.bundles.bundle import generate
from kit.managed_resources import install_crd
from kit.processes.agent import AgentProcess
from kit.rig import Agent, Rig
from kube.objects import Object, annotations, labels

SECONDS = float(os.environ.get("FILLED_IN_SECONDS", "3"))
pytestmark = [pytest.mark.usefixtures("devcluster_run"), pytest.mark.timeout(400 + SECONDS)]

OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
"""Of those that are not in the manifest, the one that the node controller does not take away in its next round."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A namespace with a ManagedResource that holds all of it."""

    rig: Rig
    namespace: str

    @property
    def aggregated(self) -> str:
        return f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{self.namespace}-aggregated"

    @property
    def node(self) -> str:
        return f"/api/v1/nodes/{self.namespace}-node"

    @property
    def lease(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/election"

    def missing(self) -> list[str]:
        """What is not filled in."""
        core = f"/api/v1/namespaces/{self.namespace}"
        expected: dict[str, Callable[[Object], object]] = {
            self.aggregated: lambda role: role["rules"],
            f"{self.aggregated}-open": lambda role: role["rules"],
            f"{core}/secrets/robot-token": lambda secret: secret["data"].keys() >= {"token", "ca.crt", "namespace"},
            f"/api/v1/persistentvolumes/{self.namespace}-volume": lambda volume: volume["spec"]["claimRef"],
            f"{core}/persistentvolumeclaims/claim": lambda claim: annotations(claim)["pv.kubernetes.io/bind-completed"],
            f"{core}/persistentvolumeclaims/data-web-0": lambda claim: claim["metadata"]["ownerReferences"],
            f"{core}/pods/adopted": lambda pod: pod["metadata"]["ownerReferences"],
            f"{core}/endpoints/scaled": lambda endpoints: endpoints["subsets"],
            self.node: lambda node: OUT_OF_SERVICE["key"] in {taint["key"] for taint in node["spec"]["taints"]},
            self.lease: lambda lease: lease["spec"]["holderIdentity"],
        }
        return [path for path, is_filled_in in expected.items() if not self._holds(path, is_filled_in)]

    def _holds(self, path: str, is_filled_in: Callable[[Object], object]) -> object:
        try:
            return is_filled_in(self.rig.cluster.api.get(path))
        except KeyError:
            return False


@pytest.fixture(scope="module")
def all_of_it() -> Iterator[tuple[Cluster, Agent, AgentProcess]]:
    with Cluster(nodes=1) as own:
        install_crd(own)
        agent = Agent(own, resource_class="filled")
        with agent.start() as process:
            yield own, agent, process


@pytest.fixture(params=["merged", "forced"])
def stage(request: pytest.FixtureRequest, all_of_it: tuple[Cluster, Agent, AgentProcess]) -> Stage:
    own, agent, process = all_of_it
    own.api.create("/api/v1/namespaces", {"metadata": {"name": request.param}})
    return Stage(Rig(own, request.param, agent, process), request.param)


def test_there_are_no_endless_writes(stage: Stage) -> None:
    rig, api = stage.rig, stage.rig.cluster.api
    with contextlib.closing(rig.cluster.audit()) as audit:
        forced = stage.namespace == "forced"
        force = {"forceOverwriteLabels": forced, "forceOverwriteAnnotations": forced}
        rig.write("every-kind", *generate(prefix=f"every-{stage.namespace}", seed=1, count=0).objects, **force)
        rig.write("filled-in", *filled_in.objects(stage.namespace), **force)
        rig.until_applied("every-kind")
        rig.until_applied("filled-in")
        # What an administrator does whose machine is gone, and what a user does who leads.
        api.patch(stage.node, {"spec": {"taints": [OUT_OF_SERVICE]}})
        api.patch(stage.lease, {"spec": {"holderIdentity": "somebody"}})
        rig.until(lambda: not stage.missing(), "everything to be filled in")
        time.sleep(SECONDS)
        calls = audit.calls(verbs=("update", "patch", "delete"), leases=True)
    reported = ("events", "managedresources", "managedresources/status")
    carried_out = [call for call in calls if call.user == rig.agent.user and call.status < 400]
    again = collections.Counter(
        f"{call.verb} {call.uri.partition('?')[0]}" for call in carried_out if call.resource not in reported
    )
    # Kubernetes may have made it before the agent did.
    again.subtract([f"update /api/v1/namespaces/{stage.namespace}/endpoints/scaled"])
    assert not +again, "\n".join(f"{count} {call}" for call, count in again.items())
    assert not stage.missing()

    # All else is corrected as ever.
    before = api.get(stage.aggregated)
    api.patch(stage.aggregated, {"aggregationRule": None, "rules": None})
    api.patch(stage.node, {"spec": {"unschedulable": True}})

    def is_right() -> bool:
        role, node = api.get(stage.aggregated), api.get(stage.node)
        return (
            role.get("aggregationRule") == before["aggregationRule"]
            and role["rules"] == before["rules"]
            and "unschedulable" not in node["spec"]
        )

    rig.until(is_right, "what was changed by hand to be right again")


def test_what_an_application_fills_in_is_left_to_it(all_of_it: tuple[Cluster, Agent, AgentProcess]) -> None:
    """The manifest states nothing of it: content, rules, subjects, webhooks, conversion, owners."""
    own, agent, process = all_of_it
    own.api.create("/api/v1/namespaces", {"metadata": {"name": "app"}})
    rig, rbac = Rig(own, "app", agent, process), "rbac.authorization.k8s.io/v1"
    core, admission = "/api/v1/namespaces/app", "/apis/admissionregistration.k8s.io/v1"
    hook = {
        "name": "defaulting.shop.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "clientConfig": {"service": {"name": "hook", "namespace": "app"}},
    }

    def manifest(kind: str, name: str, **fields: object) -> Object:
        api_version, _, kind = kind.rpartition(" ")
        return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}

    bare = (
        manifest("v1 Secret", "secret", type="Opaque"),
        manifest("v1 ConfigMap", "state"),
        manifest(f"{rbac} Role", "role"),
        manifest(f"{rbac} RoleBinding", "binding", roleRef={"kind": "Role", "name": "role", "apiGroup": rbac[:-3]}),
        manifest("admissionregistration.k8s.io/v1 MutatingWebhookConfiguration", "shop", webhooks=[hook]),
        manifest("admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration", "empty"),
    )
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "00000000-0000-0000-0000-000000000001"}
    hook_rules = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]
    written: dict[str, Object] = {
        f"{core}/secrets/secret": {"data": {"key": "dg=="}},
        f"{core}/configmaps/state": {"data": {"key": "v"}, "binaryData": {"more": "dg=="}},
        f"/apis/{rbac}/namespaces/app/roles/role": {"rules": rules},
        f"/apis/{rbac}/namespaces/app/rolebindings/binding": {
            "subjects": [{"kind": "User", "name": "u", "apiGroup": rbac[:-3]}]
        },
        f"{admission}/mutatingwebhookconfigurations/shop": {
            "metadata": {"ownerReferences": [owner]},
            "webhooks": [{**hook, "rules": hook_rules}],
        },
        f"{admission}/validatingwebhookconfigurations/empty": {"webhooks": [{**hook, "rules": hook_rules}]},
    }
    rig.apply("mr", *bare)
    for path, content in written.items():
        own.api.patch(path, content)

    # A change of the manifests is written, and what the application filled in stays.
    rig.write_secret("mr", *[{**each, "metadata": {**each["metadata"], "labels": {"a": "b"}}} for each in bare])
    rig.until(lambda: all(labels(own.api.get(path)).get("a") == "b" for path in written), "the label on each")
    for path, content in written.items():
        live = own.api.get(path)
        assert live["metadata"].get("ownerReferences") == content.get("metadata", {}).get("ownerReferences"), path
        for name in content.keys() - {"metadata", "webhooks"}:
            assert live[name] == content[name], path
        assert all(each["rules"][0].items() >= hook_rules[0].items() for each in live.get("webhooks", [])), path

    # What the manifest has is the agent's, and goes when the manifest has it no longer.
    rig.write_secret("mr", *bare[:1], {**bare[1], "data": {"mine": "v"}}, *bare[2:])
    rig.until(lambda: own.api.get(f"{core}/configmaps/state").get("data") == {"mine": "v"}, "the manifest's data")
    rig.write_secret("mr", *bare)
    rig.until(lambda: "data" not in own.api.get(f"{core}/configmaps/state"), "the manifest's data to go")


def test_placeholders_give_way_to_what_an_injector_writes(all_of_it: tuple[Cluster, Agent, AgentProcess]) -> None:
    """As controller-gen writes them: a status, a creation time of null, bundles of a newline."""
    own, agent, process = all_of_it
    own.api.create("/api/v1/namespaces", {"metadata": {"name": "injected"}})
    rig = Rig(own, "injected", agent, process)
    meta = {"creationTimestamp": None, "annotations": {"cert-manager.io/inject-ca-from": "injected/serving"}}
    client = {"caBundle": "Cg==", "service": {"name": "hook", "namespace": "injected", "path": "/"}}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition: Object = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.injected.example.com", **meta},
        "spec": {
            "group": "injected.example.com",
            "names": {"kind": "Gadget", "listKind": "GadgetList", "plural": "gadgets", "singular": "gadget"},
            "scope": "Namespaced",
            "preserveUnknownFields": False,
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client},
            },
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
        "status": {"acceptedNames": {"kind": "", "plural": ""}, "conditions": [], "storedVersions": []},
    }
    rule = {"apiGroups": ["injected.example.com"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["gadgets"]}
    configuration: Object = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "injected", **meta},
        "webhooks": [
            {
                "name": "gadgets.injected.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Ignore",
                "clientConfig": client,
                "rules": [rule],
            }
        ],
    }
    rig.apply("mr", definition, configuration)
    bundle = base64.b64encode(own.ca.encode()).decode()
    injected: dict[str, Object] = {
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.injected.example.com": {
            "spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}
        },
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/injected": {
            "webhooks": [{**configuration["webhooks"][0], "clientConfig": {**client, "caBundle": bundle}}]
        },
    }
    with contextlib.closing(own.audit()) as audit:
        for path, content in injected.items():
            own.api.patch(path, content)
        rig.write_secret(
            "mr",
            *[{**each, "metadata": {**each["metadata"], "labels": {"a": "b"}}} for each in (definition, configuration)],
        )
        rig.until(lambda: all(labels(own.api.get(path)).get("a") == "b" for path in injected), "the label on both")
        rig.until_applied("mr")
        time.sleep(SECONDS)
        calls = [call for call in audit.calls(verbs=("update", "patch")) if call.user == rig.agent.user]
    for path in injected:
        assert bundle in str(own.api.get(path)), path
        assert [call.status for call in calls if call.uri.partition("?")[0] == path] == [200]
    assert rig.applied("mr")[2] == "All resources are applied."
    conditions = own.api.get(next(iter(injected)))["status"]["conditions"]
    assert {each["type"]: each["status"] for each in conditions}["Established"] == "True"


def test_node_ports_stay_with_the_ports_they_were_given_to(all_of_it: tuple[Cluster, Agent, AgentProcess]) -> None:
    own, agent, process = all_of_it
    own.api.create("/api/v1/namespaces", {"metadata": {"name": "ports"}})
    rig = Rig(own, "ports", agent, process)

    def applied(*ports: Object) -> dict[tuple[str, int], int]:
        spec = {"type": "NodePort", "selector": {"app": "front"}, "ports": list(ports)}
        rig.apply("mr", {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"}, "spec": spec})

        def live() -> list[Object]:
            listed: list[Object] = rig.get("Service", "front")["spec"]["ports"]
            return listed if [(port["name"], port["port"]) for port in listed] == names else []

        names = [(port["name"], port["port"]) for port in ports]
        found = rig.until(live, "the ports")
        return {(port["protocol"], port["port"]): port["nodePort"] for port in found}

    first = applied({"name": "http", "port": 80})
    moved = applied({"name": "http", "port": 8080}, {"name": "legacy", "port": 80})
    assert moved["TCP", 80] == first["TCP", 80] != moved["TCP", 8080]
    assert applied({"name": "legacy", "port": 8080}, {"name": "http", "port": 80}) == moved
    dns = applied({"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"})
    assert applied({"name": "a", "port": 53, "protocol": "TCP"}, {"name": "b", "port": 53, "protocol": "UDP"}) == dns
