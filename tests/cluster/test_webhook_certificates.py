"""Certificates in a real cluster: made once by the first process, rotated by the clock, and known to API servers first."""

import asyncio
import base64
import contextlib
import datetime
import os
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from config.resource_manager import decode
from devcluster.audit import Audit
from devcluster.cluster import Cluster
from devcluster.testing.faults import Delay, Rule
from gardener import keys
from kit.eventually import eventually, soon
from kit.objects import secret
from kit.proxied import proxied
from kit.world import Place, World
from kube.objects import Object, annotations, metadata
from kube.resources import MUTATING_WEBHOOKS, SECRETS
from kube.runtime.client import Client
from kube.x509 import is_signed_by, load_certificates, load_pair
from webhooks.certificates.keeper import PUBLISHED_AT, CannotKeep, CertificateOptions, Keeper, keep
from webhooks.certificates.rules import SETTLED
from webhooks.configurations.install import install
from webhooks.configurations.objects import CaBundle, CertManager, Service, Trust, name_of
from webhooks.configurations.registrations import configurations
from webhooks.rules.registration import Instance, Mode

START = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime.datetime:
        return self.now


class CertificateWorld(World):
    """A namespace with certificates, and a webhook configuration of an instance of the test's own."""

    def __init__(self, client: Client, namespace: str, directory: Path) -> None:
        super().__init__(client, namespace)
        self.clock = Clock()
        self.instance = Instance(mode=Mode.TARGET, prefix=f"t{uuid.uuid4().hex[:8]}-")
        self.wanted = CertificateOptions(
            instance=self.instance,
            namespace=namespace,
            secret="server",
            ca_secret="ca",
            names=("grm", f"grm.{namespace}.svc"),
            directory=directory,
        )

    def keeper(self) -> Keeper:
        return Keeper(self.wanted, source=self.client, target=self.client, clock=self.clock)

    async def install(self, trust: Trust) -> None:
        # Only VerticalPodAutoscalers in kube-system are queried about: no other test has any.
        webhooks = decode(yaml.safe_dump({"webhooks": {"vpaInPlaceUpdates": {"enabled": True}}})).config.webhooks
        address = Service(self.namespace, "grm")
        await install(self.client, self.instance, configurations(webhooks, self.instance, address=address, trust=trust))

    async def secret(self, name: str) -> dict[str, bytes]:
        found = await self.get("Secret", name)
        return {key: base64.b64decode(value) for key, value in found["data"].items()}

    async def configuration(self) -> Object:
        return await self.get(MUTATING_WEBHOOKS, name_of(self.instance))

    async def published(self) -> bytes:
        """What the API server trusts."""
        encoded = (await self.configuration())["webhooks"][0]["clientConfig"].get("caBundle") or ""
        return base64.b64decode(encoded)

    async def signers(self) -> tuple[x509.Certificate, ...]:
        """The CAs among those that the API server trusts which signed the server's certificate."""
        serving = await self.secret("server")
        pair = load_pair(serving["tls.crt"], serving["tls.key"])
        assert pair is not None
        return tuple(ca for ca in load_certificates(await self.published()) if is_signed_by(pair.certificate, ca))

    async def versions(self) -> list[str]:
        objects = [await self.get("Secret", name) for name in ("ca", "server")]
        return [metadata(obj)["resourceVersion"] for obj in [*objects, await self.configuration()]]


@pytest.fixture
async def world(client: Client, namespace: str, tmp_path: Path) -> AsyncIterator[CertificateWorld]:
    own = CertificateWorld(client, namespace, tmp_path / "certificates")
    yield own
    await own.remove(MUTATING_WEBHOOKS, name_of(own.instance))


async def test_a_first_run_makes_everything_and_a_second_writes_nothing(world: CertificateWorld) -> None:
    await world.install(CaBundle(b"-----BEGIN NOTHING-----\n"))
    await world.keeper().run()
    ca = await world.secret("ca")
    assert await world.published() == ca["bundle.crt"] == ca["ca.crt"]
    assert len(await world.signers()) == 1
    stored = await world.get("Secret", "server")
    assert stored["type"] == "kubernetes.io/tls"
    assert "ca.key" not in stored["data"]
    assert world.wanted.directory is not None
    assert (world.wanted.directory / "tls.crt").read_bytes() == (await world.secret("server"))["tls.crt"]
    before = await world.versions()
    assert await world.keeper().run() > world.clock.now
    assert await world.versions() == before


async def test_several_at_once_agree(world: CertificateWorld) -> None:
    await world.install(CaBundle(b""))
    await asyncio.gather(*(world.keeper().run() for _ in range(4)))
    assert await world.published() == (await world.secret("ca"))["bundle.crt"]
    assert len(load_certificates(await world.published())) == 1
    assert len(await world.signers()) == 1


async def test_a_new_ca_is_known_to_api_servers_before_it_is_used(world: CertificateWorld) -> None:
    await world.install(CaBundle(b""))
    await world.keeper().run()
    (old,) = await world.signers()
    world.clock.now = START + 200 * DAY
    await world.keeper().run()
    assert await world.signers() == (old,)

    world.clock.now = START + 245 * DAY
    await asyncio.gather(world.keeper().run(), world.keeper().run())
    new, *others = load_certificates(await world.published())
    assert others == [old]
    assert await world.signers() == (old,)

    world.clock.now += SETTLED
    await asyncio.gather(world.keeper().run(), world.keeper().run())
    assert await world.signers() == (new,)
    assert load_certificates(await world.published()) == (new, old)

    world.clock.now = START + 366 * DAY
    await world.keeper().run()
    assert load_certificates(await world.published()) == (new,)
    assert await world.signers() == (new,)


async def test_the_certificate_of_the_server_is_renewed_with_the_same_ca(world: CertificateWorld) -> None:
    await world.install(CaBundle(b""))
    await world.keeper().run()
    before, signers = await world.secret("server"), await world.signers()
    world.clock.now = START + 61 * DAY
    await world.keeper().run()
    assert await world.secret("server") != before
    assert await world.signers() == signers


async def test_a_configuration_that_comes_later_or_is_changed_gets_the_bundle(world: CertificateWorld) -> None:
    await world.keeper().run()
    await world.install(CaBundle(b""))
    assert await world.published() == b""
    await world.keeper().run()
    assert await world.published() == (await world.secret("ca"))["bundle.crt"]


async def test_certificates_that_others_keep_are_left_alone(world: CertificateWorld) -> None:
    await world.install(CertManager("ns/certificate"))
    await world.keeper().run()
    assert await world.published() == b""
    assert (await world.secret("server"))["tls.crt"]


async def test_a_managed_configuration_is_waited_for(world: CertificateWorld) -> None:
    """Whatever is written into an object of a ManagedResource is taken back."""
    await world.install(CaBundle(b""))
    for later in (0, 200):
        world.clock.now = START + later * DAY
        await world.keeper().run()
    await world.patch(
        MUTATING_WEBHOOKS, name_of(world.instance), {"metadata": {"annotations": {keys.ORIGIN: "x:ns/mr"}}}
    )
    for later in (245, 246):
        world.clock.now = START + later * DAY
        await world.keeper().run()
    (old,) = load_certificates(await world.published())
    assert await world.signers() == (old,)
    ca = await world.get("Secret", "ca")
    assert PUBLISHED_AT not in annotations(ca)
    new, _ = load_certificates((await world.secret("ca"))["bundle.crt"])

    await world.install(CaBundle((await world.secret("ca"))["bundle.crt"]))  # as its deployer does
    await world.keeper().run()
    world.clock.now += SETTLED
    await world.keeper().run()
    assert await world.signers() == (new,)
    assert old in load_certificates(await world.published())


async def test_a_secret_of_another_client_is_not_touched(world: CertificateWorld) -> None:
    await world.create(secret("ca", {"ca.crt": "A"}))
    with pytest.raises(CannotKeep, match=f'secret "{world.namespace}/ca" holds data and has no label "app: '):
        await world.keeper().run()
    assert await world.secret("ca") == {"ca.crt": b"A"}


async def test_an_empty_secret_that_was_made_beforehand_is_filled(world: CertificateWorld) -> None:
    await world.create(secret("server"))
    await world.keeper().run()
    assert (await world.secret("server"))["tls.key"]


async def test_while_it_runs_changes_are_repaired_and_in_steady_state_nothing_is_queried(
    world: CertificateWorld, audit: Audit, user_agent: str
) -> None:
    await world.install(CaBundle(b""))
    async with kept(world, world.client):
        await replaced_when_deleted(world)
        await until_quiet(audit, user_agent)
    assert len(await world.signers()) == 1


async def test_a_secret_that_goes_before_its_watch_has_begun_is_missed(
    world: CertificateWorld, cluster: Cluster, tmp_path: Path, audit: Audit, user_agent: str
) -> None:
    async with proxied(cluster, tmp_path) as (proxy, transport):
        proxy.rules.add(Rule(fault=Delay(seconds=6.0), path="/secrets$", query="name(=|%3D)server", watch=False))
        async with kept(world, Client(transport, user_agent=user_agent)):
            await soon(certificate_of(world).exists)
            # The other watches have begun, and nothing but this one is going to report it.
            await until_quiet(audit, user_agent)
            await replaced_when_deleted(world)
            assert proxy.injected["delay"] == 1


@contextlib.asynccontextmanager
async def kept(world: CertificateWorld, watching: Client) -> AsyncIterator[None]:
    """Certificates are kept, by a user who learns of changes through another client."""
    watched = [
        (watching, SECRETS, world.namespace, "ca"),
        (watching, SECRETS, world.namespace, "server"),
        (watching, MUTATING_WEBHOOKS, "", name_of(world.instance)),
    ]
    keeping = asyncio.create_task(keep(world.keeper(), watched, clock=world.clock, between_rounds=0.05))
    try:
        yield
    finally:
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping


def certificate_of(world: CertificateWorld) -> Path:
    assert world.wanted.directory is not None
    return world.wanted.directory / "tls.crt"


async def replaced_when_deleted(world: CertificateWorld) -> None:
    certificate = certificate_of(world)
    await soon(certificate.exists)
    first = certificate.read_bytes()
    await world.delete("Secret", "server")
    await soon(lambda: certificate.read_bytes() != first)


async def until_quiet(audit: Audit, user_agent: str) -> None:
    """A second without a call of ours; one that queries again and again never has it."""

    async def is_quiet() -> bool:
        mark = audit.mark()
        await asyncio.sleep(1)
        return not audit.count(since=mark, user_agent=user_agent)

    await soon(is_quiet, "a second without a call")


def start(cluster: Cluster, namespace: str, directory: Path, *arguments: str) -> subprocess.Popen[str]:
    config = directory / "config.yaml"
    config.write_text(yaml.safe_dump({"leaderElection": {"resourceNamespace": namespace}}))
    names = ("--prefix", f"t{uuid.uuid4().hex[:8]}-", "--secret", "server", "--ca-secret", "ca")
    return subprocess.Popen(
        [sys.executable, "-m", "webhooks", "certificates", "--config", str(config), *names, *arguments],
        env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_the_command_runs_once_and_prints_no_key(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    with start(cluster, namespace, tmp_path, "--once") as process:
        printed, _ = process.communicate(timeout=60)
    assert process.returncode == 0, printed
    stored = Place(cluster, namespace).get("Secret", "server")
    assert "Issued a certificate" in printed
    assert "PRIVATE" not in printed
    assert stored["data"]["tls.key"][:40] not in printed


def test_the_command_runs_until_it_is_stopped(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    with start(cluster, namespace, tmp_path, "--watch", "--directory", str(tmp_path)) as process:
        try:
            eventually(lambda: (tmp_path / "tls.crt").exists() or process.poll() is not None, "a certificate")
            assert process.poll() is None
        finally:
            process.terminate()
        printed, _ = process.communicate(timeout=60)
    assert process.returncode == 0, printed
