"""Names and addresses in a network, validated with the messages of the Kubernetes API server."""

import re
from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from kube.names import dns_label_problems, dns_subdomain_problems
from kube.validation import FieldError, invalid, required

Address = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network

_LONGEST_ADDRESS = 100
_CIDR = re.compile(r"([0-9A-Fa-f:.]+)/([0-9]{1,3})", re.ASCII)
_LEADING_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9])", re.ASCII)


def domain_name_errors(path: str, name: str) -> Iterator[FieldError]:
    """First error of a fully qualified domain name, with or without trailing dot."""
    if not name:
        yield required(path)
        return
    name = name.removesuffix(".")
    if problems := dns_subdomain_problems(name):
        yield invalid(path, name, ",".join(problems))
        return
    segments = name.split(".")
    if len(segments) < 2:
        yield invalid(path, name, "should be a domain with at least two segments separated by dots")
        return
    for segment in segments:
        if problems := dns_label_problems(segment):
            yield invalid(path, segment, ",".join(problems))
            return


def ip_errors(path: str, text: str, *, lenient: bool = False) -> Iterator[FieldError]:
    """Errors of an address of either family. Lenient: allow the notations that fields of old APIs accept."""
    address = parse_address(_without_leading_zeros(text) if lenient else text)
    if address is None:
        yield invalid(path, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
    elif not lenient and isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        yield invalid(path, text, "must not be an IPv4-mapped IPv6 address")


def parse_cidr(text: str) -> IPNetwork | None:
    """Network of a CIDR; its host bits may be set. None if it is not valid."""
    return _network(text) if len(text) <= _LONGEST_ADDRESS else None


def canonical_cidr(text: str) -> str:
    """The CIDR without host bits, as recent API servers demand; unchanged if it is not valid."""
    network = parse_cidr(text)
    return text if network is None else str(network)


@lru_cache(maxsize=1024)
def _network(text: str) -> IPNetwork | None:
    match = _CIDR.fullmatch(text)
    if match is None:
        return None
    try:
        return ip_network(f"{match[1]}/{int(match[2])}", strict=False)
    except ValueError:
        return None


def has_host_bits(text: str) -> bool:
    """Whether a CIDR has host bits set."""
    return len(text) <= _LONGEST_ADDRESS and _has_host_bits(text)


@lru_cache(maxsize=1024)
def _has_host_bits(text: str) -> bool:
    network = _network(text)
    return network is not None and parse_address(text.partition("/")[0]) != network.network_address


def parse_address(text: str) -> Address | None:
    """Parse an address of either family, without a zone. None if it is not valid."""
    if "%" in text or len(text) > _LONGEST_ADDRESS:
        return None
    try:
        return ip_address(text)
    except ValueError:
        return None


def _without_leading_zeros(text: str) -> str:
    """Strip leading zeros from the numbers of an IPv4 address, or of an embedded one."""
    head, colon, tail = text.rpartition(":")
    return f"{head}{colon}{_LEADING_ZEROS.sub('', tail)}" if "." in tail else text
