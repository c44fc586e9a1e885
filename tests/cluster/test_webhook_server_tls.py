"""Certificates: which connections are taken, and that a new certificate costs no client a request."""

import asyncio
import contextlib
import socket
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from devcluster.cluster import Cluster
from kit.processes.webhooks import (
    HOST,
    POD_REVIEW,
    SECCOMP,
    SECCOMP_PROFILE,
    Load,
    WebhookProcess,
    ask,
    client,
    drop,
    make_certificate,
    trusting,
)
from localprocesses.pki import Authority, KeyPair

COULD_NOT_READ = "Could not read the TLS certificate, keeping the one in use"


@pytest.fixture
def server(cluster: Cluster) -> Iterator[WebhookProcess]:
    with WebhookProcess(SECCOMP_PROFILE, kubeconfig=cluster.kubeconfig) as process:
        yield process.wait_until_ready()


def shown_by(server: WebhookProcess) -> str:
    """The name in the certificate that a new connection is shown; clients without SNI get the same."""
    with (
        socket.create_connection((HOST, server.port), timeout=30) as connection,
        trusting().wrap_socket(connection) as secured,
    ):
        shown = secured.getpeercert(binary_form=True)
    assert shown is not None
    name = x509.load_der_x509_certificate(shown).subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    return str(name)


async def test_a_new_certificate_is_shown_soon_without_one_failed_request(server: WebhookProcess) -> None:
    assert await asyncio.to_thread(shown_by, server) == "first"
    async with client() as kept, client(force_close=True) as fresh:
        async with Load(kept, server, clients=4) as on_kept, Load(fresh, server, clients=4) as on_new:
            for name in ("second", "third"):
                server.secret.write(*make_certificate(name))
                await server.until(lambda name=name: shown_by(server) == name, what=f"the certificate {name}")  # type: ignore[misc]
                for load in (on_kept, on_new):
                    await load.more(20)
        assert on_kept.failures == on_new.failures == []


async def test_a_pair_that_cannot_be_used_is_reported_once_and_the_old_one_stays(server: WebhookProcess) -> None:
    certificate, _ = make_certificate("without its key")
    _, other_key = make_certificate("other")
    for broken, reason in (
        ((certificate, other_key), "the key does not belong to the certificate"),
        ((b"nothing", other_key), "tls.crt of server.webhooks.tls.serverCertDir holds no certificate in PEM format"),
    ):
        server.secret.write(*broken)
        await server.until(lambda reason=reason: reason in server.log, what=f"the problem {reason!r}")  # type: ignore[misc]
        assert await asyncio.to_thread(shown_by, server) == "first"
    await asyncio.sleep(5)  # as long as it takes to look twice
    assert server.messages().count(COULD_NOT_READ) == 2
    assert (await asyncio.to_thread(server.metrics))["certwatcher_read_certificate_errors_total"] == 2
    server.secret.write(*make_certificate("mended"))
    await server.until(lambda: shown_by(server) == "mended", what="the certificate that can be used")


async def test_an_encrypted_key_is_an_error_and_its_password_is_not_requested(server: WebhookProcess) -> None:
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        PrivateFormat,
        load_pem_private_key,
    )

    certificate, key = make_certificate("encrypted")
    private = load_pem_private_key(key, password=None)
    encrypted = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    server.secret.write(certificate, encrypted)
    await server.until(lambda: COULD_NOT_READ in server.messages(), what="the error")
    assert await asyncio.to_thread(shown_by, server) == "first"


@pytest.mark.parametrize(
    ("version", "cipher", "taken"),
    [
        (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-GCM-SHA256", True),
        (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-CHACHA20-POLY1305", True),
        (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-SHA256", False),  # not authenticated encryption
        (ssl.TLSVersion.TLSv1_2, "AES128-GCM-SHA256", False),  # no forward secrecy
        (ssl.TLSVersion.TLSv1_3, None, True),
    ],
)
def test_only_good_ciphers_are_taken(
    server: WebhookProcess, version: ssl.TLSVersion, cipher: str | None, taken: bool
) -> None:
    context = trusting()
    context.minimum_version = context.maximum_version = version
    if cipher:
        context.set_ciphers(cipher)
    with socket.create_connection((HOST, server.port), timeout=30) as connection:
        if taken:
            with context.wrap_socket(connection) as secured:
                assert secured.version() == version.name.replace("v1_", "v1.")
        else:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                context.wrap_socket(connection)


async def test_failed_handshakes_leave_nothing_behind(server: WebhookProcess) -> None:
    async with client() as session:
        await ask(session, server.url + SECCOMP)
        files, lines = server.open_files(), len(server.log.splitlines())

        async def fail(sent: bytes) -> None:
            reader, writer = await asyncio.open_connection(HOST, server.port)
            async with asyncio.timeout(60):
                with contextlib.suppress(OSError):  # the server may have closed it by a reset
                    writer.write(sent)
                    writer.write_eof()
                    while await reader.read(4096):
                        pass
            await drop(writer)

        for _ in range(10):
            garbage = [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05hello", b""]
            await asyncio.gather(*(fail(sent) for sent in garbage * 10))
        await server.until(lambda: server.open_files() <= files + 5, what="the connections to be closed")
        assert len(server.log.splitlines()) - lines < 30
        assert (await ask(session, server.url + SECCOMP))["allowed"]


async def test_only_clients_with_a_certificate_of_the_authority_and_a_permitted_name_are_answered(
    cluster: Cluster, tmp_path: Path
) -> None:
    authority, other = Authority.create("clients"), Authority.create("others")
    ca = tmp_path / "ca.crt"
    ca.write_bytes(authority.bundle)
    tls = {"clientCAFile": str(ca), "clientNames": ["api"]}
    with WebhookProcess(SECCOMP_PROFILE, kubeconfig=cluster.kubeconfig, tls=tls) as server:
        await server.until_ready()
        assert await status_for(server, authority.issue_client("api")) == 200
        assert await status_for(server, authority.issue_client("kubelet")) == 401
        assert await status_for(server, None) == 401
        with pytest.raises(aiohttp.ClientError):
            await status_for(server, other.issue_client("api"))
        # A new authority is trusted without a restart.
        ca.write_bytes(other.bundle)

        async def is_trusted() -> bool:
            with contextlib.suppress(aiohttp.ClientError):
                return await status_for(server, other.issue_client("api")) == 200
            return False

        while not await is_trusted():
            await asyncio.sleep(0.1)
        with pytest.raises(aiohttp.ClientError):
            await status_for(server, authority.issue_client("api"))


async def status_for(server: WebhookProcess, shown: KeyPair | None) -> int:
    """Of the answer to a client that shows this certificate."""
    context = trusting()
    if shown is not None:
        with tempfile.TemporaryDirectory() as directory:
            files = shown.write(Path(directory), "client")
            context.load_cert_chain(files.certificate, files.key)
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        session.post(server.url + SECCOMP, data=POD_REVIEW, headers={"Content-Type": "application/json"}) as answer,
    ):
        return answer.status
