"""Networks of clusters: CIDRs of the right family that do not overlap."""

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_network
from itertools import combinations

from kube.addresses import IPNetwork, has_host_bits, parse_cidr
from kube.validation import FieldError, invalid

VPN_RANGES = ("192.168.123.0/24", "fd8f:6d53:b97a:1::/96")
"""Ranges that the VPN between control planes and nodes uses."""

_VPN = tuple(network for text in VPN_RANGES if (network := parse_cidr(text)) is not None)
_SPECIAL = {
    "IPv4 this-network": ip_network("0.0.0.0/8"),
    "IPv4 loopback": ip_network("127.0.0.0/8"),
    "IPv4 link-local": ip_network("169.254.0.0/16"),
    "IPv4 multicast": ip_network("224.0.0.0/4"),
    "IPv4 broadcast": ip_network("255.255.255.255/32"),
    "IPv6 unspecified": ip_network("::/128"),
    "IPv6 loopback": ip_network("::1/128"),
    "IPv4-mapped": ip_network("::ffff:0:0/96"),
    "IPv6 link-local": ip_network("fe80::/10"),
    "IPv6 multicast": ip_network("ff00::/8"),
}


def cidr_errors(path: str, text: str) -> Iterator[FieldError]:
    if parse_cidr(text) is None:
        yield invalid(path, text, f"invalid CIDR address: {text}")


def canonical_errors(path: str, text: str) -> Iterator[FieldError]:
    """Errors about invalid networks, and about host bits, which a network must not have."""
    if parse_cidr(text) is None:
        yield from cidr_errors(path, text)
    elif has_host_bits(text):
        yield invalid(path, text, f"must be a canonical CIDR: {parse_cidr(text)}")


def parsed(networks: Mapping[str, str]) -> dict[str, IPNetwork]:
    """Networks by path; invalid texts are left out."""
    found = ((path, parse_cidr(text)) for path, text in networks.items())
    return {path: network for path, network in found if network is not None}


def family_errors(networks: Mapping[str, str], families: Sequence[str]) -> Iterator[FieldError]:
    """Errors about families; clusters with both families may have networks of either."""
    if len(families) > 1:
        return
    family = families[0] if families else "IPv4"
    for path, text in networks.items():
        network = parse_cidr(text)
        if network is not None and f"IPv{network.version}" != family:
            yield invalid(path, str(network.network_address), f"must be a valid {family} address")


def overlap_errors(networks: Mapping[str, str]) -> Iterator[FieldError]:
    """Errors about pairs that overlap, for the latter of the two."""
    for (first, one), (second, other) in combinations(parsed(networks).items(), 2):
        if overlap(one, other):
            yield invalid(second, networks[second], f'must not overlap with "{first}" ("{networks[first]}")')


def special_errors(networks: Mapping[str, str]) -> Iterator[FieldError]:
    """Errors about addresses that no Pod or Service can have: API servers or hosts refuse them."""
    for path, network in parsed(networks).items():
        for use, taken in _SPECIAL.items():
            if overlap(network, taken):
                yield invalid(path, networks[path], f'must not overlap with {use} addresses ("{taken}")')


def vpn_errors(networks: Mapping[str, str]) -> Iterator[FieldError]:
    for path, network in parsed(networks).items():
        for taken in _VPN:
            if overlap(network, taken):
                yield invalid(path, networks[path], f'must not overlap with the range of the VPN ("{taken}")')


def overlap(one: IPNetwork, other: IPNetwork) -> bool:
    return one.version == other.version and one.overlaps(other)
