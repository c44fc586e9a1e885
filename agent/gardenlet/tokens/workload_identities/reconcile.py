"""One reconciliation: due tokens are renewed, in the order of their expiry.

A pass of one Secret serves the most urgent one. Usually that is the Secret itself. After an outage of the garden many
are due; they are served by expiry, regardless of the order of passes. While the garden can't issue tokens, one request
is sent every few seconds, for the most urgent one.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from agent.gardenlet.tokens.workload_identities.identity_secret import (
    TOKEN,
    IdentitySecret,
    InvalidSecret,
    encoded,
    renew_after,
)
from agent.gardenlet.tokens.workload_identities.urgency import Due
from gardenapi.api import GardenApi, Token
from gardener import keys
from kube.clock import format_time
from kube.errors import KubeError, ServerFailure, TooManyRequests, Unreachable
from kube.objects import Key, Object
from kube.resources import SECRETS
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result, TerminalError
from process.redaction import redact_text

AWAY_SECONDS = 5.0
"""Seconds between two requests to a garden that issues no tokens."""
_AGAIN_SECONDS = 10.0
"""Seconds until the next attempt for a Secret whose token failed in the pass of another one."""
_MOST = 100
"""Maximum number of tokens in one pass."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class _Away(Exception):
    """The garden currently issues no tokens for any Secret."""


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    """Reconciler of Secrets.

    Args:
        secrets: of the seed.
        seed: client that writes them.
        lifetime: requested for tokens.
        look_later: enqueues a Secret after this many seconds.
        today: the time of the garden.
    """

    secrets: Store[IdentitySecret]
    seed: Client
    garden: GardenApi
    lifetime: timedelta
    look_later: Callable[[Key, float], None]
    today: Callable[[], datetime]
    jitter: Callable[[], float] = random.random
    _due: Due = field(default_factory=Due, init=False)
    _away_until: datetime | None = field(default=None, init=False)

    async def reconcile(self, key: Key) -> Result:
        secret = self.secrets.get(key)
        if secret is None or not secret.wants_token:
            self._due.discard(key)
            return Done()
        try:
            secret.wanted()
            wait = self._wait(secret)
        except InvalidSecret as error:
            self._due.discard(key)
            raise TerminalError(redact_text(str(error))) from error
        if wait > 0:
            self._due.discard(key)
            return RequeueAfter(wait)
        self._due.add(key, secret.expires or 0.0)
        if self._away_until is not None and (pause := (self._away_until - self.today()).total_seconds()) > 0:
            return RequeueAfter(min(pause, AWAY_SECONDS))
        return await self._serve(key)

    def _wait(self, secret: IdentitySecret) -> float:
        """Return the seconds until its token is due.

        Raises:
            InvalidSecret: an annotation is invalid.
        """
        renew_at = secret.renew_at()
        return 0.0 if renew_at is None else (renew_at - self.today()).total_seconds()

    async def _serve(self, own: Key) -> Result:
        """Renew all due tokens, the most urgent first; the result is for the Secret of this pass."""
        result: Result = Done()
        failure: Exception | None = None
        for _ in range(_MOST):
            if (key := self._due.take()) is None:
                break
            try:
                after = await self._renew(key)
            except _Away as error:
                raise ReconcileError(f"could not request a token for Secret {key}: {error}") from error
            except KubeError as error:
                if key == own:
                    failure = error
                else:
                    log.warning("A Secret got no token", secret=str(key), error=redact_text(str(error)))
                    self.look_later(key, _AGAIN_SECONDS)
            else:
                if key == own:
                    result = RequeueAfter(after)
                else:
                    self.look_later(key, after)
        if failure is not None:
            raise ReconcileError(redact_text(str(failure))) from failure
        return RequeueAfter(0.0) if own in self._due else result

    async def _renew(self, key: Key) -> float:
        """Renew a token, and return the seconds until the next renewal.

        Raises:
            _Away: the garden issues no tokens.
        """
        secret = self.secrets.get(key)
        if secret is None:
            return 0.0
        if (wait := self._wait(secret)) > 0:
            return wait  # another pass has renewed it
        token = await self._request(secret)
        after = renew_after(token.lifetime, jitter=self.jitter())
        timestamp = format_time(self.today() + after)
        body: Object = {
            # Fails if annotations have changed meanwhile, since the token may be for another identity.
            "metadata": {
                "resourceVersion": str(secret.version),
                "annotations": {keys.WORKLOAD_IDENTITY_RENEW_TIMESTAMP: timestamp},
            },
            "data": {TOKEN: encoded(token.text)},
        }
        written = await self.seed.patch_if_exists(SECRETS, key, body)
        if written is None:
            return 0.0
        self.secrets.observe(written)
        return after.total_seconds()

    async def _request(self, secret: IdentitySecret) -> Token:
        wanted, now = secret.wanted(), self.today()
        log.info("Requesting a token", identity=str(wanted.identity), secret=str(secret.key))
        try:
            token = await self.garden.token(wanted.identity, lifetime=self.lifetime, now=now, context=wanted.context)
        except (Unreachable, ServerFailure, TooManyRequests) as error:
            self._away_until = self.today() + timedelta(seconds=AWAY_SECONDS)
            self._due.add(secret.key, secret.expires or 0.0)
            raise _Away(redact_text(str(error))) from error
        self._away_until = None
        return token
