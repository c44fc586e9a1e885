"""One CertificateSigningRequest, from its arrival to the decision."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import structlog

from agent.resource_manager.csr_approver.metrics import APPROVED, csr_approver_decisions_total
from agent.resource_manager.csr_approver.rules import decisions
from agent.resource_manager.csr_approver.rules.decide import Lookups, decide
from agent.resource_manager.csr_approver.rules.decisions import (
    REQUEST_APPROVED,
    REQUEST_DENIED,
    SIGNERS,
    Approval,
    Denial,
    NoOpinion,
)
from agent.resource_manager.csr_approver.rules.kubelet_serving import Rules
from kube.clock import parse_time, utc_now
from kube.errors import Conflict, KubeError, NotFound
from kube.objects import Key, Object, metadata
from kube.resources import CERTIFICATE_SIGNING_REQUESTS
from kube.runtime.cache import Store, without_managed_fields
from kube.runtime.client import Client
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result
from kube.runtime.events import EventRecorder
from kube.signing_requests import is_pending, signer_of

_REPORTER = "csr-approver"
_LONGEST_GRACE_PAUSE = 2.0

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Watched:
    """What is kept of a request."""

    pending: Object | None
    """The whole of it while there is something to decide."""

    @classmethod
    def of(cls, csr: Object) -> "Watched":
        if signer_of(csr) not in SIGNERS or not is_pending(csr):
            return cls(None)
        return cls(without_managed_fields(csr))


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    client: Client
    """Of the target cluster, where requests are."""
    requests: Store[Watched]
    lookups: Lookups
    recorder: EventRecorder
    rules: Rules
    grace: float
    """Seconds of a request's life in which it is not denied for what may change in the cluster."""
    clock: Callable[[], datetime] = utc_now

    async def reconcile(self, key: Key) -> Result:
        watched = self.requests.get(key)
        if watched is None or watched.pending is None:
            return Done()
        csr = watched.pending
        try:
            decision = await decide(csr, self.lookups, self.rules)
        except KubeError as error:
            raise ReconcileError(f"failed when checking for approval conditions: {error}") from error
        if isinstance(decision, NoOpinion):
            log.debug("A request for a client certificate is none of ours")
            return Done()
        if isinstance(decision, Denial) and decision.may_change:
            age = (self.clock() - parse_time(metadata(csr)["creationTimestamp"])).total_seconds()
            if age < self.grace:
                log.info("A request is not denied yet", reason=decision.reason)
                return RequeueAfter(min(self.grace - age, _LONGEST_GRACE_PAUSE))
        await self._write(csr, decision)
        return Done()

    async def _write(self, csr: Object, decision: Approval | Denial) -> None:
        signer = signer_of(csr)
        try:
            # Its resourceVersion and uid make sure that this is the request that was looked at, still undecided.
            written = await self.client.replace(
                CERTIFICATE_SIGNING_REQUESTS, decisions.decided(csr, decision, signer=signer), subresource="approval"
            )
        except NotFound:
            return
        except Conflict as error:
            raise ReconcileError(f"the request changed meanwhile: {error}") from error
        self.requests.observe(written)
        text = decisions.message(decision, signer=signer)
        log.info("Decided on a request", decision=text, signer=signer)
        if isinstance(decision, Approval):
            csr_approver_decisions_total.labels(signer, APPROVED).inc()
            self.recorder.event(csr, "Normal", REQUEST_APPROVED, text, reporter=_REPORTER)
        else:
            csr_approver_decisions_total.labels(signer, decision.check).inc()
            self.recorder.event(csr, "Warning", REQUEST_DENIED, text, reporter=_REPORTER)
