"""What can come of a request: an approval, a denial, or no opinion."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from kube.objects import Object
from kube.signing_requests import APPROVED, DENIED, KUBE_APISERVER_CLIENT, KUBELET_SERVING, with_decision

SIGNERS = (KUBELET_SERVING, KUBE_APISERVER_CLIENT)
REQUEST_APPROVED = "RequestApproved"
REQUEST_DENIED = "RequestDenied"

_LISTED = 10
_SUBJECTS = {
    KUBELET_SERVING: "kubelet server certificate CSR",
    KUBE_APISERVER_CLIENT: "gardener-node-agent certificate CSR",
}


class Check(StrEnum):
    """Why a request was denied, as in the label `reason` of the metric."""

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
    """For people."""
    may_change: bool = False
    """Whether the cluster is to blame, and not the request: it may look different in a moment."""


@dataclass(frozen=True, slots=True)
class NoOpinion:
    """The request is somebody else's business."""


Decision = Approval | Denial | NoOpinion


def message(decision: Approval | Denial, *, signer: str) -> str:
    subject = _SUBJECTS[signer]
    match decision:
        case Approval():
            return f"Approving {subject} (all checks passed)"
        case Denial(reason=reason):
            return f"Denying {subject} ({reason})"


def decided(csr: Object, decision: Approval | Denial, *, signer: str) -> Object:
    """The request with the decision among its conditions."""
    said = message(decision, signer=signer)
    if isinstance(decision, Approval):
        return with_decision(csr, APPROVED, REQUEST_APPROVED, said)
    return with_decision(csr, DENIED, REQUEST_DENIED, said)


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def listed(names: Iterable[str]) -> str:
    """In a stable order; a request may ask for any number of names."""
    ordered = sorted(names)
    more = [f"and {len(ordered) - _LISTED} more"] if len(ordered) > _LISTED else []
    return f"[{' '.join([*ordered[:_LISTED], *more])}]"
