"""One CertificateSigningRequest, from its arrival to the decision."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from agent.csr_approver import decisions, keys
from agent.csr_approver.decide import Facts, decide
from agent.csr_approver.decisions import Approval, Denial, NoOpinion
from agent.csr_approver.kubelet_serving import Rules
from agent.csr_approver.metrics import APPROVED, csr_approver_decisions_total
from agent.csr_approver.request import is_pending, signer_of
from kube.cache import Store
from kube.client import Client
from kube.controller import Done, ReconcileError, RequeueAfter, Result
from kube.errors import Conflict, KubeError, NotFound
from kube.events import EventRecorder
from kube.objects import Key, Object, metadata, parse_time
from kube.resources import Resource

CSRS = Resource(
    "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False
)

_REPORTER = "csr-approver"
_LONGEST_GRACE_PAUSE = 2.0

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Watched:
    """What is kept of a request."""

    pending: Object | None
    """The whole of it while there is something to decide."""


def project(csr: Object) -> Watched:
    if signer_of(csr) not in keys.SIGNERS or not is_pending(csr):
        return Watched(None)
    metadata(csr).pop("managedFields", None)
    return Watched(csr)


class Approver:
    """Args:
    client: of the target cluster, where requests are.
    grace: seconds of a request's life in which it is not denied for what may change in the cluster.
    """

    def __init__(
        self,
        *,
        client: Client,
        requests: Store[Watched],
        facts: Facts,
        recorder: EventRecorder,
        rules: Rules,
        grace: float,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._requests = requests
        self._facts = facts
        self._recorder = recorder
        self._rules = rules
        self._grace = grace
        self._now = now

    async def reconcile(self, key: Key) -> Result:
        watched = self._requests.get(key)
        if watched is None or watched.pending is None:
            return Done()
        csr = watched.pending
        try:
            decision = await decide(csr, self._facts, self._rules)
        except KubeError as error:
            raise ReconcileError(f"failed when checking for approval conditions: {error}") from error
        if isinstance(decision, NoOpinion):
            log.debug("A request for a client certificate is none of ours")
            return Done()
        if isinstance(decision, Denial) and decision.may_change and (left := self._grace_left(csr)) > 0:
            log.info("A request is not denied yet", reason=decision.reason)
            return RequeueAfter(min(left, _LONGEST_GRACE_PAUSE))
        await self._write(csr, decision)
        return Done()

    def _grace_left(self, csr: Object) -> float:
        age = (self._now() - parse_time(metadata(csr)["creationTimestamp"])).total_seconds()
        return self._grace - age

    # --- telling

    async def _write(self, csr: Object, decision: Approval | Denial) -> None:
        signer = signer_of(csr)
        try:
            # Its resourceVersion and uid make sure that this is the request that was looked at, still undecided.
            written = await self._client.replace(
                CSRS, decisions.decided(csr, decision, signer=signer), subresource="approval"
            )
        except NotFound:
            return
        except Conflict as error:
            raise ReconcileError(f"the request changed meanwhile: {error}") from error
        self._requests.observe(written)
        approves = isinstance(decision, Approval)
        check = APPROVED if isinstance(decision, Approval) else str(decision.check)
        csr_approver_decisions_total.labels(signer, check).inc()
        text = decisions.message(decision, signer=signer)
        log.info("Decided on a request", decision=text, signer=signer)
        self._recorder.event(
            csr,
            "Normal" if approves else "Warning",
            keys.REQUEST_APPROVED if approves else keys.REQUEST_DENIED,
            text,
            reporter=_REPORTER,
        )
