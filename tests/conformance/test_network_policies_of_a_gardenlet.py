"""NetworkPolicies of a seed at a hand-over: those that the original leaves and those that the agent wants are equal.

So neither writes the other's again. Services, namespaces and Istio's objects are those that a gardenlet of v1.104.3 wrote
for a seed with one Shoot; policies follow from them as recorded scenarios show (`test_network_policy_scenarios`).
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.shared.network_policy.controller import rules_of
from agent.shared.network_policy.istio import virtual_service
from agent.shared.network_policy.rules.policies import GatewayRoute, Policy, Surroundings, is_handled
from agent.shared.network_policy.rules.projections import Existing, Namespace, Service, backends, client_labels
from config.resource_manager import decode
from kit.network_policies import desired_policies
from kube.objects import Key, Object, annotations, key, labels, matches_label_selector, spec

RECORDED = Path(__file__).parent / "gardenlet"
PREFIX = "networking.resources.gardener.cloud/"
GATEWAYS = {"app": "istio-ingressgateway", "istio": "ingressgateway"}


def recorded(file: str, kind: str) -> list[Object]:
    return [obj for obj in yaml.safe_load_all((RECORDED / file).read_text()) if obj["kind"] == kind]


(CONFIG_MAP,) = recorded("seed.yaml", "ConfigMap")
(TEXT,) = CONFIG_MAP["data"].values()
SETTINGS = yaml.safe_load(TEXT)["controllers"]["networkPolicy"]
RULES = rules_of(decode(TEXT).config.controllers.network_policy)
NAMESPACES = {obj["metadata"]["name"]: obj for obj in recorded("policies.yaml", "Namespace")}
INGRESSES = recorded("policies.yaml", "Ingress")
SERVICES = [
    service
    for service in recorded("policies.yaml", "Service")
    if is_handled(Namespace.of(NAMESPACES[service["metadata"]["namespace"]]), RULES.namespace_selectors)
]


# --- what the original writes


def as_the_original(service: Object) -> Iterator[Object]:
    """Release v1.104, which does not follow Istio's routes, and needs no pods."""
    own, name = service["metadata"]["namespace"], service["metadata"]["name"]
    reported = {mark.removeprefix(PREFIX): value for mark, value in annotations(service).items()}
    entries: list[tuple[str, Any, str, str]] = [
        (p["protocol"], p.get("targetPort", p["port"]), "", "") for p in spec(service)["ports"]
    ]
    for mark, value in reported.items():
        if mark.endswith("-allowed-ports"):
            alias = mark.removeprefix("from-").removesuffix("-allowed-ports")
            entries += [(p["protocol"], p["port"], f"-via-{alias}", alias) for p in json.loads(value)]
    selectors = json.loads(reported.get("namespace-selectors", "[]"))
    for other, namespace in NAMESPACES.items():
        if other != own and not any(matches_label_selector(each, labels(namespace)) for each in selectors):
            continue
        elsewhere = "" if other == own else f"{reported.get('pod-label-selector-namespace-alias', own)}-"
        for protocol, port, via, alias in entries:
            stem = f"{name}-{protocol.lower()}-{port}"
            label = {f"{PREFIX}to-{elsewhere}{alias or stem}": "allowed"}
            ends = ("", "") if other == own else (f"-from-{other}", f"{own}-")
            yield from pair(
                service,
                protocol,
                port,
                label,
                other,
                f"ingress-to-{stem}{via}{ends[0]}",
                f"egress-to-{ends[1]}{stem}{via}",
            )
    if "from-world-to-ports" in reported:
        ports = json.loads(reported["from-world-to-ports"])
        listed = " ".join(f"{port['protocol']}/{port['port']}" for port in ports)
        text = (
            f"Allows ingress traffic from everywhere to ports [{listed}] for pods selected by the {own}/{name} service"
        )
        yield policy(
            service, own, f"ingress-to-{name}-from-world", f"{text} selector.", spec(service)["selector"], ports
        )
    controller = SETTINGS["ingressControllerSelector"]
    for port in spec(service)["ports"]:
        if any(leads_to(ingress, service, port) for ingress in INGRESSES):
            stem, where = f"{name}-{port['protocol'].lower()}-{port['targetPort']}", controller["namespace"]
            egress = f"egress-to-{stem if where == own else f'{own}-{stem}'}-from-ingress-controller"
            clients, ingress = controller["podSelector"]["matchLabels"], f"ingress-to-{stem}-from-ingress-controller"
            yield from pair(service, port["protocol"], port["targetPort"], clients, where, ingress, egress)


def leads_to(ingress: Object, service: Object, port: Object) -> bool:
    backends = [path["backend"]["service"] for rule in spec(ingress)["rules"] for path in rule["http"]["paths"]]
    is_near = ingress["metadata"]["namespace"] == service["metadata"]["namespace"]
    found = (each["port"] for each in backends if is_near and each["name"] == service["metadata"]["name"])
    return any(port["port"] == each.get("number") or port.get("name", "-") == each.get("name") for each in found)


def pair(
    service: Object, protocol: str, port: Any, clients: Object, other: str, ingress: str, egress: str
) -> Iterator[Object]:
    own, name, selector = service["metadata"]["namespace"], service["metadata"]["name"], spec(service)["selector"]
    behind = f"pods selected by the {own}/{name} service selector"
    pods = " ".join(f"{label}:{value}" for label, value in sorted(clients.items()))
    called = f"pods running in namespace {other} labeled with {{map[{pods}] []}}"
    ports = [{"protocol": protocol, "port": port}]
    text = f"Allows ingress {protocol} traffic to port {port} for {behind} from {called}."
    yield policy(service, own, ingress, text, selector, ports, {"from": [peer(clients, other, own)]})
    text = f"Allows egress {protocol} traffic to port {port} from {called} to {behind}."
    yield policy(service, other, egress, text, clients, ports, {"to": [peer(selector, own, other)]})


def peer(pods: Object, namespace: str, seen_from: str) -> Object:
    there = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    return {"podSelector": {"matchLabels": pods}, **({} if namespace == seen_from else there)}


def policy(
    service: Object,
    namespace: str,
    name: str,
    text: str,
    pods: Object,
    ports: list[Object],
    peers: Mapping[str, Any] = {},
) -> Object:
    direction = "Egress" if "to" in peers else "Ingress"
    owner = {"service-name": service["metadata"]["name"], "service-namespace": service["metadata"]["namespace"]}
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {f"{PREFIX}{mark}": value for mark, value in owner.items()},
            "annotations": {"gardener.cloud/description": text},
        },
        "spec": {
            "podSelector": {"matchLabels": pods},
            "policyTypes": [direction],
            direction.lower(): [{**peers, "ports": ports}],
        },
    }


# --- what the agent wants


def as_the_agent(service: Object, *, gateway_labels: frozenset[str]) -> dict[Key, Policy]:
    found = Service.of(service)
    around = Surroundings(
        namespaces={name: Namespace.of(obj) for name, obj in NAMESPACES.items()},
        backends=frozenset().union(*(backends(ingress).of.get(found.key, frozenset()) for ingress in INGRESSES)),
        routes=[
            GatewayRoute(number, GATEWAYS, {"istio-ingress": gateway_labels})
            for virtual in map(virtual_service, recorded("policies.yaml", "VirtualService"))
            for number in virtual.destinations.get(found.key, ())
            if virtual.gateways
        ],
    )
    return desired_policies(found, RULES, around).policies


(GATEWAY_POD,) = recorded("policies.yaml", "Pod")
NAMES = {f"{service['metadata']['namespace']}/{service['metadata']['name']}": service for service in SERVICES}


@pytest.mark.parametrize("name", NAMES)
def test_policies_that_the_original_leaves_are_those_that_the_agent_wants(name: str) -> None:
    left = {key(obj): obj for obj in as_the_original(NAMES[name])}
    wanted = as_the_agent(NAMES[name], gateway_labels=client_labels(GATEWAY_POD))
    assert {key: (policy.description, policy.spec) for key, policy in wanted.items()} == {
        key: (annotations(obj)["gardener.cloud/description"], obj["spec"]) for key, obj in left.items()
    }
    existing = {key: Existing.of(obj) for key, obj in left.items()}
    assert {key: policy.digest() for key, policy in wanted.items()} == {k: each.digest for k, each in existing.items()}
    assert {each.owner for each in existing.values()} <= {key(NAMES[name])}


def test_routes_of_istio_count_where_the_gateways_pods_have_no_labels_for_them() -> None:
    """As newer releases of the original, which take routes instead of labels."""
    routed = ["garden/nginx-ingress-controller", "shoot--local--a/kube-apiserver"]
    extra = {}
    for name, service in NAMES.items():
        left = {key(obj) for obj in as_the_original(service)}
        if new := as_the_agent(service, gateway_labels=frozenset()).keys() - left:
            extra[name] = [str(each) for each in new]
    assert extra == {
        routed[0]: ["istio-ingress/egress-to-garden-nginx-ingress-controller-tcp-443-from-istio"],
        routed[1]: ["istio-ingress/egress-to-shoot--local--a-kube-apiserver-tcp-443-from-istio"],
    }
