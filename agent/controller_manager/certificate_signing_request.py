"""The controller `csr-autoapprove`: approves the client certificates of gardenlets.

It approves a client certificate that makes a gardenlet one of the seeds, and nothing else: the signer copies the whole
request into the certificate. Nothing is ever denied, since many others use the same signer.

A bootstrap token without the name of a Seed is valid for new Seeds, without a ManagedSeed. One that names a Seed in its
groups is valid for that alone; if a gardenlet wrote it, only while this is responsible for the ManagedSeed or is the
Seed itself. A bootstrap ServiceAccount is valid for the Seed that it is named after. Admission ensures that gardenlets
write no others. The groups are those at the time of the request, so nothing depends on the id of the token.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from agent.controller_manager.context import Context
from gardener import keys
from gardener.api.garden import MANAGED_SEEDS, SEEDS, SHOOTS
from gardener.garden.domains import NAMESPACE
from gardener.garden.seeds import BOOTSTRAP_ACCOUNT_PREFIX, BootstrapToken, bootstrap_tokens, is_seed_name
from gardener.garden.shoots import seeds_of
from kube import access_reviews
from kube.access_reviews import attributes, is_allowed
from kube.clock import parse_time
from kube.errors import NotFound
from kube.objects import Key, Object, mapping, metadata, spec, text, texts
from kube.paths import at
from kube.resources import CERTIFICATE_SIGNING_REQUESTS, SUBJECT_ACCESS_REVIEWS
from kube.runtime.cache import Store, View, without_managed_fields
from kube.runtime.client import Client
from kube.runtime.controller import Done, ReconcileError, Result, TerminalError
from kube.runtime.loop import ControlLoop, enqueue
from kube.runtime.predicates import exists
from kube.signing_requests import (
    APPROVED,
    KUBE_APISERVER_CLIENT,
    Asked,
    MalformedRequestError,
    SigningRequest,
    is_pending,
    parse,
    signer_of,
    with_decision,
)

USAGES = frozenset({"client auth", "digital signature", "key encipherment"})
REASON = "AutoApproved"
MESSAGE = "Auto approving gardenlet client certificate after SubjectAccessReview."
_SERVICE_ACCOUNTS = f"system:serviceaccount:{NAMESPACE}:{BOOTSTRAP_ACCOUNT_PREFIX}"
OLDEST = timedelta(hours=1)
"""Age at which no gardenlet waits for an approval any more: by then it has sent a new request."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.certificate_signing_request, context.garden
    loop = ControlLoop("csr-autoapprove", kind=CERTIFICATE_SIGNING_REQUESTS, workers=settings.concurrent_syncs)
    requests = loop.watch(garden.caches, _REQUESTS_VIEW, enqueue(when=exists))
    return loop.reconciled_by(Reconciler(client=garden.client, requests=requests, clock=context.clock))


def pending(csr: Object) -> Object | None:
    """Return the request without managed fields for the cache; None if it needs no decision here."""
    if signer_of(csr) != KUBE_APISERVER_CLIENT or not is_pending(csr):
        return None
    return without_managed_fields(csr)


_REQUESTS_VIEW = View(CERTIFICATE_SIGNING_REQUESTS, pending)


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    client: Client
    requests: Store[Object | None]
    clock: Callable[[], datetime]

    async def reconcile(self, key: Key) -> Result:
        csr = self.requests.get(key)
        if csr is None or self.clock() - parse_time(metadata(csr)["creationTimestamp"]) > OLDEST:
            return Done()
        try:
            request = parse(csr)
        except MalformedRequestError as error:
            raise TerminalError(f"unable to parse csr: {error}") from error
        if reason := why_not(request):
            log.info("A request for a client certificate is not from a gardenlet", reason=reason)
            return Done()
        await self._check_right(csr)
        if reason := await self._refusal(request):
            remedy = f'use a bootstrap token with auth-extra-groups "{BootstrapToken(seed_of(request)).extra_groups}"'
            log.warning(
                "The credentials are not valid for the certificate of this Seed",
                seed=seed_of(request),
                user=request.username,
                reason=reason,
                remedy=remedy,
            )
            return Done()
        await self._approve(csr)
        return Done()

    async def _refusal(self, request: SigningRequest) -> str:
        """Return why these credentials are not valid for the Seed, from the API server; empty if they are."""
        seed, made_for = seed_of(request), seeds_of_credentials(request)
        if made_for is None:
            objects = ((SEEDS, ""), (MANAGED_SEEDS, NAMESPACE))
            taken = [kind.kind for kind, where in objects if await self.client.find(kind, Key(where, seed))]
            return f"a {taken[0]} of this name already exists" if taken else ""
        if len(made_for) != 1 or made_for[0].seed != seed:
            return "they were issued for another Seed"
        issuer = made_for[0].issuer
        if issuer and not await self._is_responsible(issuer, seed):
            return f'the gardenlet of Seed "{issuer}" issued them, but is not responsible for this Seed'
        return ""

    async def _is_responsible(self, issuer: str, seed: str) -> bool:
        if issuer == seed:
            return await self.client.find(SEEDS, seed) is not None
        managed_seed = await self.client.find(MANAGED_SEEDS, Key(NAMESPACE, seed))
        name = text(at(managed_seed or {}, "spec", "shoot", "name"))
        shoot = await self.client.find(SHOOTS, Key(NAMESPACE, name)) if name else None
        return shoot is not None and issuer in seeds_of(shoot)

    async def _check_right(self, csr: Object) -> None:
        """Check that the requester may have the certificate approved.

        Raises:
            ReconcileError: the right is missing; it may still be granted.
        """
        answer = await self.client.create(SUBJECT_ACCESS_REVIEWS, review(csr))
        if not is_allowed(answer):
            reason = text(at(answer, "status", "reason"))
            raise ReconcileError(f"recognized CSR but SubjectAccessReview was not allowed: {reason}")

    async def _approve(self, csr: Object) -> None:
        approved = with_decision(csr, APPROVED, REASON, MESSAGE)
        try:
            # The resourceVersion ensures that this is the request that was checked, still undecided.
            written = await self.client.replace(CERTIFICATE_SIGNING_REQUESTS, approved, subresource="approval")
        except NotFound:
            return
        self.requests.observe(written)
        log.info("Approved the client certificate of a gardenlet", user=text(at(csr, "spec", "username")))


def why_not(request: SigningRequest) -> str:
    """Reason why the request is not a gardenlet's; empty if it is."""
    requested = request.requested
    if requested.organizations != (keys.SEEDS_GROUP,):
        return f'its organization is not "{keys.SEEDS_GROUP}" alone: {_listed(requested.organizations)}'
    if names := _alternative_names(requested):
        return f"it requests more than a subject: {_listed(names)}"
    if sorted(request.usages) != sorted(USAGES):
        return f"its usages are not {_listed(sorted(USAGES))}: {_listed(request.usages)}"
    if len(requested.common_names) != 1 or not requested.common_names[0].startswith(keys.SEED_USER_PREFIX):
        return f'its common name does not begin with "{keys.SEED_USER_PREFIX}": {_listed(requested.common_names)}'
    if not is_seed_name(seed_of(request)):
        return f"its common name does not end with a DNS label: {_listed(requested.common_names)}"
    if keys.SEEDS_GROUP in request.groups and requested.common_names[0] != request.username:
        return f"a gardenlet requests the certificate of another one: {_listed(requested.common_names)}"
    return ""


def seed_of(request: SigningRequest) -> str:
    """Name of the Seed that the certificate is for."""
    return request.requested.common_names[0].removeprefix(keys.SEED_USER_PREFIX)


def seeds_of_credentials(request: SigningRequest) -> list[BootstrapToken] | None:
    """Seeds that the credentials of a request were made for; None for any new Seed."""
    user = request.username
    if keys.SEEDS_GROUP in request.groups:
        return [BootstrapToken(user.removeprefix(keys.SEED_USER_PREFIX))]
    if user.startswith(_SERVICE_ACCOUNTS):
        return [BootstrapToken(user.removeprefix(_SERVICE_ACCOUNTS))]
    return bootstrap_tokens(request.groups) or None


def review(csr: Object) -> Object:
    """SubjectAccessReview: whether the requester may have the certificate approved automatically."""
    reported = spec(csr)
    return access_reviews.review(
        attributes("create", CERTIFICATE_SIGNING_REQUESTS, subresource="seedclient"),
        user=text(reported.get("username")),
        groups=texts(reported.get("groups")),
        uid=text(reported.get("uid")),
        extra=mapping(reported.get("extra")),
    )


def _alternative_names(requested: Asked) -> list[str]:
    names = [f"DNS:{name}" for name in requested.dns_names] + [f"IP:{address}" for address in requested.ip_addresses]
    return sorted([*names, *requested.others])


def _listed(names: Iterable[str]) -> str:
    return json.dumps(list(names), ensure_ascii=False)
