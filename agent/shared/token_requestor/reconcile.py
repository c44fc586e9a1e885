"""One pass over a Secret: keep the present token if it is good enough, else request a new one.

    look        at the cached Secret, and check now and then that the API server accepts the token
    look again  if one is due, at the Secret in the API server: the cache may be old, or another writer faster
    request     a token for the ServiceAccount, which is created or changed if necessary
    store       in the target Secret, if there is one, and in the source Secret with the time of the renewal

The old token stays until the new one replaces it, so its users always find one. A failure in between is retried with
the token already issued: however storing fails, only one is requested.
"""

import contextlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from agent.shared.token_requestor.memory import REVIEW_SECONDS, Issued, Memories, Memory
from agent.shared.token_requestor.rules.kubeconfig import KubeconfigError
from agent.shared.token_requestor.rules.renewal import (
    Changes,
    Due,
    placed,
    removed,
    renew_after,
    renew_text,
    renew_time,
    usable_token,
)
from agent.shared.token_requestor.rules.token_spec import (
    ACCOUNT_ANNOTATIONS,
    InvalidSecretError,
    TokenSpec,
    parse_token_spec,
)
from agent.shared.token_requestor.token_secret import KUBECONFIG, Data, TokenSecret, decoded, encoded, wants_token
from agent.shared.token_requestor.tokens import Tokens
from agent.shared.token_requestor.watches import Accounts, TargetSecrets
from config.shared import TokenRequestor
from gardener import keys
from kube.clock import utc_now
from kube.errors import ApiError, Conflict, KubeError, NotReady, ServerFailure, TooManyRequests, Unauthorized
from kube.objects import Key, Object, resource_version
from kube.resources import SECRETS
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result, TerminalError
from kube.runtime.events import EventRecorder
from process.redaction import redact_text

INVALID = "TokenRequestInvalid"
FAILED = "TokenRequestFailed"
KUBECONFIG_REMOVED = "KubeconfigRemoved"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

INVALID_SECONDS = 300.0
"""Seconds until the next pass over an invalid Secret; a change of it leads to one sooner."""
_MAY_PASS = (Conflict, NotReady, ServerFailure, TooManyRequests, Unauthorized)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    now: Callable[[], float] = time.monotonic
    today: Callable[[], datetime] = utc_now
    jitter: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class _Valid:
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """Observed state, and the conclusion from it."""

    secret: TokenSecret
    spec: TokenSpec
    target: Object | None = field(repr=False)
    """Target Secret as it was read."""
    data: Data | None = field(repr=False)
    """Data of the Secret for the token; None if there is no such Secret yet."""
    state: Due | _Valid


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    store: Store[TokenSecret]
    """Secrets of the source cluster."""
    source: Client
    target: Client
    targets: TargetSecrets
    accounts: Accounts
    tokens: Tokens
    memories: Memories
    recorder: EventRecorder
    authority: Callable[[], bytes]
    """Returns the CA bundle of the target cluster, empty if unknown."""
    look_later: Callable[[Key, float], None]
    """Enqueues a Secret after a number of seconds."""
    settings: TokenRequestor
    service_account_namespace: str | None = None
    """Namespace of all ServiceAccounts; None to use the annotation of each Secret."""
    lenient: bool = False
    """Whether a ServiceAccount is created also for a Secret that can't get a token, and a present token is kept until
    it is due, without a check by the API server.
    """
    clock: Clock = field(default_factory=Clock)

    def wants_token(self, secret: TokenSecret) -> bool:
        return wants_token(secret, resource_class=self.settings.class_)

    async def reconcile(self, key: Key) -> Result:
        secret = self.store.get(key)
        if secret is None or not self.wants_token(secret):
            self.memories.forget(key)
            self.targets.follow(key, None)
            self.accounts.follow(key, None)
            return Done()
        try:
            return await self._pass(secret, self.memories.of(secret))
        except InvalidSecretError as error:
            if self.lenient:
                await self._make_account(secret)
            self._warn(secret, INVALID, str(error))
            self.look_later(key, INVALID_SECONDS)
            raise TerminalError(redact_text(str(error))) from error
        except (KubeError, ReconcileError) as error:
            if _is_refusal(error):
                self._warn(secret, FAILED, str(error))
            raise

    async def _pass(self, secret: TokenSecret, memory: Memory) -> Result:
        look = await self._look(secret, memory)
        if isinstance(look.state, Due):
            wait = memory.pace.wait(self.clock.now(), rejected=look.state.rejected)
            if wait and memory.issued is None:
                return RequeueAfter(wait)
            fresh = await self._read(secret.key)
            if fresh is None or not self.wants_token(fresh) or fresh.uid != secret.uid:
                return Done()  # the watch will report the change
            if fresh.version != secret.version:
                look = await self._look(fresh, memory)
        match look.state:
            case _Valid(until=until):
                return self._again_at(until)
            case Due() as due:
                return await self._renew(look, due, memory)

    # --- looking

    async def _look(self, secret: TokenSecret, memory: Memory) -> _Look:
        spec = parse_token_spec(secret.annotations, namespace=self.service_account_namespace)
        self.accounts.follow(secret.key, spec.account)
        target: Object | None = None
        data: Data | None = secret.data
        if spec.target is None:
            self.targets.follow(secret.key, None)
        else:
            if spec.target == secret.key and self.source is self.target:
                raise InvalidSecretError(
                    "the target Secret is this Secret itself; remove the annotations with its name"
                )
            self.targets.follow(secret.key, spec.target)  # before it is read, so that no change is missed
            target = await self._read_target(spec.target)
            self.targets.left(spec.target, resource_version(target or {}))
            data = decoded(target.get("data") or {}) if target is not None else None
        authority = self.authority() if spec.wants_authority else b""
        token = usable_token(data, spec, renew_timestamp=secret.renew_timestamp, authority=authority)
        state: Due | _Valid
        if isinstance(token, Due):
            state = token
        elif self.accounts.has_ended(secret.key):
            state = Due("its ServiceAccount was deleted")
        else:
            state = await self._check(token, secret.renew_timestamp, memory)
        return _Look(secret=secret, spec=spec, target=target, data=data, state=state)

    async def _check(self, token: bytes, renew_timestamp: str, memory: Memory) -> Due | _Valid:
        if self.lenient and renew_time(renew_timestamp) is None:
            name = keys.TOKEN_RENEW_TIMESTAMP
            raise InvalidSecretError(f'annotation "{name}" is not a valid time; remove it to renew the token')
        now = self.clock.now()
        renew_at = memory.renew_at(renew_timestamp, now=now, today=self.clock.today())
        if now >= renew_at:
            return Due("it is due")
        if self.lenient:
            return _Valid(renew_at)
        review_at = memory.review_at(token)
        if now >= review_at:
            if not await self.tokens.is_accepted(token):
                return Due("the API server does not accept it", rejected=True)
            review_at = self._next_review()
            memory.set_review_at(token, review_at)
        return _Valid(min(renew_at, review_at))

    def _next_review(self) -> float:
        return self.clock.now() + REVIEW_SECONDS * (0.9 + 0.2 * self.clock.jitter())

    def _again_at(self, moment: float) -> Result:
        return RequeueAfter(max(moment - self.clock.now(), 0.0))

    async def _read(self, key: Key) -> TokenSecret | None:
        try:
            secret = await self.source.find(SECRETS, key)
        except KubeError as error:
            raise ReconcileError(f"error retrieving object from store: {redact_text(str(error))}") from error
        return None if secret is None else TokenSecret.of(secret)

    async def _read_target(self, key: Key) -> Object | None:
        try:
            return await self.target.find(SECRETS, key)
        except KubeError as error:
            raise ReconcileError(f"could not read target secret: {redact_text(str(error))}") from error

    # --- renewing

    async def _renew(self, look: _Look, due: Due, memory: Memory) -> Result:
        spec, holder = look.spec, self._holder(look)
        # If the CA is wanted but unknown, the present one may be right.
        authority = (self.authority() or None) if spec.wants_authority else b""
        try:
            placed(holder, token="", authority=authority)  # fail before any request
        except KubeconfigError as error:
            raise InvalidSecretError(f"could not update Secret with token: {error}") from error
        now = self.clock.now()
        is_gone = self.accounts.has_ended(look.secret.key)
        if memory.issued is None or is_gone or not memory.issued.fits(spec, now):
            memory.issued = None
            if wait := memory.pace.wait(now, rejected=due.rejected):
                return RequeueAfter(wait)
            memory.issued = await self._request(spec, due, memory)
            self.accounts.begins(look.secret.key)
        issued = memory.issued
        try:
            await self._store_token(look, placed(holder, token=issued.token, authority=authority), issued, memory)
        except KubeError as error:
            raise ReconcileError(f"could not update Secret with token: {redact_text(str(error))}") from error
        await self.tokens.try_audiences(issued.token)
        return self._again_at(min(issued.renew_at, memory.review_at(issued.token.encode())))

    def _holder(self, look: _Look) -> Data:
        """Data that the token is put into."""
        data = look.data or {}
        if look.spec.target is None or KUBECONFIG not in look.secret.data or KUBECONFIG in data:
            return data
        if self.settings.restore_target_kubeconfig:
            return {**data, KUBECONFIG: look.secret.data[KUBECONFIG]}
        self._warn(
            look.secret,
            KUBECONFIG_REMOVED,
            f"the kubeconfig is removed from this Secret, and the target Secret {look.spec.target} gets only a token; "
            "add a kubeconfig to the target Secret, or set controllers.tokenRequestor.restoreTargetKubeconfig",
        )
        return data

    async def _make_account(self, secret: TokenSecret) -> None:
        annotated = {name: value for name, value in secret.annotations.items() if name in ACCOUNT_ANNOTATIONS}
        with contextlib.suppress(InvalidSecretError):
            await self.tokens.ensure_account(parse_token_spec(annotated, namespace=self.service_account_namespace))

    async def _request(self, spec: TokenSpec, due: Due, memory: Memory) -> Issued:
        await self.tokens.ensure_account(spec)
        log.info("Requesting a token", reason=due.reason, account=spec.account)
        memory.pace.note(self.clock.now())
        token = await self.tokens.request(spec, today=self.clock.today())
        memory.set_review_at(token.text.encode(), self._next_review())
        after = renew_after(token.lifetime, jitter=self.clock.jitter())
        return Issued(spec=spec, token=token.text, renew_at=self.clock.now() + after.total_seconds())

    # --- storing

    async def _store_token(self, look: _Look, changes: Changes, issued: Issued, memory: Memory) -> None:
        if look.spec.target is not None:
            await self._write_target(look.spec.target, look.target, changes)
            changes = removed(look.secret.data)
        remaining = timedelta(seconds=max(issued.renew_at - self.clock.now(), 0.0))
        timestamp = renew_text(self.clock.today(), remaining)
        written = await self._patch_source(look.secret, changes, timestamp)
        memory.issued, memory.written = None, TokenSecret.of(written)
        memory.set_renew_at(timestamp, issued.renew_at)
        self.store.observe(written)

    async def _write_target(self, key: Key, live: Object | None, changes: Changes) -> None:
        if live is not None and not changes:
            return
        data = {**((live or {}).get("data") or {})}
        for name, value in changes.items():
            if value is None:
                data.pop(name, None)
            else:
                data[name] = encoded(value)
        if live is None:
            meta = {"namespace": key.namespace, "name": key.name}
            wanted: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}
            written = await self.target.create(SECRETS, wanted)
        else:
            written = await self.target.replace(SECRETS, {**live, "data": data})
        self.targets.left(key, resource_version(written))

    async def _patch_source(self, secret: TokenSecret, changes: Changes, timestamp: str) -> Object:
        """Patch with the version that was read: other writers change the same kubeconfig."""
        body: Object = {
            "metadata": {"resourceVersion": str(secret.version), "annotations": {keys.TOKEN_RENEW_TIMESTAMP: timestamp}}
        }
        if changes:
            body["data"] = {name: None if value is None else encoded(value) for name, value in changes.items()}
        return await self.source.patch(SECRETS, secret.key, body)

    def _warn(self, secret: TokenSecret, reason: str, message: str) -> None:
        self.recorder.event(secret.reference(), "Warning", reason, redact_text(message), reporter="token-requestor")


def _is_refusal(error: Exception) -> bool:
    """Whether the API server refused in a way that users have to correct."""
    cause = error.__cause__ or error
    return isinstance(cause, ApiError) and not isinstance(cause, _MAY_PASS)
