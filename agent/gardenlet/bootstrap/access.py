"""The connection to the garden at the start: a stored kubeconfig, or a certificate that is asked for.

Nothing is sent with a certificate that has expired. Where nothing else is left, this waits, and looks again every ten
seconds: a restart would not help, a person has to. What it waits for is said by `/readyz` and in the log.
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
from agent.gardenlet.metrics import (
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
"""Name of the connection over which a certificate is asked for."""

NOT_FITTING = "The garden's server can't be verified by the configured authority (gardenClusterCACert)"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(slots=True)
class Credentials:
    """The kubeconfig that is in use, and what is wrong with it: what probes, metrics and the Seed's status say."""

    life: Life | None = None
    problem: str = ""
    is_entering: bool = False
    """Whether this process is on its way into the garden."""

    def expires(self) -> datetime | None:
        return self.life.until if self.life else None

    def check(self) -> HealthCheck:
        async def run() -> None:
            if self.problem or self.is_entering:
                raise CheckFailed(self.problem or "the garden has not been reached yet, see the log")

        return HealthCheck("garden-credentials", run)

    def report(self, problem: str) -> None:
        """Logged once."""
        if problem and problem != self.problem:
            log.error("There are no valid credentials for the garden; waiting for some", error=problem)
        self.problem = problem


@dataclass(eq=False, slots=True, kw_only=True)
class GardenAccess:
    """Attributes:
    credentials: kept up to date here.
    """

    seed: Cluster
    clusters: Clusters
    settings: GardenClientConnection
    seed_name: str
    pace: Pace = field(default_factory=Pace)
    credentials: Credentials = field(default_factory=Credentials)
    _refused: bytes = b""
    """The bootstrap kubeconfig with which no certificate was given; another one is tried at once."""
    _refused_until: float = 0.0

    async def obtain(self) -> Kubeconfig:
        """Returns when there is a kubeconfig that is worth being tried.

        Raises: StartError: nothing is configured, or no certificate was given.
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
        """A look at what there is; None: nothing valid, which is reported. Raises: StartError: see `obtain`."""
        stored, bootstrap = await self._read(self.settings.kubeconfig_secret), b""
        kubeconfig, life, content = None, None, content_of(stored)
        if content:
            try:
                kubeconfig = of_content(content, origin=f"in the Secret {self.secret_name}")
            except ConfigurationError as error:
                self.credentials.report(f"{error}; put a usable one there, or remove it to bootstrap again")
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
            raise StartError(f"{error}; put one into the Secret {where}" if where else str(error)) from error
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
                    self.credentials.report(
                        f"the certificate for the garden expired at {until}; asking for another one"
                    )
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
        """Of the bootstrap kubeconfig in a Secret. None: another kubeconfig was stored meanwhile.

        Raises: StartError: there is no certificate. The next start asks anew.
        """
        origin = f"in the Secret {_name(self.settings.bootstrap_kubeconfig)}"
        start = of_content(content_of(boot), origin=origin)
        log.info("Asking the garden for a certificate, with the bootstrap kubeconfig", seed=self.seed_name)
        async with opened(self.clusters, _BOOTSTRAP, start.connection, self.settings) as garden:
            seconds = self.lifetime
            try:
                issued = await certificate_for(
                    garden.client, gardenlet_of(self.seed_name), seconds=seconds, pace=self.pace
                )
            except NotSigned as error:
                self._refused, self._refused_until = start.content, self.pace.now() + ATTEMPT_SECONDS
                raise StartError(f"no certificate for the garden was given: {error}") from error
        unfinished = Unfinished(request=issued.request, user=issued.user, bootstrap_uid=uid(boot))
        try:
            return await self.keep(issued, start.cluster, instead_of=instead_of, unfinished=unfinished)
        except Overtaken as error:
            log.warning("The new certificate for the garden is not used", error=str(error))
            return None

    @property
    def lifetime(self) -> int | None:
        """Seconds to ask for."""
        validity = self.settings.kubeconfig_validity.validity
        return None if validity is None else int(validity)

    async def keep(
        self, issued: Issued, cluster: Object, *, instead_of: bytes, unfinished: Unfinished | None = None
    ) -> Kubeconfig:
        """Stores a certificate before anything is done with it. Raises Overtaken, KubeError."""
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

    # --- the authority

    async def _with_configured_authority(self, kubeconfig: Kubeconfig) -> Kubeconfig:
        """Of use where the present one does not verify the server any more; `rotation` reports what does not fit."""
        try:
            authority = configured_authority(self.settings.garden_cluster_ca_cert)
            return kubeconfig if authority is None else await self.trusting(kubeconfig, authority) or kubeconfig
        except (NotVerified, ValueError) as error:
            log.warning(f"{NOT_FITTING}; going on with that of the kubeconfig", error=str(error))
        except (Overtaken, KubeError) as error:
            log.warning("The configured authority of the garden was not stored", error=str(error))
        return kubeconfig

    async def trusting(self, kubeconfig: Kubeconfig, authority: bytes) -> Kubeconfig | None:
        """Takes another authority over, into the Secret; None: there is nothing to change.

        Raises: NotVerified; Overtaken; KubeError.
        """
        if not kubeconfig.certificate_pem or same_authority(authority_of(kubeconfig.cluster), authority):
            return None
        origin = f"in the Secret {self.secret_name}"
        changed = await trusting(self.clusters, kubeconfig, authority, self.settings, origin=origin)
        await self.put(changed.content, instead_of=kubeconfig.content)
        log.info("Stored another authority of the garden, which verifies its server", secret_name=self.secret_name)
        return changed


def _name(where: SecretReference | None) -> str:
    return f"{where.namespace}/{where.name}" if where else ""
