"""One CertificateSigningRequest, from its arrival to the decision.

The rules read the clusters at the time of the decision, without a cache: an approval is as final as a denial, and
neither may rest on stale data. A kubelet needs a new certificate only every few weeks; watching all Nodes and Machines
all the time would cost far more.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import structlog
from prometheus_client import Counter

from agent.resource_manager.csr_approver.rules import (
    REQUEST_APPROVED,
    REQUEST_DENIED,
    SIGNERS,
    Approval,
    Check,
    Denial,
    Lookups,
    Machine,
    NoOpinion,
    Rules,
    decide,
    decided,
    message,
)
from gardener import keys
from gardener.api.kinds import MACHINES
from kube.clock import parse_time, utc_now
from kube.errors import Conflict, KubeError, NotFound
from kube.names import dns_subdomain_problems, label_value_problems
from kube.objects import Key, Object, labels, metadata
from kube.resources import CERTIFICATE_SIGNING_REQUESTS, NODES
from kube.runtime.cache import Store, without_managed_fields
from kube.runtime.client import Client, Form, Selection
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result
from kube.runtime.discovery import Discovery
from kube.runtime.events import EventRecorder
from kube.signing_requests import is_pending, signer_of

# --- reading the clusters


class ClusterLookups:
    """Reads from the clusters; every method raises KubeError on failure, also if there is no Machine API.

    Args:
        machine_namespace: namespace of Machines; None if they are not checked.
    """

    def __init__(self, *, source: Client, target: Client, machine_namespace: str | None) -> None:
        self._source = source
        self._target = target
        self.machine_namespace = machine_namespace

    async def node(self, name: str) -> Object | None:
        return await self._target.find(NODES, name) if name else None

    async def machines_of_node(self, node_name: str) -> int | None:
        if self.machine_namespace is None:
            return None
        if label_value_problems(node_name):
            return 0  # no label can hold this name, and it must not get into a selector
        return len(await self._machines(label_selector=f"{keys.MACHINE_NODE}={node_name}"))

    async def machine(self, name: str) -> Machine | None:
        if dns_subdomain_problems(name):
            return None
        if self.machine_namespace is None:
            return Machine(name)
        # Only a list distinguishes a missing Machine from a missing API.
        found = await self._machines(field_selector=f"metadata.name={name}")
        return Machine(labels(found[0]).get(keys.MACHINE_NODE) or "") if found else None

    async def _machines(self, *, label_selector: str = "", field_selector: str = "") -> list[Object]:
        selection = Selection(
            namespace=self.machine_namespace or "", label_selector=label_selector, field_selector=field_selector
        )
        return await self._source.list(MACHINES, selection, form=Form.METADATA)


async def warn_without_machines(discovery: Discovery, namespace: str | None) -> None:
    """Log a missing Machine API, without which nothing can be decided, before the first Node waits."""
    if namespace is None:
        return
    try:
        if not await discovery.is_served(MACHINES):
            log.error(
                "The source cluster does not serve Machines, which are required to decide requests; correct"
                " controllers.csrApprover.machineNamespace or the source cluster",
                namespace=namespace,
                kind=f"{MACHINES.api_version} {MACHINES.kind}",
            )
    except KubeError as error:
        log.info("It is not known yet whether the source cluster serves Machines", error=str(error))


# --- metrics


APPROVED = "approved"

csr_approver_decisions_total = Counter(
    "csr_approver_decisions_total",
    "Number of decisions on CertificateSigningRequests; reason: approved, or the failed check.",
    ("signer", "reason"),
)


def initialize_metrics() -> None:
    """Create all series at the start, so that their first increase is seen."""
    for signer in SIGNERS:
        for reason in (APPROVED, *Check):
            csr_approver_decisions_total.labels(signer, reason)


# --- a pass


_REPORTER = "csr-approver"
_LONGEST_GRACE_PAUSE = 2.0

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class KeptRequest:
    """Cached part of a CertificateSigningRequest."""

    pending: Object | None
    """The whole request while a decision is pending."""

    def is_pending(self) -> bool:
        return self.pending is not None

    @classmethod
    def of(cls, csr: Object) -> "KeptRequest":
        if signer_of(csr) not in SIGNERS or not is_pending(csr):
            return cls(None)
        return cls(without_managed_fields(csr))


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    client: Client
    """Client of the target cluster, which has the requests."""
    requests: Store[KeptRequest]
    lookups: Lookups
    recorder: EventRecorder
    rules: Rules
    grace: float
    """Seconds after creation in which a request is not denied for reasons that may change in the cluster."""
    clock: Callable[[], datetime] = utc_now

    async def reconcile(self, key: Key) -> Result:
        kept = self.requests.get(key)
        if kept is None or kept.pending is None:
            return Done()
        csr = kept.pending
        try:
            decision = await decide(csr, self.lookups, self.rules)
        except KubeError as error:
            raise ReconcileError(f"failed when checking for approval conditions: {error}") from error
        if isinstance(decision, NoOpinion):
            log.debug("Another approver handles this request for a client certificate")
            return Done()
        if isinstance(decision, Denial) and decision.may_change:
            age = (self.clock() - parse_time(metadata(csr)["creationTimestamp"])).total_seconds()
            if age < self.grace:
                log.info("Not denying a request yet", reason=decision.reason)
                return RequeueAfter(min(self.grace - age, _LONGEST_GRACE_PAUSE))
        await self._write(csr, decision)
        return Done()

    async def _write(self, csr: Object, decision: Approval | Denial) -> None:
        signer = signer_of(csr)
        try:
            # resourceVersion and uid ensure that this is the checked request, still undecided.
            written = await self.client.replace(
                CERTIFICATE_SIGNING_REQUESTS, decided(csr, decision, signer=signer), subresource="approval"
            )
        except NotFound:
            return
        except Conflict as error:
            raise ReconcileError(f"the request changed meanwhile: {error}") from error
        self.requests.observe(written)
        text = message(decision, signer=signer)
        log.info("Decided on a request", decision=text, signer=signer)
        if isinstance(decision, Approval):
            csr_approver_decisions_total.labels(signer, APPROVED).inc()
            self.recorder.event(csr, "Normal", REQUEST_APPROVED, text, reporter=_REPORTER)
        else:
            csr_approver_decisions_total.labels(signer, decision.check).inc()
            self.recorder.event(csr, "Warning", REQUEST_DENIED, text, reporter=_REPORTER)
