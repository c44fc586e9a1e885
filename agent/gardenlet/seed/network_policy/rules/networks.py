"""Networks and addresses for policies, from the configuration and from objects."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kube.addresses import parse_address
from kube.objects import Object, integer, mappings, text, texts
from kube.paths import mapping_at

PRIVATE_V4 = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
PRIVATE_V6 = ("fe80::/10", "fc00::/7")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedNetworks:
    family: str
    """`IPv4` or `IPv6` if the seed has this family only; else empty."""
    own: tuple[str, ...]
    """Networks of pods, Services and nodes."""
    services: tuple[str, ...]
    blocked: tuple[str, ...]

    @classmethod
    def of(cls, seed: Mapping[str, Any]) -> "SeedNetworks":
        """Read the networks of the configured Seed."""
        networks = mapping_at(dict(seed), "spec", "networks")
        families, services = texts(networks.get("ipFamilies")), text(networks.get("services"))
        own = (text(networks.get("pods")), services, text(networks.get("nodes")))
        return cls(
            family=families[0] if len(families) == 1 else "",
            own=tuple(cidr for cidr in own if cidr),
            services=(services,) if services else (),
            blocked=tuple(texts(networks.get("blockCIDRs"))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShootNetworks:
    family: str
    """`IPv6` unless the Shoot has only IPv4."""
    all: tuple[str, ...]
    """Networks of nodes, pods and Services, from the spec and the status."""

    @classmethod
    def of(cls, cluster: Object) -> "ShootNetworks":
        """Read the networks of the Shoot in a Cluster object."""
        spec = mapping_at(cluster, "spec", "shoot", "spec", "networking")
        status = mapping_at(cluster, "spec", "shoot", "status", "networking")
        kinds = ("nodes", "pods", "services")
        found = [text(spec.get(kind)) for kind in kinds] + [cidr for kind in kinds for cidr in texts(status.get(kind))]
        return cls(
            family="IPv4" if texts(spec.get("ipFamilies")) in ([], ["IPv4"]) else "IPv6",
            all=tuple(dict.fromkeys(cidr for cidr in found if cidr)),
        )


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Addresses, and the ports that they share."""

    addresses: tuple[str, ...]
    ports: tuple[tuple[str, int], ...]
    """Protocols and port numbers."""


def endpoints_of(endpoints: Object) -> tuple[Endpoint, ...]:
    """Ready endpoints of an Endpoints object; subsets without a port or an address are skipped."""
    found = []
    for subset in mappings(endpoints.get("subsets")):
        named = dict.fromkeys(text(each.get("ip")) for each in mappings(subset.get("addresses")))
        addresses = tuple(address for address in named if is_address(address))
        ports = tuple(_port(each) for each in mappings(subset.get("ports")) if integer(each.get("port")))
        if addresses and ports:
            found.append(Endpoint(addresses, ports))
    return tuple(found)


def _port(port: Object) -> tuple[str, int]:
    return text(port.get("protocol")) or "TCP", integer(port.get("port"))


def host_cidr(address: str) -> str:
    """Network with this address only."""
    found = parse_address(address)
    assert found is not None  # checked when it was read
    return f"{found}/{found.max_prefixlen}"


def is_address(text: str) -> bool:
    return parse_address(text) is not None
