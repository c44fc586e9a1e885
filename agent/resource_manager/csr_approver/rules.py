"""Rules for approving certificate requests: `decide`.

Kubelets get serving certificates for exactly the addresses of their Node. Node agents and gardenadm get client
certificates; a request of the same signer with any other common name is left alone. The checks run in a fixed order,
and the first that fails is reported: those of the request alone yield the name of the Node or Machine, then the
clusters are read, as late as possible.

The signer puts all requested content into the certificate: each organization is a group, and each usage and each
further name grants its holder something. So any unexpected content is denied.
"""

import ipaddress
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from gardener import keys
from kube.objects import Object
from kube.signing_requests import (
    APPROVED,
    DENIED,
    KUBE_APISERVER_CLIENT,
    KUBELET_SERVING,
    Asked,
    IPAddress,
    MalformedRequestError,
    SigningRequest,
    parse,
    signer_of,
    with_decision,
)

# --- decisions


SIGNERS = (KUBELET_SERVING, KUBE_APISERVER_CLIENT)
REQUEST_APPROVED = "RequestApproved"
REQUEST_DENIED = "RequestDenied"

_LISTED = 10
_SUBJECTS = {
    KUBELET_SERVING: "kubelet server certificate CSR",
    KUBE_APISERVER_CLIENT: "gardener-node-agent certificate CSR",
}


class Check(StrEnum):
    """Reason of a denial, as in the label `reason` of the metric."""

    MALFORMED = "malformed"
    USERNAME = "username"
    NO_SANS = "no-sans"
    COMMON_NAME = "common-name"
    ORGANIZATION = "organization"
    OTHERS = "others"
    USAGES = "usages"
    GROUPS = "groups"
    NODE = "node"
    MACHINE = "machine"
    DNS_NAMES = "dns-names"
    IP_ADDRESSES = "ip-addresses"
    ALREADY_BOOTSTRAPPED = "already-bootstrapped"


@dataclass(frozen=True, slots=True)
class Approval:
    """All checks passed."""


@dataclass(frozen=True, slots=True)
class Denial:
    """Final for this request."""

    check: Check
    reason: str
    """Text for users."""
    may_change: bool = False
    """Whether the cluster is to blame instead of the request: its state may change in a moment."""


@dataclass(frozen=True, slots=True)
class NoOpinion:
    """Another approver handles this request."""


Decision = Approval | Denial | NoOpinion


def message(decision: Approval | Denial, *, signer: str) -> str:
    subject = _SUBJECTS[signer]
    match decision:
        case Approval():
            return f"Approving {subject} (all checks passed)"
        case Denial(reason=reason):
            return f"Denying {subject} ({reason})"


def decided(csr: Object, decision: Approval | Denial, *, signer: str) -> Object:
    """Return the request with the decision among its conditions."""
    reported = message(decision, signer=signer)
    if isinstance(decision, Approval):
        return with_decision(csr, APPROVED, REQUEST_APPROVED, reported)
    return with_decision(csr, DENIED, REQUEST_DENIED, reported)


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def listed(names: Iterable[str]) -> str:
    """Format names in a stable order, with a bound: a request may have any number of names."""
    ordered = sorted(names)
    more = [f"and {len(ordered) - _LISTED} more"] if len(ordered) > _LISTED else []
    return f"[{' '.join([*ordered[:_LISTED], *more])}]"


# --- contents of a certificate of each kind


NODE_USER_PREFIX = "system:node:"
NODES_GROUP = "system:nodes"

DIGITAL_SIGNATURE = "digital signature"
KEY_ENCIPHERMENT = "key encipherment"
"""Required with RSA keys only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Required contents except the common name."""

    organization: str
    organization_differs: str
    usage: str
    has_alternative_names: bool = False


KUBELET = Contents(
    organization=NODES_GROUP,
    organization_differs="organization in CSR does not match nodes group",
    usage="server auth",
    has_alternative_names=True,
)
NODE_AGENT = Contents(
    organization=keys.NODE_AGENTS_GROUP,
    organization_differs="organization in CSR does not match node agents group",
    usage="client auth",
)
GARDENADM = Contents(
    organization=keys.SHOOTS_GROUP,
    organization_differs="organization in CSR does not match nodes group",
    usage="client auth",
)


def unfit(request: SigningRequest, contents: Contents) -> Denial | None:
    """Return the problem of the request, except of common names and values of alternative names; None if it fits."""
    requested = request.requested
    if requested.organizations != (contents.organization,):
        only = f'only "{contents.organization}" is allowed, found {listed(map(quoted, requested.organizations))}'
        return Denial(Check.ORGANIZATION, f"{contents.organization_differs}: {only}")
    others = set(requested.others)
    if not contents.has_alternative_names:
        others |= {f"DNS:{name}" for name in requested.dns_names} | {
            f"IP:{address}" for address in requested.ip_addresses
        }
    if others:
        return Denial(Check.OTHERS, f"CSR requests contents that are not allowed: {listed(others)}")
    if set(request.usages) - {KEY_ENCIPHERMENT} != {DIGITAL_SIGNATURE, contents.usage}:
        wanted = f'"{DIGITAL_SIGNATURE}", "{contents.usage}" and optionally "{KEY_ENCIPHERMENT}"'
        found = listed(map(quoted, request.usages))
        return Denial(Check.USAGES, f"usages of CSR must be {wanted}, found {found}")
    return None


# --- serving certificates of kubelets


_DNS_TYPES = ("Hostname", "InternalDNS", "ExternalDNS")
_IP_TYPES = ("InternalIP", "ExternalIP")
ADDRESS_TYPES = frozenset((*_DNS_TYPES, *_IP_TYPES))

_DNS_DIFFER = (
    "DNS names in CSR do not match addresses of type 'Hostname' or 'InternalDNS' or 'ExternalDNS' in node object"
)
_IPS_DIFFER = "IP addresses in CSR do not match addresses of type 'InternalIP' or 'ExternalIP' in node object"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Settings of the operator."""

    address_types: frozenset[str] = ADDRESS_TYPES
    """Types of Node addresses that the certificate must have; it may have no others."""


def node_of(request: SigningRequest) -> str | Denial:
    """Check the request alone; return the name of the Node that it claims to come from."""
    requested, username = request.requested, request.username
    if not username.startswith(NODE_USER_PREFIX):
        return Denial(Check.USERNAME, f'username {quoted(username)} is not prefixed with "{NODE_USER_PREFIX}"')
    if not requested.dns_names and not requested.ip_addresses:
        return Denial(Check.NO_SANS, "no DNS names or IP addresses in the SANs found")
    if requested.common_names != (username,):
        names = ", ".join(map(quoted, requested.common_names)) or "none"
        reason = f"common name in CSR does not match username: common name {names}, username {quoted(username)}"
        return Denial(Check.COMMON_NAME, reason)
    if wrong := unfit(request, KUBELET):
        return wrong
    if NODES_GROUP not in request.groups:
        return Denial(Check.GROUPS, f'the user is not in the group "{NODES_GROUP}"')
    return username.removeprefix(NODE_USER_PREFIX)


def check_node(
    requested: Asked,
    node_name: str,
    node: Mapping[str, Any] | None,
    *,
    machines: int | None,
    machine_namespace: str | None,
    rules: Rules,
) -> Decision:
    """Check the request against its Node.

    Args: machines: number of Machines in their namespace that claim to be this Node; None if they are not checked.
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
    if requested.dns_names != names:
        return Denial(Check.DNS_NAMES, f"{_DNS_DIFFER}: {_difference(requested.dns_names, names)}", may_change=True)
    asked_ips = frozenset(map(_plain, requested.ip_addresses))
    if asked_ips != ips:
        return Denial(Check.IP_ADDRESSES, f"{_IPS_DIFFER}: {_difference(asked_ips, ips)}", may_change=True)
    return Approval()


# --- addresses of a Node


def _plain(address: IPAddress) -> IPAddress:
    """Return the address, with `::ffff:10.0.0.1` as the IPv4 address 10.0.0.1."""
    return (address.version == 6 and address.ipv4_mapped) or address


def _difference(requested: Iterable[object], node: Iterable[object]) -> str:
    in_request, in_node = {str(each) for each in requested}, {str(each) for each in node}
    return f"only in CSR {listed(in_request - in_node)}, only in node {listed(in_node - in_request)}"


def _addresses(node: Mapping[str, Any], types: frozenset[str]) -> list[str]:
    found = (node.get("status") or {}).get("addresses") or []
    return [entry.get("address") or "" for entry in found if entry.get("type") in types]


# --- client certificates of node agents and gardenadm


BOOTSTRAP_USER_PREFIX = "system:bootstrap:"

_PREFIXES = (keys.NODE_AGENT_USER_PREFIX, keys.GARDENADM_USER_PREFIX)


@dataclass(frozen=True, slots=True)
class Machine:
    """An existing Machine."""

    node_name: str
    """Name of its Node; empty if it has not become one yet."""


def machine_of(request: SigningRequest) -> str | Decision:
    """Return the name of the Machine whose node agent sent the request, or a decision from the request alone."""
    names = request.requested.common_names
    if not any(name.startswith(_PREFIXES) for name in names):
        return NoOpinion()
    if len(names) > 1:
        return Denial(Check.COMMON_NAME, "CSR has more than one common name")
    if names[0].startswith(keys.GARDENADM_USER_PREFIX):
        return _check_gardenadm(request)
    return unfit(request, NODE_AGENT) or names[0].removeprefix(keys.NODE_AGENT_USER_PREFIX)


def check_user(request: SigningRequest, machine_name: str, machine: Machine | None) -> Decision | Machine:
    """Return the decision that follows from the user; the Machine if it depends on whether its Node exists."""
    if machine is None:
        return Denial(Check.MACHINE, f"machine {quoted(machine_name)} does not exist", may_change=True)
    username, common_name = request.username, request.requested.common_names[0]
    if username.startswith(BOOTSTRAP_USER_PREFIX):
        return machine if machine.node_name else Approval()
    if not username.startswith(keys.NODE_AGENT_USER_PREFIX):
        reason = f"username {quoted(username)} is not allowed to create CSRs for a gardener-node-agent"
        return Denial(Check.USERNAME, reason)
    if username != common_name:
        reason = f"username {quoted(username)} and commonName {quoted(common_name)} do not match"
        return Denial(Check.COMMON_NAME, reason)
    return Approval()


def check_bootstrap(machine_name: str, *, node_exists: bool) -> Decision:
    """Approve only for a machine without a Node: a bootstrap token is good for one certificate."""
    if not node_exists:
        return Approval()
    name = quoted(machine_name)
    reason = f"Cannot use bootstrap token since gardener-node-agent for machine {name} is already bootstrapped"
    return Denial(Check.ALREADY_BOOTSTRAPPED, reason, may_change=True)


def _check_gardenadm(request: SigningRequest) -> Decision:
    if not request.username.startswith(BOOTSTRAP_USER_PREFIX):
        reason = f"username {quoted(request.username)} is not allowed to create CSRs for a gardenadm client"
        return Denial(Check.USERNAME, reason)
    return unfit(request, GARDENADM) or Approval()


# --- the decision


class Lookups(Protocol):
    """Reads the current state of the clusters."""

    machine_namespace: str | None
    """Namespace of Machines; None if they are not checked."""

    async def node(self, name: str) -> Object | None: ...

    async def machines_of_node(self, node_name: str) -> int | None:
        """Number of Machines that became this Node; None if Machines are not checked."""

    async def machine(self, name: str) -> Machine | None:
        """Return the Machine; if Machines are not checked, each exists and is the Node of the same name."""


async def decide(csr: Object, lookups: Lookups, rules: Rules) -> Decision:
    """Return the decision on a request.

    Raises:
        KubeError: the clusters cannot be read.
    """
    signer = signer_of(csr)
    if signer not in SIGNERS:
        return NoOpinion()
    serving = signer == KUBELET_SERVING
    try:
        request = parse(csr)
    except MalformedRequestError as error:
        # A malformed request does not show which client the certificate is for.
        return Denial(Check.MALFORMED, f"unable to parse csr: {error}") if serving else NoOpinion()
    return await (_decide_serving(request, lookups, rules) if serving else _decide_client(request, lookups))


async def _decide_serving(request: SigningRequest, lookups: Lookups, rules: Rules) -> Decision:
    name = node_of(request)
    if isinstance(name, Denial):
        return name
    node = await lookups.node(name)
    return check_node(
        request.requested,
        name,
        node,
        machines=await lookups.machines_of_node(name) if node else None,
        machine_namespace=lookups.machine_namespace,
        rules=rules,
    )


async def _decide_client(request: SigningRequest, lookups: Lookups) -> Decision:
    name = machine_of(request)
    if not isinstance(name, str):
        return name
    checked = check_user(request, name, await lookups.machine(name))
    if isinstance(checked, Machine):
        node_exists = await lookups.node(checked.node_name) is not None
        return check_bootstrap(name, node_exists=node_exists)
    return checked
