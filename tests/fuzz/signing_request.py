"""CertificateSigningRequests: whatever is requested, it is decided, and approved is only what the user may have.

The first byte states, from its lowest bit on, whether the rest is DER that is to be packed or already PEM, which signer is
requested, who requests (three bits), and for which usages (three bits). `seeds` makes the requests that are right, and each
of them with one thing too many.
"""

import base64
from collections.abc import Iterator
from typing import Any

from cryptography import x509
from cryptography.x509.oid import NameOID

from agent.resource_manager.csr_approver.rules import Approval, Denial, NoOpinion, Rules, decide, message
from kit.signing import oracle
from kit.signing.cluster import KnownObjects
from kit.signing.requests import node_object, signing_request
from kit.webhooks.mutating import at_once
from kube.objects import Object

_AGENT = "gardener.cloud:node-agent:machine:"
_SIGNERS = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client")
_USERS = (
    *("system:bootstrap:x", "admin", "system:node:b", "system:node:a"),
    *(f"{_AGENT}m", f"{_AGENT}new", "gardener.cloud:gardenadm:shoot:s", ""),
)
_USAGES: tuple[list[str], ...] = (
    *(["digital signature", "server auth"], ["digital signature", "client auth"]),
    *(["key encipherment", "digital signature", "client auth"], ["client auth"], ["digital signature"]),
    *(["digital signature", "client auth", "server auth"], ["digital signature", "client auth", "cert sign"], []),
)
_MACHINES = {"m": "a", "new": ""}
_KNOWN = KnownObjects({"a": node_object("a", Hostname="a", InternalIP="10.0.0.1")}, _MACHINES)
"""One Node, which one Machine became; another Machine has not become one yet."""
_CLUSTER = oracle.ClusterNodes(nodes={"a": {("DNS", "a"), ("IP", "10.0.0.1")}}, machines=_MACHINES)
_LONGEST_MESSAGE = 8_000


def target(data: bytes) -> None:
    if data:
        is_approved(data)


def is_approved(data: bytes) -> bool:
    """Raises AssertionError if it is, and should not be."""
    choice, body = data[0], data[1:]
    signer, user, usages = _SIGNERS[choice >> 1 & 1], _USERS[choice >> 2 & 7], _USAGES[choice >> 5]
    pem = body if choice & 1 else _packed(body)
    spec = {"request": base64.b64encode(pem).decode(), "signerName": signer, "usages": usages}
    csr: Object = {"metadata": {"name": "c"}, "spec": {**spec, "username": user, "groups": ["system:nodes"]}}
    decision = at_once(decide(csr, _KNOWN, Rules()))
    if isinstance(decision, Approval):
        items = oracle.items(pem)
        requested = oracle.Request(user=user, signer=signer, usages=usages, items=items)
        assert oracle.may_be_approved(requested, _CLUSTER), requested
    if not isinstance(decision, NoOpinion):
        text = message(decision, signer=signer)
        assert not isinstance(decision, Denial) or decision.reason
        assert len(text.encode()) < _LONGEST_MESSAGE + 4 * len(body)
    return isinstance(decision, Approval)


def seeds() -> Iterator[bytes]:
    good: list[tuple[int, int, int, dict[str, Any]]] = [
        (
            0,
            3,
            0,
            {"common_names": "system:node:a", "organizations": ["system:nodes"], "dns": "a", "ips": ["10.0.0.1"]},
        ),
        (1, 0, 1, {"common_names": f"{_AGENT}new", "organizations": ["gardener.cloud:node-agents"]}),
        (1, 4, 2, {"common_names": f"{_AGENT}m", "organizations": ["gardener.cloud:node-agents"]}),
        (1, 0, 1, {"common_names": f"{_USERS[6]}", "organizations": ["gardener.cloud:system:shoots"]}),
    ]
    for signer, user, usages, requested in good:
        choice = bytes([1 | signer << 1 | user << 2 | usages << 5])
        yield choice + signing_request(**requested)
        for group in ("acme:oncall-admins", "system:masters"):
            yield choice + signing_request(**{**requested, "organizations": [*requested["organizations"], group]})
            yield choice + signing_request(**{**requested, "organizations": [group, *requested["organizations"]]})
        for kind in (NameOID.ORGANIZATIONAL_UNIT_NAME, NameOID.SERIAL_NUMBER, NameOID.USER_ID):
            yield choice + signing_request(**requested, subject=[x509.NameAttribute(kind, "x")])
        for name in (x509.DNSName("b"), x509.RFC822Name("a@b"), x509.UniformResourceIdentifier("spiffe://a/b")):
            yield choice + signing_request(**requested, others=[name])
        yield choice + signing_request(**requested, extensions=[x509.BasicConstraints(ca=True, path_length=None)])
        for other in range(len(_USAGES)):
            yield bytes([1 | signer << 1 | user << 2 | other << 5]) + signing_request(**requested)


def _packed(der: bytes) -> bytes:
    text = base64.encodebytes(der)
    return b"-----BEGIN CERTIFICATE REQUEST-----\n" + text + b"-----END CERTIFICATE REQUEST-----\n"
