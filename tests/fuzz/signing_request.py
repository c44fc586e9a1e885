"""CertificateSigningRequests: whatever is asked, it is decided, and approved is only what the user may have.

The lowest bits of the first byte say whether the rest is DER that is to be packed or already PEM, which signer is asked,
and who asks. Only the last of the users is the one that the requests of the corpus are made for.
"""

import base64
from collections.abc import Coroutine
from typing import Any

from agent.csr_approver.client_certificates import Machine
from agent.csr_approver.decide import decide
from agent.csr_approver.decisions import Approval, Denial, NoOpinion, message
from agent.csr_approver.kubelet_serving import Rules
from agent.csr_approver.request import parse
from kube.objects import Object

_SIGNERS = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client")
_USERS = ("system:bootstrap:x", "admin", "system:node:b", "system:node:a")
_NODE = {
    "metadata": {"name": "a"},
    "status": {"addresses": [{"type": "Hostname", "address": "a"}, {"type": "InternalIP", "address": "10.0.0.1"}]},
}
_LONGEST_MESSAGE = 8_000


class _World:
    """One Node, which one Machine became."""

    machine_namespace = "machines"

    async def node(self, name: str) -> Object | None:
        return _NODE if name == "a" else None

    async def machines_of_node(self, node_name: str) -> int | None:
        return int(node_name == "a")

    async def machine(self, name: str) -> Machine | None:
        return Machine("a") if name == "m" else None


def target(data: bytes) -> None:
    if not data:
        return
    choice, body = data[0], data[1:]
    signer, user = _SIGNERS[choice >> 1 & 1], _USERS[choice >> 2 & 3]
    pem = body if choice & 1 else _packed(body)
    spec = {"request": base64.b64encode(pem).decode(), "signerName": signer, "usages": ["server auth"]}
    csr: Object = {"metadata": {"name": "c"}, "spec": {**spec, "username": user, "groups": ["system:nodes"]}}
    for strict in (False, True):
        decision = _at_once(decide(csr, _World(), Rules(strict=strict)))
        if isinstance(decision, Approval):
            _check_approved(csr, signer, user)
        if not isinstance(decision, NoOpinion):
            text = message(decision, signer=signer)
            assert not isinstance(decision, Denial) or decision.reason
            assert len(text.encode()) < _LONGEST_MESSAGE + 4 * len(body)


def _packed(der: bytes) -> bytes:
    text = base64.encodebytes(der)
    return b"-----BEGIN CERTIFICATE REQUEST-----\n" + text + b"-----END CERTIFICATE REQUEST-----\n"


def _check_approved(csr: Object, signer: str, user: str) -> None:
    """By rules of its own: the one Node gets its certificate; the one Machine is a Node already."""
    assert (signer, user) == (_SIGNERS[0], "system:node:a") or user.startswith("system:bootstrap:")
    asked = parse(csr).asked
    if user == "system:node:a":
        assert asked.common_names == (user,)
        assert asked.organizations == ("system:nodes",)
        assert asked.dns_names == {"a"}
        assert {str(address).removeprefix("::ffff:") for address in asked.ip_addresses} <= {"10.0.0.1", "a00:1"}
    else:
        # Of bootstrap tokens only gardenadm gets anything here.
        assert asked.common_names[0].startswith("gardener.cloud:gardenadm:shoot:")


def _at_once(coroutine: Coroutine[Any, Any, Any]) -> Any:
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waits for something")
