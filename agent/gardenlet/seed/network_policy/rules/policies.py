"""Content of each policy: one function from the inputs to the policy, or to the reason why it can't be computed.

Names and descriptions match the original exactly: policies that it created are adopted unchanged.

A network inside an exception is omitted, and so is a rule without any remaining network: without peers it would allow
everything.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agent.gardenlet.seed.network_policy.rules.networks import (
    PRIVATE_V4,
    PRIVATE_V6,
    Endpoint,
    SeedNetworks,
    ShootNetworks,
    host_cidr,
)
from agent.shared.network_policy.rules.policies import NAMESPACE_LABEL
from agent.shared.network_policy.rules.projections import policy_digest
from gardener import keys
from gardener.garden.networks import overlap
from gardener.network_policies import (
    DENY_ALL,
    SHOOT_NAMESPACE_PREFIX,
    TO_BLOCKED_CIDRS,
    TO_DNS,
    TO_PRIVATE_NETWORKS,
    TO_PUBLIC_NETWORKS,
    TO_RUNTIME_APISERVER,
)
from kube.addresses import IPNetwork, canonical_cidr, parse_cidr
from kube.objects import Object

_NODE_LOCAL_DNS = ("169.254.20.10/32", "fd30:1319:f1e:230b::1/128")
_DNS_PORTS = (53, 8053)
_DNS_HOST = 10
"""Offset of the DNS server's address in the Service network."""


class PolicyError(Exception):
    """A policy can't be computed, for the reason in the message."""


@dataclass(frozen=True, slots=True)
class Policy:
    name: str
    description: str
    spec: Object

    @property
    def digest(self) -> bytes:
        return policy_digest(self.description, self.spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Inputs of policies."""

    seed: SeedNetworks
    endpoints: Sequence[Endpoint] | None
    """Endpoints of the seed's API server; None if there is no Endpoints object."""
    resolved: Sequence[Endpoint] | None = ()
    """Endpoints of its host name; None before the first lookup."""
    shoots: Mapping[str, ShootNetworks] | None = field(default_factory=dict)
    """Networks of Shoots by namespace; None if not known yet."""


def compute(name: str, namespace: str, around: Surroundings) -> Policy | None:
    """Compute the policy of this name; None if an input is not known yet.

    Raises:
        PolicyError: it can't be computed.
    """
    return _POLICIES[name](namespace, around)


def _deny_all(_: str, __: Surroundings) -> Policy:
    return Policy(
        DENY_ALL,
        "Disables all ingress and egress traffic into/from this namespace.",
        {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
    )


def _to_runtime_apiserver(_: str, around: Surroundings) -> Policy | None:
    if around.endpoints is None:
        raise PolicyError('Endpoints "kubernetes" not found')
    if around.resolved is None:
        return None
    rules: list[Object] = []
    for endpoint in (*around.endpoints, *around.resolved):
        rule: Object = {
            "to": [_block(host_cidr(address)) for address in endpoint.addresses],
            "ports": [{"protocol": protocol, "port": port} for protocol, port in endpoint.ports],
        }
        if rule not in rules:
            rules.append(rule)
    return _egress(
        TO_RUNTIME_APISERVER,
        "runtime-apiserver",
        "Allows egress traffic from pods labeled with '{label}=allowed' to the endpoints in the default namespace of"
        " the kube-apiserver of the runtime cluster.",
        rules,
    )


def _to_public_networks(_: str, around: Surroundings) -> Policy:
    seed = around.seed
    own = seed.own if seed.family == "IPv6" else ()
    return _egress(
        TO_PUBLIC_NETWORKS,
        "public-networks",
        "Allows egress from pods labeled with '{label}=allowed' to all public network IPs, except for private networks"
        " (RFC1918), carrier-grade NAT (RFC6598), and explicitly blocked addresses configured by human operators. In"
        " practice, this blocks egress traffic to all networks in the cluster and only allows egress traffic to public"
        " IPv4 addresses.",
        _rules(
            [
                *_peers(["0.0.0.0/0"], except_for=[*PRIVATE_V4, *seed.blocked]),
                *_peers(["::/0"], except_for=[*PRIVATE_V6, *seed.blocked, *own]),
            ]
        ),
    )


def _to_private_networks(namespace: str, around: Surroundings) -> Policy | None:
    seed = around.seed
    used: dict[str, list[str]] = {"IPv4": [], "IPv6": []}
    if seed.family:
        used[seed.family] += seed.own
    if namespace.startswith(SHOOT_NAMESPACE_PREFIX):
        if around.shoots is None:
            return None
        if namespace not in around.shoots:
            raise PolicyError(f'Cluster "{namespace}" not found, which has the networks of the Shoot')
        shoot = around.shoots[namespace]
        used[shoot.family] += shoot.all
    return _egress(
        TO_PRIVATE_NETWORKS,
        "private-networks",
        "Allows egress from pods labeled with '{label}=allowed' to the private networks (RFC1918) and carrier-grade NAT"
        " (RFC6598), except for cluster-specific networks.",
        _rules(
            _peers(PRIVATE_V4, except_for=[*seed.blocked, *used["IPv4"]]),
            _peers(PRIVATE_V6, except_for=[*seed.blocked, *used["IPv6"]]),
        ),
    )


def _to_blocked_cidrs(_: str, around: Surroundings) -> Policy:
    return _egress(
        TO_BLOCKED_CIDRS,
        "blocked-cidrs",
        "Allows egress from pods labeled with '{label}=allowed' to explicitly blocked addresses configured by human"
        " operators.",
        [{"to": [_block(cidr)]} for cidr in around.seed.blocked],
    )


def _to_dns(_: str, around: Surroundings) -> Policy:
    if not around.seed.services:
        raise PolicyError("no service range configured")
    pods = (_pods_of_dns(app) for app in ("kube-dns", "node-local-dns"))
    addresses = (*_NODE_LOCAL_DNS, *map(_dns_address, around.seed.services))
    ports = [{"protocol": protocol, "port": port} for port in _DNS_PORTS for protocol in ("UDP", "TCP")]
    return _egress(
        TO_DNS,
        "dns",
        "Allows egress from pods labeled with '{label}=allowed' to DNS running in 'kube-system'. In practice, most of"
        " the pods which require network egress need this label.",
        [{"to": [*pods, *map(_block, addresses)], "ports": ports}],
    )


_POLICIES: Mapping[str, Callable[[str, Surroundings], Policy | None]] = {
    DENY_ALL: _deny_all,
    TO_RUNTIME_APISERVER: _to_runtime_apiserver,
    TO_PUBLIC_NETWORKS: _to_public_networks,
    TO_PRIVATE_NETWORKS: _to_private_networks,
    TO_BLOCKED_CIDRS: _to_blocked_cidrs,
    TO_DNS: _to_dns,
}


# --- parts of policies


def _egress(name: str, asked_for: str, description: str, rules: Sequence[Object]) -> Policy:
    """Policy for pods that request it by a label, which the description names."""
    label = f"{keys.TO_NETWORKS_PREFIX}{asked_for}"
    return Policy(
        name,
        description.format(label=label),
        {
            "podSelector": {"matchLabels": {label: keys.ALLOWED}},
            "policyTypes": ["Egress"],
            # The API server omits an empty list.
            **({"egress": list(rules)} if rules else {}),
        },
    )


def _rules(*peers: Sequence[Object]) -> list[Object]:
    """A rule for each non-empty list of peers."""
    return [{"to": list(each)} for each in peers if each]


def _peers(networks: Iterable[str], *, except_for: Iterable[str]) -> list[Object]:
    """Remaining networks, each with the exceptions inside it.

    Raises:
        PolicyError: a network is invalid.
    """
    exceptions = {canonical_cidr(cidr): _network(cidr) for cidr in except_for}
    peers = []
    for network in networks:
        whole = _network(network)
        touching = {cidr: part for cidr, part in exceptions.items() if overlap(whole, part)}
        if all(part.prefixlen > whole.prefixlen for part in touching.values()):
            peers.append(_block(network, list(touching)))
    return peers


def _network(cidr: str) -> IPNetwork:
    network = parse_cidr(cidr)
    if network is None:
        raise PolicyError(f"invalid CIDR address: {cidr}")
    return network


def _block(cidr: str, except_for: Sequence[str] = ()) -> Object:
    return {"ipBlock": {"cidr": canonical_cidr(cidr), **({"except": list(except_for)} if except_for else {})}}


def _pods_of_dns(app: str) -> Object:
    return {
        "podSelector": {"matchExpressions": [{"key": "k8s-app", "operator": "In", "values": [app]}]},
        "namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: "kube-system"}},
    }


def _dns_address(services: str) -> str:
    network = _network(services)
    if network.num_addresses <= _DNS_HOST:
        raise PolicyError(f"the service range {services} is too small for the address of a DNS server")
    return host_cidr(str(network.network_address + _DNS_HOST))
