from typing import Any

import pytest

from config.resource_manager.webhooks import Webhook
from kit import objects
from kit.webhooks.mutating import (
    answered,
    mapping,
    mutated,
    one_of,
    pods,
    record,
    refusal,
    request,
    several,
    state_of,
    well_behaved,
    words,
)
from kube.errors import NotFound
from kube.names import label_name_problems
from webhooks.admission import Denied
from webhooks.generic import defaulter
from webhooks.handlers import pod_kube_apiserver_load_balancing
from webhooks.handlers.pod_kube_apiserver_load_balancing import allowance

ALLOWED = {"networking.resources.gardener.cloud/to-istio-istio-ingressgateway-internal-tcp-9443": "allowed"}
ALIASES = [{"ip": ip, "hostnames": ["api.a", " api.b"]} for ip in ("10.0.0.1", "fd00::1")]
BY_SECRET = {"name": "v", "secret": {"secretName": "generic-token-kubeconfig-1234"}}
PROJECTED = {"projected": {"sources": [{"configMap": {}}, {"secret": {"name": "generic-token-kubeconfig"}}]}}


def config_map(namespace: str, data: Any, name: str = "istio-internal-load-balancing") -> Any:
    return objects.config_map(f"{namespace}/{name}", data=data)


def service(namespace: str, *ips: str, name: str = "istio-ingressgateway-internal") -> Any:
    return objects.obj("v1 Service", f"{namespace}/{name}", spec={"clusterIPs": list(ips)})


OBJECTS = (
    config_map("ns", {"hosts": "api.a, api.b", "istio-namespace": "istio"}),
    config_map("other-name", {"hosts": "api.a", "istio-namespace": "istio"}, name="other"),
    config_map("no-hosts", {"istio-namespace": "istio"}),
    config_map("empty-hosts", {"hosts": "", "istio-namespace": "istio"}),
    config_map("no-data", None),
    config_map("many-hosts", {"hosts": ",".join(["h"] * 101), "istio-namespace": "istio"}),
    config_map("no-gateway", {"hosts": "api.a", "istio-namespace": "missing"}),
    config_map("no-istio", {"hosts": "api.a"}),
    service("istio", "10.0.0.1", "fd00::1"),
    service("missing", "10.0.0.2", name="other"),
)
mutation = pod_kube_apiserver_load_balancing.mutation(Webhook(enabled=True), state_of(*OBJECTS))


def pod(*volumes: Any, **spec: Any) -> Any:
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"volumes": list(volumes), **spec}}


@pytest.mark.parametrize("volume", [BY_SECRET, PROJECTED])
def test_pods_with_a_generic_kubeconfig_are_routed_to_the_gateway(volume: Any) -> None:
    changed = mutated(mutation, pod({"emptyDir": {}}, volume))
    assert changed["spec"] == {"volumes": [{"emptyDir": {}}, volume], "hostAliases": ALIASES}
    assert changed["metadata"] == {"labels": {"a": "b", **ALLOWED}}


def test_aliases_that_are_there_are_not_added_again() -> None:
    own = {"ip": "1.1.1.1", "hostnames": ["x"]}
    changed = mutated(mutation, pod(BY_SECRET, hostAliases=[ALIASES[1], own]))
    assert changed["spec"]["hostAliases"] == [ALIASES[1], own, ALIASES[0]]


@pytest.mark.parametrize(
    ("unchanged", "namespace"),
    [
        pytest.param(pod(), "ns", id="no volume"),
        pytest.param(pod({"secret": {"secretName": "other"}}), "ns", id="another Secret"),
        pytest.param(pod({"configMap": {"name": "generic-token-kubeconfig"}}), "ns", id="no Secret"),
        pytest.param({}, "ns", id="no spec"),
        pytest.param(pod({"secret": {"secretName": "other"}}), "no-hosts", id="nothing is read then"),
        pytest.param(pod(BY_SECRET), "elsewhere", id="no ConfigMap"),
        pytest.param(pod(BY_SECRET), "other-name", id="another ConfigMap"),
    ],
)
def test_pods_are_left_alone_if(unchanged: Any, namespace: str) -> None:
    assert mutated(mutation, unchanged, namespace=namespace) == unchanged


@pytest.mark.parametrize("namespace", ["no-hosts", "empty-hosts", "no-data"])
def test_a_config_map_without_hosts_is_refused(namespace: str) -> None:
    message = f'"hosts" key in configmap "{namespace}/istio-internal-load-balancing" provides an empty value'
    assert refusal(mutation, pod(BY_SECRET), namespace=namespace) == Denied(message)


def test_a_config_map_with_too_many_hosts_is_refused() -> None:
    message = '"hosts" key in configmap "many-hosts/istio-internal-load-balancing" has more than 100 hosts'
    assert refusal(mutation, pod(BY_SECRET), namespace="many-hosts") == Denied(message)


@pytest.mark.parametrize("namespace", ["no-gateway", "no-istio"])
def test_a_missing_gateway_is_an_error(namespace: str) -> None:
    with pytest.raises(NotFound, match='^services "istio-ingressgateway-internal" not found$') as raised:
        mutated(mutation, pod(BY_SECRET), namespace=namespace)
    assert (raised.value.status, raised.value.reason) == (404, "NotFound")


def test_namespaces_that_are_not_watched_are_named() -> None:
    only_ns = pod_kube_apiserver_load_balancing.mutation(Webhook(enabled=True), state_of(*OBJECTS, namespaces=["ns"]))
    assert answered(defaulter(only_ns), request(pod(BY_SECRET), namespace="x")) == Denied(
        'namespace "x" is not watched; add it to targetClientConnection.namespaces, or exclude it in the webhook '
        "configuration"
    )


@pytest.mark.parametrize(
    ("namespace", "name"),
    [
        ("istio-ingress", "to-istio-ingress-istio-ingressgateway-internal-tcp-9443"),
        ("i" * 21, f"to-{'i' * 21}-istio-ingressgateway-internal-tcp-9443"),
        ("i" * 22, f"to-{'i' * 22}-istio-ingressgateway-internal-t-9c278"),
    ],
)
def test_the_label_has_a_name_that_is_allowed(namespace: str, name: str) -> None:
    label = allowance(namespace)
    assert label == f"networking.resources.gardener.cloud/{name}"
    assert not label_name_problems(label)


secrets = one_of("generic-token-kubeconfig", "generic-token-kubeconfig-x", "other")
sources = several(record(secret=record(name=secrets)))
some_pods = pods(
    record(labels=mapping(*ALLOWED)),
    volumes=several(record(secret=record(secretName=secrets), projected=record(sources=sources))),
    hostAliases=several(record(ip=one_of("10.0.0.1", "1.1.1.1"), hostnames=several(words))),
)

test_it_behaves_well = well_behaved(
    mutation, some_pods, touches=["spec.hostAliases", *(f"metadata.labels.{label}" for label in ALLOWED)]
)
