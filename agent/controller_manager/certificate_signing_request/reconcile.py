"""One CertificateSigningRequest, from its arrival to the approval."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import structlog

from agent.controller_manager.certificate_signing_request import rules
from gardener.api.garden import SEEDS
from kube.access_reviews import is_allowed
from kube.clock import parse_time
from kube.errors import NotFound
from kube.names import dns_subdomain_problems
from kube.objects import Key, Object, metadata, text
from kube.paths import at
from kube.resources import CERTIFICATE_SIGNING_REQUESTS, SUBJECT_ACCESS_REVIEWS
from kube.runtime.cache import Store, without_managed_fields
from kube.runtime.client import Client
from kube.runtime.controller import Done, ReconcileError, Result, TerminalError
from kube.signing_requests import (
    APPROVED,
    KUBE_APISERVER_CLIENT,
    MalformedRequestError,
    SigningRequest,
    is_pending,
    parse,
    signer_of,
    with_decision,
)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def pending(csr: Object) -> Object | None:
    """What is kept of a request: the whole of it while there is something to decide."""
    if signer_of(csr) != KUBE_APISERVER_CLIENT or not is_pending(csr):
        return None
    return without_managed_fields(csr)


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    client: Client
    requests: Store[Object | None]
    clock: Callable[[], datetime]

    async def reconcile(self, key: Key) -> Result:
        csr = self.requests.get(key)
        if csr is None or self.clock() - parse_time(metadata(csr)["creationTimestamp"]) > rules.OLDEST:
            return Done()
        try:
            request = parse(csr)
        except MalformedRequestError as error:
            raise TerminalError(f"unable to parse csr: {error}") from error
        if reason := rules.why_not(request):
            log.info("A request for a client certificate is not that of a gardenlet", reason=reason)
            return Done()
        await self._check_right(csr)
        if await self._is_taken(request):
            return Done()
        await self._approve(csr)
        return Done()

    async def _is_taken(self, request: SigningRequest) -> bool:
        """Whether somebody else is that Seed. The API server is asked: it may have been registered a moment ago."""
        seed = rules.seed_of(request)
        if rules.is_made_for(seed, request.username) or dns_subdomain_problems(seed):
            return False
        if await self.client.find(SEEDS, seed) is None:
            return False
        log.warning(
            "The certificate of a Seed that exists is asked for with credentials that were not made for it",
            seed=seed,
            user=request.username,
            remedy=f'use a bootstrap token with the id "{rules.token_id(seed)}"',
        )
        return True

    async def _check_right(self, csr: Object) -> None:
        """Raises ReconcileError: the right may still be given."""
        answer = await self.client.create(SUBJECT_ACCESS_REVIEWS, rules.review(csr))
        if not is_allowed(answer):
            reason = text(at(answer, "status", "reason"))
            raise ReconcileError(f"recognized CSR but SubjectAccessReview was not allowed: {reason}")

    async def _approve(self, csr: Object) -> None:
        approved = with_decision(csr, APPROVED, rules.REASON, rules.MESSAGE)
        try:
            # Its resourceVersion makes sure that this is the request that was looked at, still undecided.
            written = await self.client.replace(CERTIFICATE_SIGNING_REQUESTS, approved, subresource="approval")
        except NotFound:
            return
        self.requests.observe(written)
        log.info("Approved the client certificate of a gardenlet", user=text(at(csr, "spec", "username")))
