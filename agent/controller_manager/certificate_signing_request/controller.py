"""The controller `csr-autoapprove`: approves the client certificates of gardenlets. Others are left alone."""

from agent.controller_manager.certificate_signing_request.reconcile import Reconciler, pending
from agent.controller_manager.context import Context
from kube.resources import CERTIFICATE_SIGNING_REQUESTS
from kube.runtime.cache import View
from kube.runtime.loop import ControlLoop, enqueue

_REQUESTS_VIEW = View(CERTIFICATE_SIGNING_REQUESTS, pending)


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.certificate_signing_request, context.garden
    loop = ControlLoop("csr-autoapprove", kind=CERTIFICATE_SIGNING_REQUESTS, workers=settings.concurrent_syncs)
    requests = loop.watch(garden.caches, _REQUESTS_VIEW, enqueue(when=lambda change: bool(change.new)))
    return loop.reconciled_by(Reconciler(client=garden.client, requests=requests, clock=context.clock))
