"""Who gets the serving certificate of a kubelet: the Node itself, for all its addresses and no other.

The checks come in a fixed order, and the first that fails is told. Those of the request alone lead to the name of the
Node; `judge` compares with what is known of that Node.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.csr_approver import addresses, keys
from agent.csr_approver.addresses import InvalidAddressError, difference
from agent.csr_approver.decisions import Approval, Check, Decision, Denial, quoted
from agent.csr_approver.request import Asked, SigningRequest

_DNS_DIFFER = (
    "DNS names in CSR do not match addresses of type 'Hostname' or 'InternalDNS' or 'ExternalDNS' in node object"
)
_IPS_DIFFER = "IP addresses in CSR do not match addresses of type 'InternalIP' or 'ExternalIP' in node object"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is left to the operator."""

    strict: bool = False
    """Whether to deny also what the signer would refuse after an approval."""
    address_types: frozenset[str] = keys.ADDRESS_TYPES
    """The addresses of a Node that have to be in its certificate, and no others may."""


@dataclass(frozen=True, slots=True)
class NodeName:
    """The Node that a request is for, as far as the request can tell."""

    name: str


def node_of(request: SigningRequest, rules: Rules) -> NodeName | Denial:
    """The checks of the request alone."""
    asked, username = request.asked, request.username
    if not username.startswith(keys.NODE_USER_PREFIX):
        return Denial(Check.USERNAME, f'username {quoted(username)} is not prefixed with "{keys.NODE_USER_PREFIX}"')
    if not asked.dns_names and not asked.ip_addresses:
        return Denial(Check.NO_SANS, "no DNS names or IP addresses in the SANs found")
    if asked.common_names != (username,):
        names = ", ".join(map(quoted, asked.common_names)) or "none"
        reason = f"common name in CSR does not match username: common name {names}, username {quoted(username)}"
        return Denial(Check.COMMON_NAME, reason)
    if asked.organizations != (keys.NODES_GROUP,):
        return Denial(Check.ORGANIZATION, "organization in CSR does not match nodes group")
    return (_strictly(request) if rules.strict else None) or NodeName(username.removeprefix(keys.NODE_USER_PREFIX))


def judge(
    asked: Asked,
    node_name: str,
    node: Mapping[str, Any] | None,
    *,
    machines: int | None,
    machine_namespace: str | None,
    rules: Rules,
) -> Decision:
    """The checks of the Node.

    Args:
        asked: what is to be in the certificate.
        node_name: as `node_of` tells it.
        node: None if there is none.
        machines: how many Machines say that they became this Node; None: Machines are not checked.
        machine_namespace: where these Machines are.
        rules: which addresses count.
    """
    if node is None:
        return Denial(Check.NODE, f"could not find node object with name {quoted(node_name)}", may_change=True)
    if machines is not None and machines != 1:
        where = f"in namespace {quoted(machine_namespace or '')} for node {quoted(node_name)}"
        return Denial(Check.MACHINE, f"Expected exactly one machine {where} but found {machines}", may_change=True)
    try:
        ips = addresses.ip_addresses(node, rules.address_types)
    except InvalidAddressError as error:
        return Denial(Check.IP_ADDRESSES, str(error), may_change=True)
    names = addresses.dns_names(node, rules.address_types)
    if asked.dns_names != names:
        return Denial(Check.DNS_NAMES, f"{_DNS_DIFFER}: {difference(asked.dns_names, names)}", may_change=True)
    asked_ips = frozenset(map(addresses.plain, asked.ip_addresses))
    if asked_ips != ips:
        return Denial(Check.IP_ADDRESSES, f"{_IPS_DIFFER}: {difference(asked_ips, ips)}", may_change=True)
    return Approval()


def _strictly(request: SigningRequest) -> Denial | None:
    """What the signer would refuse after the approval."""
    if request.asked.has_other_names:
        return Denial(Check.OTHER_SANS, "URIs or e-mail addresses in the SANs found")
    if foreign := sorted(set(request.usages) - keys.SERVING_USAGES):
        return Denial(Check.USAGES, f"usages {foreign} are not those of a serving certificate")
    if keys.NODES_GROUP not in request.groups:
        return Denial(Check.GROUPS, f'the user is not in the group "{keys.NODES_GROUP}"')
    return None
