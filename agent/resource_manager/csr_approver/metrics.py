"""What was decided."""

from prometheus_client import Counter

from agent.resource_manager.csr_approver.rules.decisions import SIGNERS, Check

APPROVED = "approved"

csr_approver_decisions_total = Counter(
    "csr_approver_decisions_total",
    "Decisions on CertificateSigningRequests; the reason is approved, or which check failed.",
    ("signer", "reason"),
)


def initialize() -> None:
    """All series exist from the start, so that their first increase is seen."""
    for signer in SIGNERS:
        for reason in (APPROVED, *Check):
            csr_approver_decisions_total.labels(signer, reason)
