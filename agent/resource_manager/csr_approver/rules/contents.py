"""What a certificate of each kind has in it, and that a request asks for nothing else.

The signer puts into the certificate what was asked for: each organization is a group, and each usage and each further
name is something that its holder can do. So what is not known to belong there is refused, whatever it is.
"""

from dataclasses import dataclass

from agent.resource_manager.csr_approver.rules.decisions import Check, Denial, listed, quoted
from gardener import keys
from kube.signing_requests import SigningRequest

NODE_USER_PREFIX = "system:node:"
NODES_GROUP = "system:nodes"

DIGITAL_SIGNATURE = "digital signature"
KEY_ENCIPHERMENT = "key encipherment"
"""Needed with RSA keys only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Beside the common name."""

    organization: str
    organization_differs: str
    usage: str
    has_alternative_names: bool = False


KUBELET_SERVING = Contents(
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
    """What is wrong in the request itself; common names and values of alternative names are looked at elsewhere."""
    asked = request.asked
    if asked.organizations != (contents.organization,):
        only = f'only "{contents.organization}" is allowed, found {listed(map(quoted, asked.organizations))}'
        return Denial(Check.ORGANIZATION, f"{contents.organization_differs}: {only}")
    others = set(asked.others)
    if not contents.has_alternative_names:
        others |= {f"DNS:{name}" for name in asked.dns_names} | {f"IP:{address}" for address in asked.ip_addresses}
    if others:
        return Denial(Check.OTHERS, f"CSR asks for what such a certificate does not have: {listed(others)}")
    if set(request.usages) - {KEY_ENCIPHERMENT} != {DIGITAL_SIGNATURE, contents.usage}:
        wanted = f'"{DIGITAL_SIGNATURE}", "{contents.usage}" and optionally "{KEY_ENCIPHERMENT}"'
        found = listed(map(quoted, request.usages))
        return Denial(Check.USAGES, f"usages of CSR have to be {wanted}, found {found}")
    return None
