"""What the API server does not let be updated is deleted and recreated; but only if it can be recreated."""

from pathlib import Path
from typing import Any

from devcluster.cluster import Cluster
from devcluster.testing.faults import Fault, Request, Rules
from gardener import keys
from kit.managed_resources import USER_AGENT, ManagedWorld, control_loop, install_crd
from kit.managed_resources import config_map as plain
from kit.objects import config_map, deployment, service
from kit.proxied import proxied
from kit.rig import Rig
from kube.errors import ApiError
from kube.objects import Key, Object, uid
from kube.resources import CONFIG_MAPS
from kube.runtime.client import Client
from kube.runtime.connection import load_kubeconfig
from kube.runtime.transport import Transport

_REPLACE = {keys.DELETE_ON_INVALID_UPDATE: "true"}


def test_a_typo_deletes_nothing_and_its_correction_replaces(rig: Rig) -> None:
    def selecting(app: str, *, template: str) -> Object:
        selector = {"matchLabels": {"app": app}}
        return deployment("d", annotations=_REPLACE, pod_labels={"app": template}, selector=selector)

    rig.apply("mr", selecting("old", template="old"), config_map("c", {"k": "old"}, immutable=True))
    before = {kind: rig.uid(kind, name) for kind, name in (("Deployment", "d"), ("ConfigMap", "c"))}

    typo = config_map("c", {"k k": "new"}, immutable=True)
    rig.write_secret("mr", selecting("new", template="nwe"), typo)
    message = rig.until_failed("mr", "it was not deleted", "selector", "k k")
    assert message.count("it was not deleted, since the API server would reject its recreation") == 2
    assert {kind: rig.uid(kind, name) for kind, name in (("Deployment", "d"), ("ConfigMap", "c"))} == before

    rig.write_secret("mr", selecting("new", template="new"), config_map("c", {"k": "new"}, immutable=True))
    rig.until_applied("mr")
    assert rig.uid("Deployment", "d") != before["Deployment"]
    assert rig.get("ConfigMap", "c")["data"] == {"k": "new"}


def test_a_service_is_replaced_although_its_address_and_ports_are_in_use(rig: Rig) -> None:
    def balanced(by: str, **given: Any) -> Object:
        return service("s", annotations=_REPLACE, type="LoadBalancer", loadBalancerClass=f"example.com/{by}", **given)

    rig.apply("mr", balanced("a"))
    live = rig.get("Service", "s")
    spec = live["spec"]
    ports = [{"port": 80, "nodePort": spec["ports"][0]["nodePort"]}]
    rig.write_secret("mr", balanced("b", clusterIP=spec["clusterIP"], clusterIPs=spec["clusterIPs"], ports=ports))
    new = rig.until(lambda: (found := rig.find("Service", "s")) and uid(found) != uid(live) and found, "a new Service")
    assert isinstance(new, dict)
    assert new["spec"]["clusterIP"] == spec["clusterIP"]
    rig.until_applied("mr")


def test_a_refusal_by_a_policy_replaces_only_if_the_answer_is_invalid(rig: Rig) -> None:
    """As the API server itself answers; a policy answers so by default, and Forbidden if it reports so."""
    path = "/apis/admissionregistration.k8s.io/v1"
    changed = {"expression": "object.data == oldObject.data", "message": "data: field is immutable"}
    configmaps = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["configmaps"]}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": rig.namespace}}
    policy = {
        "metadata": {"name": rig.namespace},
        "spec": {
            "matchConstraints": {"resourceRules": [configmaps], "namespaceSelector": selector},
            "validations": [{**changed, "reason": "Forbidden"}],
        },
    }
    binding = {"policyName": rig.namespace, "validationActions": ["Deny"]}
    rig.apply("mr", config_map("c", {"k": "old"}, annotations=_REPLACE))
    before = rig.uid("ConfigMap", "c")
    rig.api.create(f"{path}/validatingadmissionpolicies", policy)
    rig.api.create(f"{path}/validatingadmissionpolicybindings", {"metadata": {"name": rig.namespace}, "spec": binding})
    live = f"/api/v1/namespaces/{rig.namespace}/configmaps/c"
    try:
        rig.until(lambda: _refusal(rig, live), "the policy to count")
        rig.write_secret("mr", config_map("c", {"k": "new"}, annotations=_REPLACE))
        rig.until_failed("mr", "field is immutable", "needs the answer Invalid")
        assert rig.uid("ConfigMap", "c") == before
        rig.api.patch(f"{path}/validatingadmissionpolicies/{rig.namespace}", {"spec": {"validations": [changed]}})
        rig.until(lambda: "Forbidden" not in _refusal(rig, live), "the policy to answer Invalid")
        rig.write_secret("mr", config_map("c", {"k": "newer"}, annotations=_REPLACE))
        rig.until_applied("mr")
        assert rig.uid("ConfigMap", "c") != before
    finally:
        rig.api.delete(f"{path}/validatingadmissionpolicybindings/{rig.namespace}")
        rig.api.delete(f"{path}/validatingadmissionpolicies/{rig.namespace}")


def _refusal(rig: Rig, path: str) -> str:
    try:
        rig.api.patch(f"{path}?dryRun=All", {"data": {"k": "other"}})
    except ApiError as error:
        return error.reason
    return ""


class _Meddling(Rules):
    """A user recreates an object just before it would be deleted."""

    def __init__(self, cluster: Cluster, obj: Object) -> None:
        super().__init__()
        self._cluster = cluster
        self._obj = obj
        self.made = ""
        """Its new uid."""

    def choose(self, request: Request) -> Fault | None:
        if request.method == "DELETE" and not self.made:
            self._cluster.api.delete(request.path)
            self.made = uid(self._cluster.api.create(request.path.rpartition("/")[0], self._obj))
        return None


async def test_what_was_recreated_meanwhile_is_not_deleted(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    install_crd(cluster)
    old, new = ({**plain("x", version), "immutable": True} for version in "12")
    async with (
        Transport(load_kubeconfig(cluster.kubeconfig)) as direct,
        proxied(cluster, tmp_path) as (proxy, transport),
    ):
        world = ManagedWorld(Client(direct, user_agent="test"), namespace)
        async with control_loop(Client(transport, user_agent=USER_AGENT), namespace):
            await world.want({"a": [old]})
            await world.settle()
            meddling = proxy.rules = _Meddling(cluster, {**new, "metadata": {"name": "x"}})
            await world.want({"a": [new]})
            await world.settle()
        assert uid(await world.client.get(CONFIG_MAPS, Key(namespace, "x"))) == meddling.made
