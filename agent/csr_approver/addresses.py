"""What a Node is called, and how that differs from what a request asks for.

An IPv4 address and its form within IPv6 (`::ffff:10.0.0.1`) are the same address.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

from agent.csr_approver import keys
from agent.csr_approver.request import IPAddress

_SHOWN = 10


class InvalidAddressError(Exception):
    """A Node has an IP address that is none."""


def dns_names(node: Mapping[str, Any], types: frozenset[str]) -> frozenset[str]:
    return frozenset(_of_types(node, types.intersection(keys.DNS_ADDRESS_TYPES)))


def ip_addresses(node: Mapping[str, Any], types: frozenset[str]) -> frozenset[IPAddress]:
    """Raises InvalidAddressError for the first that can't be parsed."""
    return frozenset(plain(_parsed(text)) for text in _of_types(node, types.intersection(keys.IP_ADDRESS_TYPES)))


def plain(address: IPAddress) -> IPAddress:
    return (address.version == 6 and address.ipv4_mapped) or address


def difference(asked: Iterable[object], node: Iterable[object]) -> str:
    in_request, in_node = {str(each) for each in asked}, {str(each) for each in node}
    return f"only in CSR {_list(in_request - in_node)}, only in node {_list(in_node - in_request)}"


def _of_types(node: Mapping[str, Any], types: frozenset[str]) -> list[str]:
    listed = (node.get("status") or {}).get("addresses") or []
    return [entry.get("address") or "" for entry in listed if entry.get("type") in types]


def _parsed(text: str) -> IPAddress:
    try:
        return ipaddress.ip_address(text)
    except ValueError as error:
        raise InvalidAddressError(
            f'IP address "{text}" in node.Status.Addresses is invalid: ParseAddr("{text}"): unable to parse IP'
        ) from error


def _list(names: set[str]) -> str:
    """In a stable order; a request may ask for any number of names."""
    ordered = sorted(names)
    more = [f"and {len(ordered) - _SHOWN} more"] if len(ordered) > _SHOWN else []
    return f"[{' '.join([*ordered[:_SHOWN], *more])}]"
