"""Which policies a namespace of the seed gets, and what they allow on seeds of all families."""

from collections.abc import Mapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from agent.gardenlet.seed.network_policy.rules.networks import Endpoint, SeedNetworks, ShootNetworks, endpoints_of
from agent.gardenlet.seed.network_policy.rules.policies import PolicyError, Surroundings, compute
from components import kube_apiserver
from gardener.network_policies import (
    DENY_ALL,
    NAMES,
    TO_BLOCKED_CIDRS,
    TO_DNS,
    TO_PRIVATE_NETWORKS,
    TO_PUBLIC_NETWORKS,
    TO_RUNTIME_APISERVER,
    names_of,
)
from kit.shoot_components import api_server, named
from kube.objects import Object

ROLE = "gardener.cloud/role"
HANDLER = "handler.exposureclass.gardener.cloud/name"
ISTIO = (DENY_ALL, TO_RUNTIME_APISERVER, TO_DNS)


@pytest.mark.parametrize(
    ("namespace", "labels", "names"),
    [
        ("garden", {}, NAMES),
        ("garden", {ROLE: "garden"}, NAMES),
        ("shoot--p--s", {ROLE: "shoot"}, NAMES),
        ("shoot--p--s", {}, ()),
        ("extension-x", {ROLE: "extension"}, NAMES),
        ("istio-system", {ROLE: "istio-system"}, ISTIO),
        ("istio-ingress", {ROLE: "istio-ingress"}, ISTIO),
        ("handler", {HANDLER: "", ROLE: "exposureclass-handler"}, (DENY_ALL, TO_DNS)),
        ("handler", {HANDLER: "x", ROLE: "istio-ingress"}, ISTIO),
        ("mine", {"policies": "yes"}, NAMES),
        ("mine", {"policies": "yes", ROLE: "istio-system"}, NAMES),
        ("mine", {"policies": "no"}, ()),
        ("kube-system", {ROLE: "kube-system"}, ()),
    ],
)
def test_labels_of_a_namespace_state_which_policies_it_gets(
    namespace: str, labels: dict[str, str], names: Sequence[str]
) -> None:
    assert names_of(namespace, labels, additional=[{"matchLabels": {"policies": "yes"}}]) == names


def seed(**networks: Any) -> SeedNetworks:
    usual = {"nodes": "10.1.0.0/16", "pods": "10.2.0.0/16", "services": "10.3.0.0/16"}
    return SeedNetworks.of({"spec": {"networks": usual | networks}})


def test_an_api_server_calls_no_address_of_the_seed() -> None:
    """A tenant names URLs of webhooks and token issuers."""
    labels = named(kube_apiserver.objects(api_server()), "Deployment")["spec"]["template"]["metadata"]["labels"]
    allowed = [
        name
        for name in (TO_BLOCKED_CIDRS, TO_PRIVATE_NETWORKS, TO_PUBLIC_NETWORKS, TO_RUNTIME_APISERVER)
        if labels.get(f"networking.gardener.cloud/{name.removeprefix('allow-')}") == "allowed"
    ]
    assert allowed == [TO_PRIVATE_NETWORKS, TO_PUBLIC_NETWORKS]
    networking = {"nodes": "10.4.0.0/16", "services": "10.5.0.0/16"}
    shoot = ShootNetworks.of({"spec": {"shoot": {"spec": {"networking": networking}}}})
    surroundings = around(
        seed(ipFamilies=["IPv4"], blockCIDRs=["169.254.169.254/32", "10.9.9.9/32"]), shoots={"shoot--p--s": shoot}
    )
    rules = [rule for name in allowed for rule in blocks(name, surroundings, namespace="shoot--p--s")]

    def is_reached(address: str) -> bool:
        host = ip_address(address)
        return any(
            host in ip_network(network) and not any(host in ip_network(each) for each in left_out)
            for rule in rules
            for network, left_out in rule.items()
        )

    nodes, pods, services, others = "10.1.0.1", "10.2.0.1", "10.3.0.1", ("169.254.169.254", "10.9.9.9", "10.4.0.1")
    assert not any(map(is_reached, (nodes, pods, services, *others)))
    assert all(map(is_reached, ("192.0.2.1", "10.200.0.1")))


V6: Object = {"nodes": "fd01::/48", "pods": "fd02::/48", "services": "fd03::/108"}


def around(
    networks: SeedNetworks,
    *,
    endpoints: Sequence[Endpoint] | None = (),
    resolved: Sequence[Endpoint] | None = (),
    shoots: Mapping[str, ShootNetworks] | None = None,
) -> Surroundings:
    return Surroundings(seed=networks, endpoints=endpoints, resolved=resolved, shoots=shoots or {})


def blocks(name: str, surroundings: Surroundings, *, namespace: str = "garden") -> list[dict[str, list[str]]]:
    """What the rules of a policy allow: for each, its networks with their exceptions."""
    policy = compute(name, namespace, surroundings)
    assert policy is not None
    assert policy.spec["policyTypes"] == ["Egress"]
    rules = policy.spec.get("egress", [])
    assert all(rule["to"] for rule in rules)  # a rule without peers allows everything
    return [
        {peer["ipBlock"]["cidr"]: peer["ipBlock"].get("except", []) for peer in rule["to"] if "ipBlock" in peer}
        for rule in rules
    ]


def plain(networks: Sequence[str], exceptions: dict[str, list[str]]) -> dict[str, list[str]]:
    return {network: exceptions.get(network, []) for network in networks}


PRIVATE_V4 = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"]
PRIVATE_V6 = ["fe80::/10", "fc00::/7"]


@pytest.mark.parametrize(
    ("networks", "v4", "v6"),
    [
        # The families are not given: none of the seed's own networks is excepted, as with the original.
        (seed(), {}, {}),
        (seed(ipFamilies=["IPv4"]), {"10.0.0.0/8": ["10.2.0.0/16", "10.3.0.0/16", "10.1.0.0/16"]}, {}),
        (seed(ipFamilies=["IPv4"], nodes=None), {"10.0.0.0/8": ["10.2.0.0/16", "10.3.0.0/16"]}, {}),
        (seed(ipFamilies=["IPv6"], **V6), {}, {"fc00::/7": ["fd02::/48", "fd03::/108", "fd01::/48"]}),
        (seed(ipFamilies=["IPv4", "IPv6"]), {}, {}),
        (
            seed(blockCIDRs=["10.9.0.0/16", "169.254.169.254/32", "fd09::/16", "fe80::a/128"]),
            {"10.0.0.0/8": ["10.9.0.0/16"]},
            {"fc00::/7": ["fd09::/16"], "fe80::/10": ["fe80::a/128"]},
        ),
        (
            seed(ipFamilies=["IPv4"], nodes="172.16.5.0/18", blockCIDRs=["172.16.6.0/18", "fd09:0:0::7/16"]),
            {"172.16.0.0/12": ["172.16.0.0/18"], "10.0.0.0/8": ["10.2.0.0/16", "10.3.0.0/16"]},
            {"fc00::/7": ["fd09::/16"]},
        ),
        (
            seed(ipFamilies=["IPv4"], blockCIDRs=["10.3.0.0/16"]),
            {"10.0.0.0/8": ["10.3.0.0/16", "10.2.0.0/16", "10.1.0.0/16"]},
            {},
        ),
    ],
)
def test_private_networks(networks: SeedNetworks, v4: dict[str, list[str]], v6: dict[str, list[str]]) -> None:
    assert blocks(TO_PRIVATE_NETWORKS, around(networks)) == [plain(PRIVATE_V4, v4), plain(PRIVATE_V6, v6)]


def test_a_network_with_host_bits_is_written_without_them() -> None:
    networks = seed(blockCIDRs=["172.16.5.0/18"])
    assert blocks(TO_BLOCKED_CIDRS, around(networks)) == [{"172.16.0.0/18": []}]


@pytest.mark.parametrize(
    ("networking", "status", "v4", "v6"),
    [
        ({}, {}, {}, {}),
        ({"nodes": "10.5.0.0/16"}, {}, {"10.0.0.0/8": ["10.5.0.0/16"]}, {}),
        (
            {"nodes": "10.5.0.0/16", "pods": "100.96.0.0/11", "services": "10.6.0.0/16", "ipFamilies": ["IPv4"]},
            {"nodes": ["10.5.0.0/16", "10.7.0.0/16"], "pods": ["100.96.0.0/11"], "services": []},
            {"10.0.0.0/8": ["10.5.0.0/16", "10.6.0.0/16", "10.7.0.0/16"], "100.64.0.0/10": ["100.96.0.0/11"]},
            {},
        ),
        ({"ipFamilies": ["IPv6"], **V6}, {}, {}, {"fc00::/7": ["fd01::/48", "fd02::/48", "fd03::/108"]}),
        (
            {"ipFamilies": ["IPv4", "IPv6"], "nodes": "10.5.0.0/16"},
            {"nodes": ["10.5.0.0/16", "fd01::/48"]},
            {},
            {"fc00::/7": ["fd01::/48"]},
        ),
    ],
)
def test_networks_of_a_shoot_are_not_reached_as_private_ones(
    networking: Object, status: Object, v4: dict[str, list[str]], v6: dict[str, list[str]]
) -> None:
    cluster = {"spec": {"shoot": {"spec": {"networking": networking}, "status": {"networking": status}}}}
    shoots = {"shoot--p--s": ShootNetworks.of(cluster), "extension-x": ShootNetworks.of(cluster)}
    surroundings = around(seed(), shoots=shoots)
    found = blocks(TO_PRIVATE_NETWORKS, surroundings, namespace="shoot--p--s")
    assert found == [plain(PRIVATE_V4, v4), plain(PRIVATE_V6, v6)]
    # Only namespaces of Shoots are looked for.
    found = blocks(TO_PRIVATE_NETWORKS, surroundings, namespace="extension-x")
    assert found == [plain(PRIVATE_V4, {}), plain(PRIVATE_V6, {})]


@pytest.mark.parametrize(
    ("networks", "v4", "v6"),
    [
        (seed(), [], []),
        (seed(blockCIDRs=["1.1.1.1/32", "2001:db8::1/128"]), ["1.1.1.1/32"], ["2001:db8::1/128"]),
        (seed(ipFamilies=["IPv4"]), [], []),
        (seed(ipFamilies=["IPv4", "IPv6"], **V6), [], []),
        (seed(ipFamilies=["IPv6"], **V6), [], ["fd02::/48", "fd03::/108", "fd01::/48"]),
        (
            seed(ipFamilies=["IPv6"], pods="2001:db8:1::/48", services="2001:db8:2::/108", nodes=None),
            [],
            ["2001:db8:1::/48", "2001:db8:2::/108"],
        ),
    ],
)
def test_public_networks(networks: SeedNetworks, v4: list[str], v6: list[str]) -> None:
    assert blocks(TO_PUBLIC_NETWORKS, around(networks)) == [
        {"0.0.0.0/0": [*PRIVATE_V4, *v4], "::/0": [*PRIVATE_V6, *v6]}
    ]


def test_a_network_that_is_blocked_as_a_whole_is_not_allowed() -> None:
    surroundings = around(seed(blockCIDRs=["10.0.0.0/7", "fe80::/10", "fc00::/7", "0.0.0.0/0"]))
    assert blocks(TO_PRIVATE_NETWORKS, surroundings) == []
    assert blocks(TO_PUBLIC_NETWORKS, surroundings) == [{"::/0": ["fe80::/10", "fc00::/7"]}]
    found = blocks(TO_PRIVATE_NETWORKS, around(seed(blockCIDRs=["10.0.0.0/7"])))
    assert found == [plain(PRIVATE_V4[1:], {}), plain(PRIVATE_V6, {})]


@pytest.mark.parametrize(
    ("blocked", "allowed"),
    [([], []), (["10.9.0.0/16", "fd09::/16"], [{"10.9.0.0/16": []}, {"fd09::/16": []}])],
)
def test_blocked_networks(blocked: list[str], allowed: list[dict[str, list[str]]]) -> None:
    assert blocks(TO_BLOCKED_CIDRS, around(seed(blockCIDRs=blocked))) == allowed


@pytest.mark.parametrize(
    ("services", "server"),
    [("10.3.0.0/16", "10.3.0.10/32"), ("fd03::/108", "fd03::a/128"), ("10.3.0.7/16", "10.3.0.10/32")],
)
def test_dns(services: str, server: str) -> None:
    found = blocks(TO_DNS, around(seed(services=services)))
    assert found == [{"169.254.20.10/32": [], "fd30:1319:f1e:230b::1/128": [], server: []}]


ONE = Endpoint(("10.0.0.1",), (("TCP", 443),))
OTHER = Endpoint(("10.0.0.2", "fd00::2"), (("TCP", 6443),))


@pytest.mark.parametrize(
    ("endpoints", "resolved", "allowed"),
    [
        ((), (), []),
        ((ONE,), (), [{"10.0.0.1/32": []}]),
        ((ONE, OTHER), (), [{"10.0.0.1/32": []}, {"10.0.0.2/32": [], "fd00::2/128": []}]),
        ((ONE,), (OTHER,), [{"10.0.0.1/32": []}, {"10.0.0.2/32": [], "fd00::2/128": []}]),
        ((ONE,), (ONE,), [{"10.0.0.1/32": []}]),
    ],
)
def test_the_api_server_of_the_seed(
    endpoints: Sequence[Endpoint], resolved: Sequence[Endpoint], allowed: list[dict[str, list[str]]]
) -> None:
    assert blocks(TO_RUNTIME_APISERVER, around(seed(), endpoints=endpoints, resolved=resolved)) == allowed


def test_before_its_host_name_is_resolved_a_policy_is_left_as_it_is() -> None:
    surroundings = around(seed(), endpoints=[ONE], resolved=None)
    assert compute(TO_RUNTIME_APISERVER, "garden", surroundings) is None


@pytest.mark.parametrize(
    ("name", "surroundings", "message"),
    [
        (TO_RUNTIME_APISERVER, around(seed(), endpoints=None), 'Endpoints "kubernetes" not found'),
        (TO_DNS, around(seed(services=None)), "no service range configured"),
        (TO_DNS, around(seed(services="10.0.0.0/29")), "too small for the address of a DNS server"),
        (TO_PRIVATE_NETWORKS, around(seed()), 'Cluster "shoot--p--s" not found'),
        (
            TO_PRIVATE_NETWORKS,
            around(seed(), shoots={"shoot--p--s": ShootNetworks(family="IPv4", all=("x",))}),
            "invalid CIDR address: x",
        ),
    ],
)
def test_why_a_policy_can_not_be_made(name: str, surroundings: Surroundings, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        compute(name, "shoot--p--s", surroundings)


def test_endpoints_are_those_that_are_ready() -> None:
    subset = {
        "addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.1"}, {"ip": "nonsense"}],
        "notReadyAddresses": [{"ip": "10.0.0.3"}],
        "ports": [{"name": "https", "port": 443, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}],
    }
    no_ports = {"addresses": [{"ip": "10.0.0.4"}]}
    no_address = {"notReadyAddresses": [{"ip": "10.0.0.5"}], "ports": [{"port": 443}]}
    found = endpoints_of({"subsets": [subset, no_ports, no_address]})
    assert found == (Endpoint(("10.0.0.1",), (("TCP", 443), ("UDP", 53))),)
