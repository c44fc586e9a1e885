"""Which policies a Service gets: names, labels, peers, ports, descriptions."""

import json
from typing import Any

import pytest

from agent.shared.network_policy.rules.annotations import policy_settings
from agent.shared.network_policy.rules.policies import (
    NAMESPACE_LABEL,
    Desired,
    GatewayRoute,
    Rules,
    Surroundings,
    client_label,
    is_handled,
)
from agent.shared.network_policy.rules.projections import Backend, Namespace, Service, backends, client_labels
from gardener import keys
from kit.network_policies import desired_policies
from kube.objects import Key, Object
from kube.packing import digest

PFX = keys.NETWORKING_PREFIX
EVERYBODY = [
    {"namespaceSelector": {}, "podSelector": {}},
    {"ipBlock": {"cidr": "0.0.0.0/0"}},
    {"ipBlock": {"cidr": "::/0"}},
]


def service(
    name: str = "db",
    namespace: str = "shop",
    *,
    ports: Any = ({"port": 80, "targetPort": 8080, "protocol": "TCP"},),
    selector: Any = None,
    **annotations: Any,
) -> Service:
    marks = {
        f"{PFX}{key.replace('_', '-')}": value if isinstance(value, str) else json.dumps(value)
        for key, value in annotations.items()
    }
    return Service.of(
        {
            "metadata": {"name": name, "namespace": namespace, "annotations": marks, "uid": "u"},
            "spec": {"selector": {"app": name} if selector is None else selector, "ports": list(ports)},
        }
    )


def namespaces(**labels: dict[str, str]) -> dict[str, Namespace]:
    present = {name.replace("_", "-"): having for name, having in {"shop": {}, **labels}.items()}
    return {
        name: Namespace({NAMESPACE_LABEL: name, **having}, is_terminating=False) for name, having in present.items()
    }


def existing(*names: str) -> dict[str, Namespace]:
    return {name: Namespace({}, is_terminating=False) for name in names}


def tcp(port: int) -> Object:
    return {"protocol": "TCP", "port": port}


def pods(**labels: str) -> Object:
    return {"podSelector": {"matchLabels": labels}}


def in_namespace(name: str) -> Object:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}


def compute(of: Service, rules: Rules | None = None, **around: Any) -> Desired:
    return desired_policies(of, rules or Rules(), Surroundings(**{"namespaces": namespaces(), **around}))


def names(desired: Desired) -> list[str]:
    return sorted(str(key) for key in desired.policies)


def spec(desired: Desired, name: str) -> Object:
    return desired.policies[Key(*name.split("/"))].spec


def text(desired: Desired, name: str) -> str:
    return desired.policies[Key(*name.split("/"))].description


# --- clients in the same namespace


def test_each_port_of_a_service_leads_to_a_policy_at_its_pods_and_one_at_its_clients() -> None:
    desired = compute(service())
    assert names(desired) == ["shop/egress-to-db-tcp-8080", "shop/ingress-to-db-tcp-8080"]
    clients = pods(**{f"{PFX}to-db-tcp-8080": "allowed"})
    assert spec(desired, "shop/ingress-to-db-tcp-8080") == {
        **pods(app="db"),
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [clients], "ports": [tcp(8080)]}],
    }
    assert spec(desired, "shop/egress-to-db-tcp-8080") == {
        **clients,
        "policyTypes": ["Egress"],
        "egress": [{"to": [pods(app="db")], "ports": [tcp(8080)]}],
    }
    assert text(desired, "shop/ingress-to-db-tcp-8080") == (
        "Allows ingress TCP traffic to port 8080 for pods selected by the shop/db service selector from pods running in "
        f"namespace shop labeled with {{map[{PFX}to-db-tcp-8080:allowed] []}}."
    )
    assert text(desired, "shop/egress-to-db-tcp-8080") == (
        "Allows egress TCP traffic to port 8080 from pods running in namespace shop labeled with "
        f"{{map[{PFX}to-db-tcp-8080:allowed] []}} to pods selected by the shop/db service selector."
    )


@pytest.mark.parametrize(
    ("port", "slug"),
    [
        ({"port": 80, "targetPort": "http", "protocol": "TCP"}, "tcp-http"),
        ({"port": 53, "targetPort": "dns", "protocol": "UDP"}, "udp-dns"),
        ({"port": 9, "targetPort": 99, "protocol": "SCTP"}, "sctp-99"),
        ({"port": 80}, "tcp-80"),
        ({"port": 80, "targetPort": 0}, "tcp-80"),
        ({"port": 80, "targetPort": ""}, "tcp-80"),
    ],
)
def test_the_target_port_counts_by_number_or_by_name(port: Object, slug: str) -> None:
    assert names(compute(service(ports=[port]))) == [f"shop/egress-to-db-{slug}", f"shop/ingress-to-db-{slug}"]


def test_two_ports_with_the_same_target_lead_to_one_pair() -> None:
    twice = [{"port": 80, "targetPort": 8080, "name": "a"}, {"port": 81, "targetPort": 8080, "name": "b"}]
    assert len(compute(service(ports=twice)).policies) == 2


def test_a_service_without_ports_has_only_what_annotations_ask_for() -> None:
    assert not compute(service(ports=[])).policies
    assert names(compute(service(ports=[], from_world_to_ports=[]))) == ["shop/ingress-to-db-from-world"]


# --- clients elsewhere


def shop_with_everything() -> Desired:
    of = service(
        namespace="shop-1",
        ports=[{"name": "sql", "port": 3306, "targetPort": 13306, "protocol": "TCP"}],
        namespace_selectors=[{"matchLabels": {"team": "web"}}],
        pod_label_selector_namespace_alias="all-shops",
        from_scrapers_allowed_ports=[{"port": "metrics", "protocol": "TCP"}],
    )
    present = namespaces(shop_1={}, front={"team": "web"}, other={"team": "db"})
    present["old-front"] = Namespace({"team": "web"}, is_terminating=True)
    return compute(of, namespaces=present)


def test_clients_of_selected_namespaces_have_policies_with_the_namespaces_alias_in_their_label() -> None:
    desired = shop_with_everything()
    labels = {
        str(key): next(iter(_clients(policy.spec)["matchLabels"])).removeprefix(PFX)
        for key, policy in desired.policies.items()
    }
    assert labels == {
        "shop-1/ingress-to-db-tcp-13306": "to-db-tcp-13306",
        "shop-1/egress-to-db-tcp-13306": "to-db-tcp-13306",
        "shop-1/ingress-to-db-tcp-13306-from-front": "to-all-shops-db-tcp-13306",
        "front/egress-to-shop-1-db-tcp-13306": "to-all-shops-db-tcp-13306",
        "shop-1/ingress-to-db-tcp-metrics-via-scrapers": "to-scrapers",
        "shop-1/egress-to-db-tcp-metrics-via-scrapers": "to-scrapers",
        "shop-1/ingress-to-db-tcp-metrics-via-scrapers-from-front": "to-all-shops-scrapers",
        "front/egress-to-shop-1-db-tcp-metrics-via-scrapers": "to-all-shops-scrapers",
    }


def _clients(of: Object) -> Object:
    found = of["ingress"][0]["from"][0]["podSelector"] if "ingress" in of else of["podSelector"]
    assert isinstance(found, dict)
    return found


def test_namespace_and_pods_are_selected_by_one_peer() -> None:
    desired = shop_with_everything()
    clients = pods(**{f"{PFX}to-all-shops-db-tcp-13306": "allowed"})
    assert spec(desired, "front/egress-to-shop-1-db-tcp-13306") == {
        **clients,
        "policyTypes": ["Egress"],
        "egress": [{"to": [{**pods(app="db"), **in_namespace("shop-1")}], "ports": [tcp(13306)]}],
    }
    (rule,) = spec(desired, "shop-1/ingress-to-db-tcp-13306-from-front")["ingress"]
    assert rule["from"] == [{**clients, **in_namespace("front")}]


@pytest.mark.parametrize(
    ("selectors", "selected"),
    [
        ([], []),
        ("null", []),
        ([{}], ["a", "b", "c"]),
        ([None], ["a", "b", "c"]),
        ([{"matchLabels": {"x": "1"}}], ["a"]),
        ([{"matchLabels": {"x": "1"}}, {"matchLabels": {"x": "2"}}], ["a", "b"]),
        ([{"matchExpressions": [{"key": "x", "operator": "In", "values": ["1", "2"]}]}], ["a", "b"]),
        ([{"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}], ["c"]),
        ([{"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["1"]}], "later": 1}], ["b", "c"]),
    ],
)
def test_namespaces_are_selected_by_any_of_the_selectors(selectors: Any, selected: list[str]) -> None:
    present = namespaces(a={"x": "1"}, b={"x": "2"}, c={})
    desired = compute(service(namespace_selectors=selectors), namespaces=present)
    assert sorted({key.namespace for key in desired.policies} - {"shop"}) == selected


def test_the_own_namespace_counts_once() -> None:
    assert len(compute(service(namespace_selectors=[{}])).policies) == 2


@pytest.mark.parametrize(
    ("alias", "label"), [(None, "to-shop-db-tcp-8080"), ("", "to--db-tcp-8080"), ("x", "to-x-db-tcp-8080")]
)
def test_the_alias_of_the_namespace_counts_even_if_empty(alias: str | None, label: str) -> None:
    requested = {} if alias is None else {"pod_label_selector_namespace_alias": alias}
    desired = compute(service(namespace_selectors=[{}], **requested), namespaces=namespaces(n={}))
    assert spec(desired, "n/egress-to-shop-db-tcp-8080")["podSelector"] == {"matchLabels": {f"{PFX}{label}": "allowed"}}


def test_a_terminating_namespace_gets_no_policies_for_its_services() -> None:
    terminating = {"shop": Namespace({}, is_terminating=True), "n": Namespace({}, is_terminating=False)}
    assert not compute(service(namespace_selectors=[{}], from_world_to_ports=[]), namespaces=terminating).policies


# --- aliases


def test_ports_without_an_alias_count_like_the_services_own() -> None:
    without_alias: Object = {"from--allowed-ports": [{"port": 9, "protocol": "UDP"}]}
    desired = compute(service(ports=[], **without_alias))
    assert names(desired) == ["shop/egress-to-db-udp-9", "shop/ingress-to-db-udp-9"]
    assert f"{PFX}to-db-udp-9" in spec(desired, "shop/egress-to-db-udp-9")["podSelector"]["matchLabels"]


@pytest.mark.parametrize(
    ("annotation", "alias"),
    [
        ("from-a-allowed-ports", "a"),
        ("from-a-allowed-ports-allowed-ports", "a-allowed-ports"),
        ("from-world-allowed-ports", "world"),
        ("from--allowed-ports", ""),
        ("from-world-to-ports", None),
        ("from-allowed-ports", None),
        ("xfrom-a-allowed-ports", None),
    ],
)
def test_the_alias_is_what_stands_between(annotation: str, alias: str | None) -> None:
    found = policy_settings({f"{PFX}{annotation}": "[]"})
    assert [name for name, _ in found.aliases] == ([] if alias is None else [alias])
    assert not found.problems


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        ({"port": 1, "protocol": "UDP"}, {"protocol": "UDP", "port": 1}),
        ({"port": "10250", "protocol": "TCP"}, {"protocol": "TCP", "port": 10250}),
        ({"port": "dns"}, {"protocol": "TCP", "port": "dns"}),
        ({"port": 1, "endPort": 5}, {"protocol": "TCP", "port": 1, "endPort": 5}),
    ],
)
def test_ports_of_annotations_are_written_out(entry: Object, rule: Object) -> None:
    desired = compute(service(ports=[], from_a_allowed_ports=[entry]))
    (ingress,) = [policy.spec["ingress"] for policy in desired.policies.values() if "ingress" in policy.spec]
    assert ingress[0]["ports"] == [rule]


# --- annotations that can't be understood


EXPRESSION = '[{"matchExpressions": [{"key": "a", "operator": "%s"}]}]'


@pytest.mark.parametrize(
    ("annotation", "value", "complaint"),
    [
        ("namespace-selectors", "oops", "is not the expected JSON list"),
        ("namespace-selectors", "", "is not the expected JSON list"),
        ("namespace-selectors", "{}", "is not the expected JSON list"),
        ("namespace-selectors", '[{"matchLabels": {"a": 1}}]', "is not the expected JSON list"),
        ("namespace-selectors", EXPRESSION % "Is", "not a valid selector operator"),
        ("namespace-selectors", EXPRESSION % "In", "[0].matchExpressions[0].values"),
        ("from-a-allowed-ports", "oops", "is not the expected JSON list"),
        ("from-a-allowed-ports", '[{"protocol": "TCP"}]', "[0].port: Required value"),
        ("from-a-allowed-ports", '[{"port": 0}]', "[0]: port 0 is not between 1 and 65535"),
        ("from-a-allowed-ports", '[{"port": "not_a_name"}]', '[0]: port "not_a_name" is neither'),
        ("from-a-allowed-ports", '[{"port": "-a"}]', "is neither"),
        ("from-a-allowed-ports", '[{"port": "sixteen-letters-"}]', "is neither"),
        ("from-a-allowed-ports", '[{"port": 1, "protocol": "ICMP"}]', 'protocol "ICMP" must be one of'),
        ("from-a-allowed-ports", '[{"port": "dns", "endPort": 9}]', "endPort 9 is not"),
        ("from-a-allowed-ports", '[{"port": 9, "endPort": 8}]', "endPort 8 is not"),
        ("from-UPPER-allowed-ports", "[]", "can't be part of a policy's name"),
        ("from-a_b-allowed-ports", "[]", "can't be part of a policy's name"),
        ("from-a.-allowed-ports", "[]", "can't be part of a policy's name"),
        ("from-world-to-ports", "oops", "is not the expected JSON list"),
        ("from-world-to-ports", "[" * 100_000, "is not the expected JSON list"),
    ],
)
def test_what_is_wrong_with_an_annotation_is_reported_and_changes_nothing_else(
    annotation: str, value: str, complaint: str
) -> None:
    found = policy_settings({f"{PFX}{annotation}": value, f"{PFX}from-good-allowed-ports": '[{"port": 1}]'})
    (problem,) = found.problems
    assert problem.annotation == f"{PFX}{annotation}"
    assert complaint in problem.message
    assert len(problem.message) < 700
    assert [alias for alias, _ in found.aliases] == ["good"]
    assert found.are_complete == (annotation == "from-world-to-ports")
    assert found.world_is_unclear == (annotation == "from-world-to-ports")


# --- the world

DNS = {"protocol": "UDP", "port": "dns"}


@pytest.mark.parametrize(
    ("ports", "names_everybody", "rule", "listed"),
    [
        ([{"port": "8443", "protocol": "TCP"}], True, {"from": EVERYBODY, "ports": [tcp(8443)]}, "TCP/8443"),
        ([{"port": 8443}], True, {"from": EVERYBODY, "ports": [tcp(8443)]}, "8443"),
        ([tcp(1), DNS], False, {"ports": [tcp(1), DNS]}, "TCP/1 UDP/dns"),
        ([{"protocol": "UDP"}], True, {"from": EVERYBODY, "ports": [{"protocol": "UDP"}]}, "UDP"),
        ([], True, {"from": EVERYBODY}, ""),
        ("null", True, {"from": EVERYBODY}, ""),
        ([], False, {}, ""),
    ],
)
def test_traffic_from_everywhere(ports: Any, names_everybody: bool, rule: Object, listed: str) -> None:
    desired = compute(service(ports=[], from_world_to_ports=ports), Rules(names_everybody=names_everybody))
    assert names(desired) == ["shop/ingress-to-db-from-world"]
    expected = {**pods(app="db"), "policyTypes": ["Ingress"], "ingress": [rule]}
    assert spec(desired, "shop/ingress-to-db-from-world") == expected
    assert text(desired, "shop/ingress-to-db-from-world") == (
        f"Allows ingress traffic from everywhere to ports [{listed}] for pods selected by the shop/db service selector."
    )


# --- Ingresses


def backends_of(*paths: Any) -> frozenset[Backend]:
    rules = [{"host": "h"}, {"http": {"paths": [{"backend": path} for path in paths]}}]
    found = backends({"metadata": {"name": "i", "namespace": "a"}, "spec": {"rules": rules}})
    assert found.of.keys() == {Key("a", "ui")}
    return found.of[Key("a", "ui")]


def ui(**port: Any) -> Object:
    return {"service": {"name": "ui", "port": port}}


NGINX = Rules(ingress_controller=("ic", {"matchLabels": {"c": "nginx"}}))
UI = service("ui", "a", ports=[{"name": "web", "port": 443, "targetPort": 10250, "protocol": "TCP"}])
WEB = {Backend("web", 0)}


def test_backends_of_an_ingress_are_its_services_by_name_or_number_of_the_port() -> None:
    found = backends_of(ui(name="web"), ui(number=443), {"resource": {"kind": "Bucket"}})
    assert found == {Backend("web", 0), Backend("", 443)}
    assert backends({"metadata": {"namespace": "a"}, "spec": {"defaultBackend": {"service": {"name": "ui"}}}}).of == {}


def test_the_ingress_controller_reaches_what_ingresses_lead_to() -> None:
    found = backends_of(ui(name="web"), ui(number=443), ui(number=80))
    desired = compute(UI, NGINX, backends=found, namespaces=existing("a"))
    extra = [name for name in names(desired) if name.endswith("controller")]
    assert extra == [
        "a/ingress-to-ui-tcp-10250-from-ingress-controller",
        "ic/egress-to-a-ui-tcp-10250-from-ingress-controller",
    ]
    controller = {**pods(c="nginx"), **in_namespace("ic")}
    assert spec(desired, extra[0])["ingress"] == [{"from": [controller], "ports": [tcp(10250)]}]
    called = "from pods running in namespace ic labeled with {map[c:nginx] []}"
    assert text(desired, extra[0]).endswith(f"a/ui service selector {called}.")
    assert text(desired, extra[1]).endswith(f"{called} to pods selected by the a/ui service selector.")


def test_an_ingress_controller_in_the_services_namespace_needs_no_namespace_selector() -> None:
    expressions = [{"key": "c", "operator": "In", "values": ["x", "y"]}, {"key": "d", "operator": "Exists"}]
    selector = {"matchExpressions": expressions}
    desired = compute(UI, Rules(ingress_controller=("a", selector)), backends=WEB, namespaces=existing("a"))
    name = "a/egress-to-ui-tcp-10250-from-ingress-controller"
    assert name in names(desired)
    assert "namespaceSelector" not in spec(desired, name)["egress"][0]["to"][0]
    assert "labeled with {map[] [{c In [x y]} {d Exists []}]} to" in text(desired, name)


def test_an_unnamed_port_does_not_match_every_backend() -> None:
    unnamed = service("ui", "a", ports=[{"port": 443, "targetPort": 1}])
    desired = compute(unnamed, NGINX, namespaces=existing("a"), backends={Backend("", 80)})
    assert not [name for name in names(desired) if "controller" in name]


# --- Istio

NO_LABELS: frozenset[str] = frozenset()


def test_gateways_reach_what_virtual_services_lead_to() -> None:
    routes = [
        GatewayRoute(443, {"istio": "gw"}, {"a": NO_LABELS, "istio": NO_LABELS}),
        GatewayRoute(1, {"x": "y"}, {"istio": NO_LABELS}),
    ]
    desired = compute(UI, routes=routes, namespaces=existing("a", "istio"))
    policies = ("a/egress-to-ui", "a/ingress-to-ui", "istio/egress-to-a-ui")
    found = {name for name in names(desired) if "10250-from" in name}
    assert found == {f"{policy}-tcp-10250-from-istio" for policy in policies}


def test_a_gateway_in_a_namespace_with_other_clients_shares_their_policy() -> None:
    both = service("ui", "a", ports=[{"port": 443, "targetPort": 1}], namespace_selectors=[{}])
    route = GatewayRoute(443, {"istio": "gw"}, {"gateways": NO_LABELS})
    desired = compute(both, namespaces=existing("a", "gateways"), routes=[route])
    (rule,) = spec(desired, "a/ingress-to-ui-tcp-1-from-gateways")["ingress"]
    clients, gateways = {"matchLabels": {f"{PFX}to-a-ui-tcp-1": "allowed"}}, {"matchLabels": {"istio": "gw"}}
    assert [peer["podSelector"] for peer in rule["from"]] == [clients, gateways]
    assert spec(desired, "gateways/egress-to-a-ui-tcp-1")["podSelector"] == clients
    assert spec(desired, "gateways/egress-to-a-ui-tcp-1-from-istio")["podSelector"] == gateways


@pytest.mark.parametrize(
    ("selectors", "labels", "routed"),
    [
        ([{}], {"to-a-ui-tcp-1"}, False),
        ([{}], {"to-scrapers", "to-a-scrapers"}, False),  # an alias with the same port
        ([{}], {"to-a-others"}, True),
        ([{}], {"to-ui-tcp-1"}, True),  # for clients in the Service's namespace
        ([], {"to-a-ui-tcp-1"}, True),  # the namespace is not let in
        ([{}], set(), True),
    ],
)
def test_a_gateway_whose_pods_are_let_through_by_a_label_gets_no_more(
    selectors: list[Object], labels: set[str], routed: bool
) -> None:
    of = service(
        "ui",
        "a",
        ports=[{"port": 443, "targetPort": 1}],
        namespace_selectors=selectors,
        from_scrapers_allowed_ports=[{"port": 1}],
        from_others_allowed_ports=[{"port": 2}],
    )
    route = GatewayRoute(443, {"istio": "gw"}, {"gateways": frozenset(f"{PFX}{label}" for label in labels)})
    present = existing("a", "gateways")
    without, found = compute(of, namespaces=present), compute(of, namespaces=present, routes=[route])
    assert (found.policies != without.policies) == routed


# --- long labels


@pytest.mark.parametrize(
    ("usual", "hashed"),
    [
        ("to-shoot--team-payments--production-eu-kube-apiserver-tcp-443", None),
        ("to-shoot--team-payments--production-eu-west-kube-apiserver-tcp-443", "97d60"),
        ("to-shoot--team-payments--production-eu-west-vpn-seed-server-tcp-9443", "30016"),
        ("to-this-is-a-very-long-svc-name-which-will-exceed-max-length-tcp-5678", "7c268"),
        ("to-" + "x" * 60, None),
    ],
)
def test_labels_are_shortened_names_of_policies_are_not(usual: str, hashed: str | None) -> None:
    expected = usual if hashed is None else f"{usual[:57]}-{hashed}"
    assert client_label(f"{PFX}{usual}") == f"{PFX}{expected}"


def test_a_shortened_label_is_reported_once_for_both_policies() -> None:
    desired = compute(service("x" * 57))
    (shortened,) = desired.shortened
    assert shortened.usual == f"{PFX}to-{'x' * 57}-tcp-8080"
    assert len(shortened.mutated.removeprefix(PFX)) == 63
    assert f"shop/ingress-to-{'x' * 57}-tcp-8080" in names(desired)


def test_labels_of_others_are_never_shortened() -> None:
    long = {"matchLabels": {"example.com/" + "x" * 63: "y"}}
    desired = compute(UI, Rules(ingress_controller=("a", long)), namespaces=existing("a"), backends=WEB)
    assert spec(desired, "a/egress-to-ui-tcp-10250-from-ingress-controller")["podSelector"] == long


# --- only where pods ask for it


def test_policies_only_for_pods_that_are_there_if_so_wanted() -> None:
    asking = {("shop", f"{PFX}to-db-tcp-8080"), ("n", f"{PFX}to-a")}
    of = service(namespace_selectors=[{}], from_a_allowed_ports=[{"port": 1}], from_world_to_ports=[])
    asks = {"has_client": lambda namespace, label: (namespace, label) in asking}
    desired = compute(of, Rules(requires_pods=True), namespaces=namespaces(n={}), **asks)
    expected = ["egress-to-db-tcp-8080", "ingress-to-db-from-world", "ingress-to-db-tcp-8080"]
    assert names(desired) == [f"shop/{name}" for name in expected]


def test_only_allowed_labels_ask_for_anything() -> None:
    labels = {f"{PFX}to-a": "allowed", f"{PFX}to-b": "denied", f"{PFX}x": "allowed", "to-c": "allowed"}
    assert client_labels({"metadata": {"labels": labels}}) == {f"{PFX}to-a"}


# --- which Services


@pytest.mark.parametrize(
    ("selectors", "labels", "handled"),
    [
        ((), None, True),
        (({},), {}, True),
        (({"matchLabels": {"a": "b"}},), {}, False),
        (({"matchLabels": {"a": "b"}},), None, False),
        (({"matchLabels": {"a": "b"}}, {"matchLabels": {"c": "d"}}), {"c": "d"}, True),
    ],
)
def test_services_of_which_namespaces_are_handled(selectors: Any, labels: Any, handled: bool) -> None:
    assert is_handled(None if labels is None else Namespace(labels, is_terminating=False), selectors) is handled


def test_the_digest_follows_the_spec_and_not_the_order_of_fields() -> None:
    assert digest({"x": 1, "y": 2}) == digest({"y": 2, "x": 1})
    assert digest({"x": 1}) != digest({"x": 2})
