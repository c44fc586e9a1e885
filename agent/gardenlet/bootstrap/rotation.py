"""Access to the garden while the process runs.

    the certificate     is renewed in time, or when the Secret with the kubeconfig is annotated with `renew`
    the kubeconfig      is followed: another one in the Secret is used at once
    the CA              that the garden publishes for its API server, or the configured one, is adopted
    the Seed            reports in a condition how long the certificate is valid, once there is something to report

The connection is replaced in place: watches continue, nothing is restarted. Each attempt to renew has a quarter of an
hour, and the next one starts after that, regardless of its result. An expired certificate is no reason to exit: this
process keeps looking for other credentials.
"""

import asyncio
import hashlib
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import structlog

from agent.gardenlet.bootstrap.access import LOOK_SECONDS, NOT_FITTING, GardenAccess
from agent.gardenlet.bootstrap.bootstrap_credentials import finish
from agent.gardenlet.bootstrap.rules.certificate import Life, failure_text, renewal, said_of, wake_up
from agent.gardenlet.bootstrap.rules.kubeconfig import authority_of, configured_authority
from agent.gardenlet.bootstrap.signing import ATTEMPT_SECONDS, NotSigned, certificate_for
from agent.gardenlet.bootstrap.stored import Kubeconfig, Overtaken, content_of, of_content
from agent.gardenlet.bootstrap.trust import NotVerified
from gardener import keys
from gardener.api.garden import SEEDS
from gardener.conditions import GARDENLET_CERTIFICATE
from gardener.garden.seeds import namespace_of
from kube.clock import format_time
from kube.conditions import Condition, conditions_of, with_conditions
from kube.differences import merge_patch
from kube.errors import Conflict, Forbidden, KubeError, NotFound
from kube.objects import Key, Object, annotations, condition, key, mapping, metadata, text
from kube.resources import CONFIG_MAPS, SECRETS
from kube.runtime.cache import Change, View
from kube.runtime.client import Client
from kube.runtime.kubeconfig import ConfigurationError
from kube.signing_requests import holder_of
from process.runner import StartError, cancelled

GARDEN = "garden"
"""Name of the connection."""
REASON_FAILED = "GardenletCertificateRotationFailed"
REASON_NOT_FITTING = "GardenAuthorityNotFitting"
AUTHORITY_SECONDS = 600.0
_LONGEST_PAUSE = 60.0
"""Maximum pause in seconds, since the clock may be corrected meanwhile."""
_PUBLISHED, _PUBLISHED_KEY = "kube-root-ca.crt", "ca.crt"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class Seen(NamedTuple):
    """Observed fields of the Secret."""

    is_to_renew: bool
    digest: bytes
    """Digest of the kubeconfig in it."""


def seen(secret: Object) -> Seen:
    return Seen(_is_annotated(secret), hashlib.sha256(content_of(secret)).digest())


def _is_annotated(secret: Object) -> bool:
    return annotations(secret).get(keys.OPERATION) == keys.OPERATION_RENEW


@dataclass(eq=False, slots=True, kw_only=True)
class Rotation:
    """A component in the sense of `process.runner`.

    Args:
        kubeconfig: the one in use.
        seed: as registered.
    """

    access: GardenAccess
    kubeconfig: Kubeconfig
    seed: Object
    _is_to_renew: bool = False
    _is_changed: bool = False
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _view: View[Seen] | None = None
    _running: asyncio.Task[None] | None = None
    _attempt: asyncio.Task[None] | None = None
    _next_attempt: float = 0.0
    _failure: str = ""
    _next_authority: float = 0.0
    _refused_to: Kubeconfig | None = None
    """Kubeconfig with which the published CA may not be read."""
    _has_said: bool = False
    """Whether the Seed has the condition, or needs it."""
    _reported: Condition | None = None

    @property
    def name(self) -> str:
        return "credentials for the garden"

    async def start(self) -> None:
        if (where := self.access.settings.kubeconfig_secret) is None:
            return
        self._has_said = condition(self.seed, GARDENLET_CERTIFICATE) is not None
        selector = f"metadata.name={where.name}"
        self._view = View(SECRETS, seen, namespace=where.namespace, field_selector=selector)
        self.access.seed.caches.acquire(self._view).subscribe(self._changed)
        self._running = asyncio.create_task(self._run(), name=self.name)

    async def wait(self) -> None:
        """Wait until the rotation ends.

        Raises:
            StartError: the kubeconfig names another server, which needs a restart.
        """
        if self._running is not None:
            await asyncio.wait((self._running,))
            if not self._running.cancelled():
                self._running.result()

    async def stop(self) -> None:
        await cancelled(*(each for each in (self._running, self._attempt) if each is not None))
        if self._view is not None:
            await self.access.seed.caches.release(self._view)

    def _changed(self, change: Change[Seen]) -> None:
        if change.new is not None and change.new != change.old:
            self._is_to_renew, self._is_changed = change.new.is_to_renew, True
            self._news.set()

    # --- the loop

    async def _run(self) -> None:
        while True:
            self._news.clear()
            seconds = LOOK_SECONDS
            try:
                await self._pass()
                seconds = self._seconds()
            except StartError:
                raise
            except Exception as error:  # noqa: BLE001 - the process can run for long despite any failure
                log.warning("Cannot check the credentials for the garden; trying again", error=error)
            await self._pause(seconds)

    async def _pass(self) -> None:
        if self._attempt is not None and self._attempt.done():
            ended, self._attempt = self._attempt, None
            ended.result()
        if self._is_changed:
            self._is_changed = False
            await self._follow(content_of(await self._secret()))
        life = self.kubeconfig.life
        if life is not None and life.is_over(self._now()):
            await self._replace_expired()
            return
        if life is not None and self._is_due(life):
            self._next_attempt = self._clock() + ATTEMPT_SECONDS
            self._attempt = asyncio.create_task(self._renew(life), name="renew the certificate for the garden")
            self._attempt.add_done_callback(lambda _: self._news.set())
        if self._clock() >= self._next_authority:
            await self._look_at_authority()
            self._next_authority = self._clock() + AUTHORITY_SECONDS
        if life is not None:
            await self._say(life)

    def _is_due(self, life: Life) -> bool:
        if self._attempt is not None or self._clock() < self._next_attempt:
            return False
        return self._is_to_renew or self._now() >= self._deadline(life)

    def _deadline(self, life: Life) -> datetime:
        validity = self.access.settings.kubeconfig_validity
        return renewal(
            life,
            least=validity.auto_rotation_jitter_percentage_min,
            most=validity.auto_rotation_jitter_percentage_max,
        )

    def _seconds(self) -> float:
        """Seconds until the next pass, unless an event comes first."""
        life, clock = self.kubeconfig.life, self._clock()
        if life is not None and life.is_over(self._now()):
            return LOOK_SECONDS
        coming = [_LONGEST_PAUSE, self._next_authority - clock]
        if life is not None:
            coming.append(wake_up(life, now=self._now(), moments=[self._deadline(life)]))
        if self._next_attempt > clock:
            coming.append(self._next_attempt - clock)
        return max(min(coming), 0.0)

    async def _pause(self, seconds: float) -> None:
        both = [asyncio.ensure_future(each) for each in (self._wait_for_news(), self.access.pace.sleep(seconds))]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancelled(*both)

    async def _wait_for_news(self) -> None:
        await self._news.wait()

    def _clock(self) -> float:
        return self.access.pace.now()

    def _now(self) -> datetime:
        return self.access.seed.clock()

    @property
    def _garden(self) -> Client:
        return self.access.clusters[GARDEN].client

    # --- another kubeconfig

    async def _secret(self) -> Object | None:
        try:
            return await self.access.stored_secret()
        except KubeError:
            self._is_changed = True  # look at it again
            raise

    async def _follow(self, content: bytes) -> None:
        if not content or content == self.kubeconfig.content:
            return
        name = self.access.secret_name
        try:
            found = of_content(content, origin=f"in the Secret {name}")
        except ConfigurationError as error:
            log.error("The new kubeconfig for the garden is invalid; keeping the current one", error=str(error))
            return
        if found.life is not None and found.life.is_over(self._now()):
            log.error("The certificate of the new kubeconfig has expired; keeping the current one", secret=name)
            return
        if self._attempt is not None:
            await cancelled(self._attempt)
            self._attempt = None
        self._adopt(found)

    def _adopt(self, kubeconfig: Kubeconfig) -> None:
        try:
            self.access.clusters.replace(GARDEN, kubeconfig.connection)
        except ConfigurationError as error:
            raise StartError(f"the kubeconfig in the Secret {self.access.secret_name}: {error}") from error
        self.kubeconfig = kubeconfig
        self.access.use(kubeconfig)
        self._is_to_renew, self._next_attempt, self._failure, self._has_said = False, 0.0, "", True
        log.info("Using a new kubeconfig for the garden", expires=kubeconfig.life and kubeconfig.life.until)

    async def _replace_expired(self) -> None:
        """Switch to a new kubeconfig, or bootstrap again."""
        try:
            found = await self.access.usable()
        except StartError as error:
            self.access.credentials.report(str(error))
            return
        if found is not None:
            self._adopt(found)
            await finish(self.access, self._garden)

    # --- another certificate

    async def _renew(self, life: Life) -> None:
        certificate = self.kubeconfig.certificate
        assert certificate is not None
        secret = await self.access.stored_secret()
        if self._now() < self._deadline(life) and not _is_annotated(secret or {}):
            self._is_to_renew, self._next_attempt = False, 0.0
            return  # already done
        log.info("Renewing the certificate for the garden", expires=life.until)
        try:
            issued = await certificate_for(
                self._garden, holder_of(certificate), seconds=self.access.lifetime, pace=self.access.pace
            )
            present = content_of(await self.access.stored_secret())
            in_use = self.kubeconfig
            if present not in {b"", in_use.content}:
                raise Overtaken("the kubeconfig in the Secret was replaced meanwhile")
            renewed = await self.access.keep(issued, in_use.cluster, instead_of=present)
        except (NotSigned, KubeError) as error:
            self._report_failure(life, str(error))
        except Overtaken as error:
            log.warning("The new certificate for the garden is not used", error=str(error))
        else:
            self._adopt(renewed)

    def _report_failure(self, life: Life, error: str) -> None:
        self._failure = error
        message = failure_text(life, now=self._now(), error=error)
        log.error("Cannot renew the certificate for the garden", error=error, expires=life.until)
        self._event(REASON_FAILED, message)

    def _event(self, reason: str, message: str) -> None:
        self.access.clusters.recorder(GARDEN).event(self.seed, "Warning", reason, message)

    # --- another CA

    async def _look_at_authority(self) -> None:
        """Adopt another CA, if the kubeconfig is stored and names one."""
        if not self.kubeconfig.content:
            return
        try:
            configured = configured_authority(self.access.settings.garden_cluster_ca_cert)
        except ValueError as error:
            self._event(REASON_NOT_FITTING, f"{NOT_FITTING}: it is not valid base64: {error}")
            return
        published = b"" if configured is not None else await self._published()
        if configured is None and not (published and authority_of(self.kubeconfig.cluster)):
            return
        try:
            changed = await self.access.trusting(self.kubeconfig, published if configured is None else configured)
        except NotVerified as error:
            if configured is not None:
                self._event(REASON_NOT_FITTING, f"{NOT_FITTING}; keeping the one of the kubeconfig: {error}")
            log.warning("A CA does not verify the garden's server and is not used", error=str(error))
        except Overtaken:
            return  # followed, and checked again
        else:
            if changed is not None:
                self._adopt(changed)

    async def _published(self) -> bytes:
        """CA published in the garden, as PEM; empty if there is none, or it may not be read.

        After a refusal, it is read again with the next kubeconfig.
        """
        if self._refused_to is self.kubeconfig:
            return b""
        name = Key(namespace_of(key(self.seed).name), _PUBLISHED)
        try:
            found = await self._garden.find(CONFIG_MAPS, name)
        except Forbidden as refusal:
            self._refused_to = self.kubeconfig
            self.access.clusters[GARDEN].caches.note_read(CONFIG_MAPS, refusal)
            return b""
        self.access.clusters[GARDEN].caches.note_read(CONFIG_MAPS, None)
        return text(mapping((found or {}).get("data")).get(_PUBLISHED_KEY)).encode()

    # --- the condition of the Seed

    async def _say(self, life: Life) -> None:
        wanted = said_of(life, now=self._now(), failure=self._failure)
        if wanted == self._reported or (wanted.status == "True" and not self._failure and not self._has_said):
            return
        with suppress(Conflict, NotFound):
            present = await self._garden.get(SEEDS, key(self.seed).name)
            status = {
                "conditions": with_conditions(conditions_of(present), [wanted], now=self._now()),
                # The controller of the Seed also writes it, but may not look for an hour.
                "clientCertificateExpirationTimestamp": format_time(life.until),
            }
            if changes := merge_patch(mapping(present.get("status")), {**mapping(present.get("status")), **status}):
                meta = {"resourceVersion": metadata(present)["resourceVersion"]}
                body = {"metadata": meta, "status": changes}
                await self._garden.patch(SEEDS, key(present).name, body, subresource="status")
            self._reported, self._has_said = wanted, True
