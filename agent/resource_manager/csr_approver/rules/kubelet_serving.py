"""Who gets the serving certificate of a kubelet: the Node itself, for all its addresses and no other.

The checks come in a fixed order, and the first that fails is reported. Those of the request alone lead to the name of
the Node; `check_node` compares with what is known of that Node.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agent.resource_manager.csr_approver.rules.contents import KUBELET_SERVING, NODE_USER_PREFIX, NODES_GROUP, unfit
from agent.resource_manager.csr_approver.rules.decisions import Approval, Check, Decision, Denial, listed, quoted
from kube.signing_requests import Asked, IPAddress, SigningRequest

_DNS_TYPES = ("Hostname", "InternalDNS", "ExternalDNS")
_IP_TYPES = ("InternalIP", "ExternalIP")
ADDRESS_TYPES = frozenset((*_DNS_TYPES, *_IP_TYPES))

_DNS_DIFFER = (
    "DNS names in CSR do not match addresses of type 'Hostname' or 'InternalDNS' or 'ExternalDNS' in node object"
)
_IPS_DIFFER = "IP addresses in CSR do not match addresses of type 'InternalIP' or 'ExternalIP' in node object"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is left to the operator."""

    address_types: frozenset[str] = ADDRESS_TYPES
    """The addresses of a Node that have to be in its certificate, and no others may."""


def node_of(request: SigningRequest) -> str | Denial:
    """The checks of the request alone; the name of the Node that it says it is for."""
    asked, username = request.asked, request.username
    if not username.startswith(NODE_USER_PREFIX):
        return Denial(Check.USERNAME, f'username {quoted(username)} is not prefixed with "{NODE_USER_PREFIX}"')
    if not asked.dns_names and not asked.ip_addresses:
        return Denial(Check.NO_SANS, "no DNS names or IP addresses in the SANs found")
    if asked.common_names != (username,):
        names = ", ".join(map(quoted, asked.common_names)) or "none"
        reason = f"common name in CSR does not match username: common name {names}, username {quoted(username)}"
        return Denial(Check.COMMON_NAME, reason)
    if wrong := unfit(request, KUBELET_SERVING):
        return wrong
    if NODES_GROUP not in request.groups:
        return Denial(Check.GROUPS, f'the user is not in the group "{NODES_GROUP}"')
    return username.removeprefix(NODE_USER_PREFIX)


def check_node(
    asked: Asked,
    node_name: str,
    node: Mapping[str, Any] | None,
    *,
    machines: int | None,
    machine_namespace: str | None,
    rules: Rules,
) -> Decision:
    """The checks of the Node.

    Args: machines: how many Machines in their namespace say that they became this Node; None: they are not checked.
    """
    if node is None:
        return Denial(Check.NODE, f"could not find node object with name {quoted(node_name)}", may_change=True)
    if machines is not None and machines != 1:
        where = f"in namespace {quoted(machine_namespace or '')} for node {quoted(node_name)}"
        return Denial(Check.MACHINE, f"Expected exactly one machine {where} but found {machines}", may_change=True)
    ips = set()
    for address in _addresses(node, rules.address_types.intersection(_IP_TYPES)):
        try:
            ips.add(_plain(ipaddress.ip_address(address)))
        except ValueError:
            where = f'IP address "{address}" in node.Status.Addresses'
            problem = f'{where} is invalid: ParseAddr("{address}"): unable to parse IP'
            return Denial(Check.IP_ADDRESSES, problem, may_change=True)
    names = frozenset(_addresses(node, rules.address_types.intersection(_DNS_TYPES)))
    if asked.dns_names != names:
        return Denial(Check.DNS_NAMES, f"{_DNS_DIFFER}: {_difference(asked.dns_names, names)}", may_change=True)
    asked_ips = frozenset(map(_plain, asked.ip_addresses))
    if asked_ips != ips:
        return Denial(Check.IP_ADDRESSES, f"{_IPS_DIFFER}: {_difference(asked_ips, ips)}", may_change=True)
    return Approval()


# --- addresses of a Node


def _plain(address: IPAddress) -> IPAddress:
    """`::ffff:10.0.0.1` is the IPv4 address 10.0.0.1."""
    return (address.version == 6 and address.ipv4_mapped) or address


def _difference(asked: Iterable[object], node: Iterable[object]) -> str:
    in_request, in_node = {str(each) for each in asked}, {str(each) for each in node}
    return f"only in CSR {listed(in_request - in_node)}, only in node {listed(in_node - in_request)}"


def _addresses(node: Mapping[str, Any], types: frozenset[str]) -> list[str]:
    listed = (node.get("status") or {}).get("addresses") or []
    return [entry.get("address") or "" for entry in listed if entry.get("type") in types]
