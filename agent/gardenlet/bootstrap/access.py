"""The connection to the garden at the start: a stored kubeconfig, or a newly requested certificate.

An expired certificate is never used. If nothing else is available, this waits and looks again every ten seconds: a
restart would not help, a human must act. `/readyz` and the log report what it waits for.
"""

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import structlog

from agent.gardenlet.bootstrap.pace import Pace
from agent.gardenlet.bootstrap.rules.certificate import Life, gardenlet_of
from agent.gardenlet.bootstrap.rules.kubeconfig import (
    Found,
    NoKubeconfig,
    Source,
    authority_of,
    choice,
    configured_authority,
    document,
    expired_text,
    same_authority,
)
from agent.gardenlet.bootstrap.rules.unfinished import Unfinished
from agent.gardenlet.bootstrap.signing import ATTEMPT_SECONDS, Issued, NotSigned, certificate_for
from agent.gardenlet.bootstrap.stored import Kubeconfig, Overtaken, content_of, of_content, of_file, store
from agent.gardenlet.bootstrap.trust import NotVerified, opened, trusting
from agent.gardenlet.common.metrics import (
    gardenlet_certificate_expiration_timestamp_seconds,
    gardenlet_certificate_start_timestamp_seconds,
)
from config.gardenlet.schema import GardenClientConnection, SecretReference
from kube.clock import format_time
from kube.errors import KubeError
from kube.objects import Key, Object, uid
from kube.resources import SECRETS
from kube.runtime.kubeconfig import ConfigurationError
from process.clusters import Cluster, Clusters
from process.probes import CheckFailed, HealthCheck
from process.runner import StartError

LOOK_SECONDS = 10.0
_BOOTSTRAP = "garden bootstrap"
"""Name of the connection that requests a certificate."""

NOT_FITTING = "The configured CA (gardenClusterCACert) does not verify the garden's server"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(slots=True)
class Credentials:
    """The kubeconfig in use, and its problem: source of probes, metrics and the Seed's status."""

    life: Life | None = None
    problem: str = ""
    is_entering: bool = False
    """Whether this process is still entering the garden."""

    def expires(self) -> datetime | None:
        return self.life.until if self.life else None

    def check(self) -> HealthCheck:
        async def run() -> None:
            if self.problem or self.is_entering:
                raise CheckFailed(self.problem or "the garden has not been reached yet, see the log")

        return HealthCheck("garden-credentials", run)

    def report(self, problem: str) -> None:
        """Record a problem, and log it once."""
        if problem and problem != self.problem:
            log.error("No valid credentials for the garden; waiting for new ones", error=problem)
        self.problem = problem


@dataclass(eq=False, slots=True, kw_only=True)
class GardenAccess:
    """Source of kubeconfigs for the garden.

    Attributes:
        credentials: kept up to date here.
    """

    seed: Cluster
    clusters: Clusters
    settings: GardenClientConnection
    seed_name: str
    pace: Pace = field(default_factory=Pace)
    credentials: Credentials = field(default_factory=Credentials)
    _refused: bytes = b""
    """Bootstrap kubeconfig that did not lead to a certificate; a different one is tried at once."""
    _refused_until: float = 0.0

    async def obtain(self) -> Kubeconfig:
        """Return a kubeconfig as soon as there is one that is worth trying.

        Raises:
            StartError: nothing is configured, or no certificate was issued.
        """
        while True:
            if (found := await self.usable()) is not None:
                self.use(found)
                return found
            await self.pace.sleep(LOOK_SECONDS)

    def use(self, kubeconfig: Kubeconfig) -> None:
        life = kubeconfig.life
        self.credentials.life = life
        gardenlet_certificate_start_timestamp_seconds.set(life.since.timestamp() if life else 0)
        gardenlet_certificate_expiration_timestamp_seconds.set(life.until.timestamp() if life else 0)
        self.credentials.report("")

    async def usable(self) -> Kubeconfig | None:
        """Return a valid kubeconfig; None if there is none, which is reported.

        Raises:
            StartError: as for `obtain`.
        """
        stored, bootstrap = await self._read(self.settings.kubeconfig_secret), b""
        kubeconfig, life, content = None, None, content_of(stored)
        if content:
            try:
                kubeconfig = of_content(content, origin=f"in the Secret {self.secret_name}")
            except ConfigurationError as error:
                self.credentials.report(f"{error}; replace it by a valid one, or remove it to bootstrap again")
                return None
            life = kubeconfig.life
        boot = None
        if self.settings.kubeconfig_secret and (life is None or life.is_over(self.seed.clock())):
            boot = await self._read(self.settings.bootstrap_kubeconfig)
            bootstrap = content_of(boot)
        found = Found(
            file=self.settings.kubeconfig,
            has_secret=self.settings.kubeconfig_secret is not None,
            stored=content,
            life=life,
            may_bootstrap=self.settings.bootstrap_kubeconfig is not None,
            bootstrap=bootstrap,
        )
        try:
            source = choice(found, now=self.seed.clock())
        except NoKubeconfig as error:
            where = _name(self.settings.bootstrap_kubeconfig)
            raise StartError(
                f"{error}; store a valid kubeconfig in the Secret {where}" if where else str(error)
            ) from error
        match source:
            case Source.FILE:
                return self._of_file()
            case Source.STORED:
                assert kubeconfig is not None
                return await self._with_configured_authority(kubeconfig)
            case Source.BOOTSTRAP:
                assert boot is not None
                if bootstrap == self._refused and self.pace.now() < self._refused_until:
                    return None
                if life is not None:
                    until = format_time(life.until)
                    self.credentials.report(f"the certificate for the garden expired at {until}; requesting a new one")
                return await self._bootstrapped(boot, instead_of=content)
            case Source.NONE_VALID:
                assert life is not None
                self.credentials.report(self._expired(life))
                return None

    def _of_file(self) -> Kubeconfig | None:
        path = self.settings.kubeconfig
        found = of_file(Path(path))
        if found.life is None or not found.life.is_over(self.seed.clock()):
            return found
        until = format_time(found.life.until)
        self.credentials.report(f"the certificate in the kubeconfig {path} expired at {until}; replace the file")
        return None

    @property
    def secret_name(self) -> str:
        return _name(self.settings.kubeconfig_secret)

    def _expired(self, life: Life) -> str:
        bootstrap = _name(self.settings.bootstrap_kubeconfig)
        return expired_text(secret=self.secret_name, bootstrap=bootstrap, seed=self.seed_name, life=life)

    async def stored_secret(self) -> Object | None:
        return await self._read(self.settings.kubeconfig_secret)

    async def _read(self, where: SecretReference | None) -> Object | None:
        if where is None:
            return None

        async def look() -> Object | None:
            return await self.seed.client.find(SECRETS, Key(where.namespace, where.name))

        return await self.pace.patiently(f"read the Secret {_name(where)}", look)

    # --- a new certificate

    async def _bootstrapped(self, boot: Object, *, instead_of: bytes) -> Kubeconfig | None:
        """Return a kubeconfig obtained with the bootstrap kubeconfig; None if another one was stored meanwhile.

        Raises:
            StartError: no certificate was issued. The next start requests one again.
        """
        origin = f"in the Secret {_name(self.settings.bootstrap_kubeconfig)}"
        start = of_content(content_of(boot), origin=origin)
        log.info("Requesting a certificate from the garden, with the bootstrap kubeconfig", seed=self.seed_name)
        async with opened(self.clusters, _BOOTSTRAP, start.connection, self.settings) as garden:
            seconds = self.lifetime
            try:
                issued = await certificate_for(
                    garden.client, gardenlet_of(self.seed_name), seconds=seconds, pace=self.pace
                )
            except NotSigned as error:
                self._refused, self._refused_until = start.content, self.pace.now() + ATTEMPT_SECONDS
                raise StartError(f"the garden issued no certificate: {error}") from error
        unfinished = Unfinished(request=issued.request, user=issued.user, bootstrap_uid=uid(boot))
        try:
            return await self.keep(issued, start.cluster, instead_of=instead_of, unfinished=unfinished)
        except Overtaken as error:
            log.warning("The new certificate for the garden is not used", error=str(error))
            return None

    @property
    def lifetime(self) -> int | None:
        """Requested lifetime in seconds; None if the signer decides."""
        validity = self.settings.kubeconfig_validity.validity
        return None if validity is None else int(validity)

    async def keep(
        self, issued: Issued, cluster: Object, *, instead_of: bytes, unfinished: Unfinished | None = None
    ) -> Kubeconfig:
        """Store a certificate before it is used.

        Raises:
            Overtaken: another kubeconfig was stored meanwhile.
            KubeError: it can't be stored.
        """
        content = document(cluster, certificate=issued.certificate, key=issued.key)
        await self.put(content, instead_of=instead_of, unfinished=unfinished)
        log.info("Stored a new certificate for the garden", secret_name=self.secret_name, request=issued.request)
        return of_content(content, origin=f"in the Secret {self.secret_name}")

    async def put(self, content: bytes, *, instead_of: bytes, unfinished: Unfinished | None = None) -> None:
        where = self.settings.kubeconfig_secret
        assert where is not None
        noted = unfinished.as_annotations() if unfinished else {}

        async def write() -> Object:
            place = (where.namespace, where.name)
            return await store(self.seed.client, place, content, instead_of=instead_of, annotations=noted)

        await self.pace.patiently(f"store the kubeconfig in the Secret {self.secret_name}", write)

    # --- the CA

    async def _with_configured_authority(self, kubeconfig: Kubeconfig) -> Kubeconfig:
        """Return the kubeconfig with the configured CA if that verifies the server; `rotation` reports one that does
        not.
        """
        try:
            authority = configured_authority(self.settings.garden_cluster_ca_cert)
            return kubeconfig if authority is None else await self.trusting(kubeconfig, authority) or kubeconfig
        except (NotVerified, ValueError) as error:
            log.warning(f"{NOT_FITTING}; keeping the one of the kubeconfig", error=str(error))
        except (Overtaken, KubeError) as error:
            log.warning("The configured CA of the garden was not stored", error=str(error))
        return kubeconfig

    async def trusting(self, kubeconfig: Kubeconfig, authority: bytes) -> Kubeconfig | None:
        """Store another CA in the Secret; None if nothing changes.

        Raises:
            NotVerified: the CA does not verify the server.
            Overtaken: another kubeconfig was stored meanwhile.
        """
        if not kubeconfig.certificate_pem or same_authority(authority_of(kubeconfig.cluster), authority):
            return None
        origin = f"in the Secret {self.secret_name}"
        changed = await trusting(self.clusters, kubeconfig, authority, self.settings, origin=origin)
        await self.put(changed.content, instead_of=kubeconfig.content)
        log.info("Stored another CA of the garden, which verifies its server", secret_name=self.secret_name)
        return changed


def _name(where: SecretReference | None) -> str:
    return f"{where.namespace}/{where.name}" if where else ""
