"""The controller `csr-approver`: decides on CertificateSigningRequests of the target cluster.

Only the requests themselves are watched. A request is reconciled when it is created or changed, until it is decided;
there is no periodic run.
"""

from functools import partial

from agent.resource_manager.context import Context
from agent.resource_manager.csr_approver.reconcile import (
    ClusterLookups,
    KeptRequest,
    Reconciler,
    initialize_metrics,
    warn_without_machines,
)
from agent.resource_manager.csr_approver.rules import Rules
from kube.resources import CERTIFICATE_SIGNING_REQUESTS
from kube.runtime.cache import View
from kube.runtime.loop import ControlLoop, enqueue
from kube.runtime.predicates import now

_REQUESTS = View(CERTIFICATE_SIGNING_REQUESTS, KeptRequest.of)


def declare(context: Context) -> ControlLoop:
    settings, target = context.config.controllers.csr_approver, context.target
    initialize_metrics()
    loop = ControlLoop("csr-approver", kind=CERTIFICATE_SIGNING_REQUESTS, workers=settings.concurrent_syncs)
    requests = loop.watch(target.caches, _REQUESTS, enqueue(when=now(KeptRequest.is_pending)))
    lookups = ClusterLookups(
        source=context.source.client, target=target.client, machine_namespace=settings.machine_namespace
    )
    loop.on_start(partial(warn_without_machines, context.source.discovery, settings.machine_namespace))
    return loop.reconciled_by(
        Reconciler(
            client=target.client,
            requests=requests,
            lookups=lookups,
            recorder=context.target_recorder,
            rules=Rules(address_types=frozenset(settings.node_address_types)),
            grace=settings.denial_grace_period,
            clock=target.clock,
        )
    )
