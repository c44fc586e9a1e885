"""Decisions are counted from the first one on."""

from prometheus_client import REGISTRY

from agent.resource_manager.csr_approver.reconcile import initialize_metrics
from agent.resource_manager.csr_approver.rules import SIGNERS, Check


def test_series_of_all_decisions_exist_before_the_first() -> None:
    initialize_metrics()
    for signer in SIGNERS:
        for reason in ("approved", *Check):
            labels = {"signer": signer, "reason": str(reason)}
            assert REGISTRY.get_sample_value("csr_approver_decisions_total", labels) is not None, labels
