"""What can come of a request: an approval, a denial, or no opinion."""

import json
from dataclasses import dataclass
from enum import StrEnum

from agent.csr_approver import keys
from kube.objects import Object

_SUBJECTS = {
    keys.KUBELET_SERVING: "kubelet server certificate CSR",
    keys.KUBE_APISERVER_CLIENT: "gardener-node-agent certificate CSR",
}


class Check(StrEnum):
    """Why a request was denied, as the label `reason` of the metric tells it."""

    MALFORMED = "malformed"
    USERNAME = "username"
    NO_SANS = "no-sans"
    COMMON_NAME = "common-name"
    ORGANIZATION = "organization"
    OTHER_SANS = "other-sans"
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
    """The request with the decision among its conditions; the API server adds the times."""
    approves = isinstance(decision, Approval)
    condition = {
        "type": keys.APPROVED if approves else keys.DENIED,
        "status": "True",
        "reason": keys.REQUEST_APPROVED if approves else keys.REQUEST_DENIED,
        "message": message(decision, signer=signer),
    }
    status: Object = csr.get("status") or {}
    return {**csr, "status": {**status, "conditions": [*(status.get("conditions") or []), condition]}}


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
