"""The controller `csr-approver`: decides on CertificateSigningRequests of the target cluster.

Only the requests themselves are watched. A request is looked at when it comes or changes, until somebody has decided on
it; there is no periodic run.
"""

from collections.abc import Callable

import structlog

from agent.context import Context
from agent.csr_approver.facts import MACHINES, ClusterFacts
from agent.csr_approver.kubelet_serving import Rules
from agent.csr_approver.metrics import begin
from agent.csr_approver.reconcile import CSRS, Approver, Watched, project
from kube.cache import Change, View
from kube.controller import Controller
from kube.errors import KindNotServed, KubeError
from kube.queue import CHANGE, RESYNC

_REQUESTS = View(CSRS, project)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class CSRApproverLoop:
    def __init__(self, context: Context) -> None:
        settings = context.config.controllers.csr_approver
        self._machine_namespace = settings.machine_namespace
        self._source = context.source
        self._caches = context.target.caches
        self._requests = self._caches.acquire(_REQUESTS, needed_at_start=True)
        self._unsubscribe: Callable[[], None] = lambda: None
        approver = Approver(
            client=context.target.client,
            requests=self._requests,
            facts=ClusterFacts(
                source=context.source.client,
                target=context.target.client,
                machine_namespace=settings.machine_namespace,
            ),
            recorder=context.target_recorder,
            rules=Rules(strict=settings.strict_checks, address_types=frozenset(settings.node_address_types)),
            grace=settings.denial_grace_period,
        )
        self.controller = Controller(
            "csr-approver", approver.reconcile, kind=CSRS, concurrency=settings.concurrent_syncs
        )
        begin()

    async def start(self) -> None:
        if self._machine_namespace is not None:
            await self._look_for_machines(self._machine_namespace)
        await self._requests.synced.wait()
        self._unsubscribe = self._requests.subscribe(self._changed)

    async def close(self) -> None:
        self._unsubscribe()
        await self._caches.release(_REQUESTS)

    def kinds_changed(self, group: str) -> None:
        """Nothing depends on kinds of the target cluster."""

    def _changed(self, change: Change[Watched]) -> None:
        if change.new is not None and change.new.pending is not None:
            self.controller.queue.add(change.key, RESYNC if change.initial else CHANGE)

    async def _look_for_machines(self, namespace: str) -> None:
        """Without the Machine API nothing can be decided; that is to be known before the first Node waits."""
        try:
            await self._source.discovery.find(MACHINES.api_version, MACHINES.kind)
        except KindNotServed:
            log.error(
                "The source cluster has no Machines, so no request can be decided;"
                " correct controllers.csrApprover.machineNamespace or the source cluster",
                namespace=namespace,
                kind=f"{MACHINES.api_version} {MACHINES.kind}",
            )
        except KubeError as error:
            log.info("It is not known yet whether the source cluster has Machines", error=str(error))
