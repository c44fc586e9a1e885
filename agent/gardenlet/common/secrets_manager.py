"""Keys and certificates of a control plane, kept in Secrets of its namespace.

    secrets = await SecretsManager.open(client, namespace, clock=clock)
    ca = await secrets.generate(CA)
    server = await secrets.generate(SignedCertificate(name="kube-apiserver", authority="ca", ...))
    ...
    await secrets.clean_up()

A config describes the content of a Secret (`components.secrets`; its `tables` has those of Gardener). The name of the
Secret has a hash of its config, so that another config, another CA or a rotation results in another Secret, and the
Pods that mount it are replaced. A Secret never changes.

A pass reads all Secrets once. A Secret of the right name is used. Otherwise one whose content fits the config is
adopted, even with another hash in its name: other programs and releases compute other hashes. Otherwise it is
generated, outside of the event loop. After a flow that has generated everything, other Secrets are deleted.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self

import structlog

from components.secrets import labels as names
from components.secrets.configs import (
    BUNDLE,
    CA_CERTIFICATE,
    KEY_BUNDLE,
    RSA_KEY,
    Authority,
    Bundle,
    Config,
    Given,
    Made,
    RSAKey,
    SignedCertificate,
    Signer,
    authority_in,
)
from components.secrets.rotation import Old, is_over, newest, old_one, rotation_times
from components.secrets.stored import Stored, secret, stored
from kube.errors import AlreadyExists, Conflict, NotFound
from kube.objects import Key, Object, metadata
from kube.resources import SECRETS
from kube.runtime.client import Client, Form, Selection
from kube.runtime.controller import ReconcileError
from kube.runtime.threads import KEYS
from kube.x509 import load_certificates

UseOfOld = Callable[[Stored], Old]

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class SecretsError(ReconcileError):
    """A Secret can't be generated or used; the text has the cause and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """Secrets of a config.

    Attributes:
        current: the present Secret.
        old: the Secret before the current rotation, unless ignored.
        bundle: of a CA, or of a key for tokens: everything that verifies.
        use_of_old: use of the old one; ignored if there is none.
    """

    current: Stored
    old: Stored | None = None
    bundle: Stored | None = None
    use_of_old: Old = Old.IGNORED


async def restore(client: Client, namespace: str, secrets: Iterable[Object]) -> None:
    """Create the Secrets of a restored Shoot, before a manager is opened. Existing ones stay unchanged."""
    selection = Selection(namespace=namespace, label_selector=f"{names.MANAGED_BY}={names.SECRETS_MANAGER}")
    there = {metadata(each)["name"] for each in await client.list(SECRETS, selection, form=Form.METADATA)}
    for each in secrets:
        if metadata(each)["name"] not in there:
            await client.create_if_missing(SECRETS, each)


async def _read(client: Client, namespace: str, identity: str) -> list[Stored]:
    """Read the Secrets of this manager.

    Raises:
        SecretsError: a Secret is invalid.
        KubeError: they can't be read.
    """
    found = []
    for each in await client.list(SECRETS, Selection(namespace=namespace, label_selector=names.selector(identity))):
        try:
            found.append(stored(each))
        except ValueError as error:
            raise SecretsError(f"Secret {namespace}/{each['metadata']['name']} can't be read: {error}") from None
    return [each for each in found if not each.is_deleting]


class SecretsManager:
    def __init__(
        self,
        client: Client,
        namespace: str,
        *,
        identity: str,
        clock: Callable[[], datetime],
        found: Iterable[Stored],
        requested: Mapping[str, datetime],
        renews_authorities: bool,
    ) -> None:
        """Initialize with the Secrets of one read; see `open`."""
        self._client, self._namespace, self._identity, self._clock = client, namespace, identity, clock
        self._requested, self._renews_authorities = requested, renews_authorities
        self._see(found)
        self._generated: dict[str, Generated] = {}
        self._used: set[str] = set()
        self._locks: dict[str, asyncio.Lock] = {}
        self._of_others: list[Stored] | None = None
        self._looking_at_others = asyncio.Lock()

    @classmethod
    async def open(
        cls,
        client: Client,
        namespace: str,
        *,
        identity: str = names.GARDENLET,
        clock: Callable[[], datetime],
        requested: Mapping[str, datetime] | None = None,
        renews_authorities: bool = False,
    ) -> Self:
        """Open a manager for one pass, with one read.

        It manages the Secrets of the program `identity` in the namespace. Times of requested rotations are by name of
        the config. `renews_authorities` also renews CAs before their expiry, not only the certificates that they sign.
        """
        return cls(
            client,
            namespace,
            identity=identity,
            clock=clock,
            found=await _read(client, namespace, identity),
            requested=requested or {},
            renews_authorities=renews_authorities,
        )

    async def take_over(self, secrets: Iterable[Object]) -> None:
        """Create the Secrets of a restored Shoot, before any is generated."""
        await restore(self._client, self._namespace, secrets)
        self._see(await _read(self._client, self._namespace, self._identity))

    def _see(self, found: Iterable[Stored]) -> None:
        self._found = {each.name: each for each in found}
        self._times = rotation_times(
            self._found.values(),
            requested=self._requested,
            now=self._clock(),
            renews_authorities=self._renews_authorities,
        )

    def has(self, config_name: str) -> bool:
        """Whether there is a Secret of this config."""
        return any(each.config_name == config_name for each in self._found.values())

    # --- interface for components

    def expect_none_of_others(self) -> None:
        """Skip the search for user-provided data, because the namespace is new."""
        self._of_others = []

    async def generate(self, config: Config, *, old: Old | UseOfOld = Old.IN_USE) -> Generated:
        """Return the Secret of a config; generate it if there is none.

        Args:
            config: desired content.
            old: use of the Secret before a rotation; a function computes it from the current one.

        Raises:
            SecretsError: the CA was not generated before, or can't be used.
        """
        async with self._locks.setdefault(config.name, asyncio.Lock()):
            current = await self._one(config)
            use = old if isinstance(old, Old) else old(current)
            generated = await self._with_old(config, current, use if config.keeps_old else Old.IGNORED)
            self._generated[config.name] = generated
            return generated

    def get(self, name: str) -> Generated:
        """Return the result of `generate` in this pass.

        Raises:
            SecretsError: it was not generated.
        """
        try:
            return self._generated[name]
        except KeyError:
            raise SecretsError(f"{name} of namespace {self._namespace} is used before it was generated") from None

    def keep(self, *config_names: str) -> None:
        """Keep existing Secrets of configs that this pass does not generate, and their bundles, in the clean-up."""
        for each in self._found.values():
            if each.config_name in config_names or each.labels.get(names.BUNDLE_FOR) in config_names:
                self._used.add(each.name)

    def begin_anew(self) -> None:
        """Forget which Secrets were used until now."""
        self._generated.clear()
        self._used.clear()

    async def clean_up(self) -> None:
        """Delete Secrets that this pass has not used. Call it only after a flow in which every task has succeeded."""
        unused = [each for each in self._found.values() if each.name not in self._used]
        for each in unused:
            try:
                await self._client.delete(
                    SECRETS,
                    Key(self._namespace, each.name),
                    uid=each.uid,
                    resource_version=each.resource_version,
                )
            except (NotFound, Conflict):
                continue  # deleted or changed by another client: the next pass reads it again
            log.info("Deleted an unused Secret", namespace=self._namespace, secret=each.name)

    # --- one Secret

    async def _one(self, config: Config) -> Stored:
        signer = self._signer(config)
        of_config = names.checksum_of_config(config.described())
        of_authority = names.checksum_of_authority(signer.data) if signer else ""
        rotated = self._times.get(config.name, "")
        name = names.secret_name(
            config.name,
            of_config=of_config,
            of_authority=of_authority,
            rotated=rotated,
            is_plain=isinstance(config, Authority) and config.has_plain_name,
        )
        used = self._found.get(name) or await self._adopted(config, signer, rotated)
        if used is None:
            labels = names.of_secret(
                config.name,
                identity=self._identity,
                of_config=of_config,
                of_authority=of_authority,
                rotated=rotated,
                persist=config.persist,
                bundle_for=config.of if isinstance(config, Bundle) else "",
            )
            used = await self._created(config, name, labels, signer)
        self._used.add(used.name)
        return used

    def _signer(self, config: Config) -> Stored | None:
        """Return the CA that signs.

        Raises:
            SecretsError: it was not generated before.
        """
        if not isinstance(config, SignedCertificate):
            return None
        authority = self.get(config.authority)
        signs_old = config.signer is Signer.OLD and authority.use_of_old is Old.IN_USE
        return authority.old if authority.old and signs_old else authority.current

    async def _adopted(self, config: Config, signer: Stored | None, rotated: str) -> Stored | None:
        """Return the newest Secret that fits the config, under a name with another hash."""
        candidates = [
            each for each in self._found.values() if each.config_name == config.name and each.rotated == rotated
        ]

        def fitting() -> Stored | None:
            authority = load_certificates(signer.data.get(CA_CERTIFICATE)) if signer else ()
            ca = authority[0] if authority else None
            return newest(each for each in candidates if config.fits(each.data, ca))

        return await KEYS.compute(fitting) if candidates else None

    async def _created(self, config: Config, name: str, labels: Mapping[str, str], signer: Stored | None) -> Stored:
        now = self._clock()
        data = await self._data_of_others(config.name)
        made = Made(data) if data else await KEYS.compute(self._made, config, name, signer, now)
        more = names.of_life(now, made.valid_until, renew_after_percentage=config.renew_after_percentage)
        try:
            live = await self._client.create(SECRETS, secret(self._namespace, name, {**labels, **more}, made.data))
        except AlreadyExists:
            # Created by a process that ended before this one listed, or by a former leader.
            live = await self._client.get(SECRETS, Key(self._namespace, name))
        found = stored(live)
        if found.config_name != config.name or found.is_deleting:
            raise SecretsError(
                f"Secret {self._namespace}/{name} conflicts with {config.name}: it is being deleted, or lacks the "
                f"labels of this manager; delete it, or label it like the others"
            )
        self._found[name] = found
        return found

    def _made(self, config: Config, name: str, signer: Stored | None, now: datetime) -> Made:
        """Generate the content.

        Raises:
            SecretsError: the CA can't be used.
        """
        ca = authority_in(signer.data) if signer else None
        if signer and ca is None:
            raise SecretsError(
                f"Secret {self._namespace}/{signer.name} has no usable CA to sign {config.name}; restore the Secret "
                "from a backup, or delete it to get a new CA"
            )
        return config.make(Given(name, ca, now))

    async def _data_of_others(self, config_name: str) -> Mapping[str, bytes] | None:
        """Data of a user-provided Secret for this config, used instead of new data."""
        async with self._looking_at_others:
            if self._of_others is None:
                selection = Selection(namespace=self._namespace, label_selector=names.USE_DATA_FOR)
                self._of_others = [stored(each) for each in await self._client.list(SECRETS, selection)]
        found = [each for each in self._of_others if each.labels[names.USE_DATA_FOR] == config_name]
        if len(found) > 1:
            raise SecretsError(
                f"Secrets {', '.join(each.name for each in found)} of namespace {self._namespace} have the label"
                f" {names.USE_DATA_FOR}={config_name}: remove it from all but one"
            )
        return found[0].data if found else None

    # --- previous Secrets, and bundles

    async def _with_old(self, config: Config, current: Stored, use: Old) -> Generated:
        old = old_one(self._found.values(), current) if use is not Old.IGNORED else None
        if old and is_over(old, self._clock()):
            old = None
        if old:
            self._used.add(old.name)
        match config:
            case Authority():
                field, part = BUNDLE, CA_CERTIFICATE
            case RSAKey(has_bundle=True):
                field, part = KEY_BUNDLE, RSA_KEY
            case _:
                field, part = "", ""
        bundle = await self._bundle(config, field, part, current, old) if field else None
        return Generated(current=current, old=old, bundle=bundle, use_of_old=use if old else Old.IGNORED)

    async def _bundle(self, config: Config, field: str, part: str, current: Stored, old: Stored | None) -> Stored:
        parts = tuple(each.data[part] for each in (current, old) if each and part in each.data)
        return await self._one(Bundle(name=f"{config.name}-bundle", of=config.name, field=field, parts=parts))


@dataclass(frozen=True, slots=True)
class GeneratedSecrets:
    """Generated Secrets, as seen by components."""

    manager: SecretsManager

    def current(self, config: str, /) -> Stored:
        """Return the current Secret.

        Raises:
            SecretsError: it was not generated.
        """
        return self.manager.get(config).current

    def bundle(self, config: str, /) -> Stored:
        """Return the bundle.

        Raises:
            SecretsError: it was not generated.
        """
        bundle = self.manager.get(config).bundle
        assert bundle is not None  # CAs and keys for tokens have one
        return bundle
