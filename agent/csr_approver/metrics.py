"""What was decided."""

from prometheus_client import Counter

csr_approver_decisions_total = Counter(
    "csr_approver_decisions_total",
    "Decisions on CertificateSigningRequests; the reason is approved, or which check failed.",
    ("signer", "reason"),
)
