"""What the port of the webhooks agrees to, queried byte by byte: OpenSSL on this computer might not even offer what is old.

A client's first message is built by hand, and the server's answer is taken apart.
"""

import datetime
import os
import secrets
import shutil
import socket
import ssl
import struct
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from devcluster.cluster import Cluster
from kit.processes.webhooks import HOST, POD_REVIEW, SECCOMP, SECCOMP_PROFILE, WebhookProcess, trusting
from kube.x509 import make_ca, make_serving, pem
from localprocesses.pki import Authority

SSL3, TLS10, TLS11, TLS12, TLS13 = 0x0300, 0x0301, 0x0302, 0x0303, 0x0304
HANDSHAKE = 22
SERVER_HELLO, CERTIFICATE_REQUEST, SERVER_HELLO_DONE = 2, 13, 14

GOOD_EC = {0xC02B, 0xC02C, 0xCCA9}
"""ECDHE-ECDSA with AES-GCM or ChaCha20-Poly1305: forward secrecy, authenticated encryption."""
GOOD_RSA = {0xC02F, 0xC030, 0xCCA8}
FALLBACK = 0x5600
ALL_CIPHERS = [
    number for first in (0x00, 0x13, 0xC0, 0xC1, 0xCC, 0xD0) for number in range(first << 8, (first << 8) + 256)
]
STRONG_GROUPS = (29, 23, 24)
WEAK_GROUPS = tuple(range(1, 23))
"""Curves of 225 bits and less, such as secp192r1, and those that are not in use."""


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Iterator[WebhookProcess]:
    """With a certificate as the webhooks make them for themselves."""
    now, lifetime = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=30)
    ca = make_ca("ca", now=now, lifetime=lifetime)
    pair = make_serving(ca, ["first", HOST], now=now, lifetime=lifetime)
    process = WebhookProcess(SECCOMP_PROFILE, kubeconfig=cluster.kubeconfig, certificate=False)
    process.secret.write(pair.certificate_pem + pem(ca.certificate), pair.key_pem)
    with process:
        yield process.wait_until_ready()


# --- bytes


def client_hello(
    version: int,
    ciphers: Sequence[int],
    *,
    compression: bytes = b"\0",
    groups: Sequence[int] = STRONG_GROUPS,
    versions: Sequence[int] = (),
) -> bytes:
    signatures = (0x0403, 0x0503, 0x0804, 0x0805, 0x0401, 0x0501, 0x0203, 0x0201)
    extensions = [
        (10, _list16(groups)),
        (11, b"\1\0"),
        (13, _list16(signatures)),
        *([(43, bytes([2 * len(versions)]) + _numbers(versions))] if versions else []),
    ]
    extended = b"".join(struct.pack(">HH", kind, len(body)) + body for kind, body in extensions)
    body = struct.pack(">H", version) + secrets.token_bytes(32) + b"\0" + _list16(ciphers)
    body += bytes([len(compression)]) + compression
    if version != SSL3:
        body += struct.pack(">H", len(extended)) + extended
    message = b"\1" + len(body).to_bytes(3, "big") + body
    return struct.pack(">BHH", HANDSHAKE, min(version, TLS10), len(message)) + message


def _numbers(numbers: Sequence[int]) -> bytes:
    return b"".join(struct.pack(">H", number) for number in numbers)


def _list16(numbers: Sequence[int]) -> bytes:
    return struct.pack(">H", 2 * len(numbers)) + _numbers(numbers)


@dataclass(frozen=True, slots=True)
class Said:
    """What the server reported to a first message."""

    version: int | None = None
    cipher: int | None = None
    compression: int | None = None
    random: bytes = b""
    messages: tuple[int, ...] = ()


REFUSED = Said()
"""The connection was closed, with an alert or without."""


def reported(server: WebhookProcess, sent: bytes) -> Said:
    kinds: list[int] = []
    hello = b""
    for kind, record in _records(server, sent):
        if kind != HANDSHAKE:
            return REFUSED
        for message, content in _messages(record):
            kinds.append(message)
            hello = content if message == SERVER_HELLO else hello
        if SERVER_HELLO_DONE in kinds:
            break
    if not hello:
        return REFUSED
    after = 35 + hello[34]
    cipher, compression = struct.unpack(">HB", hello[after : after + 3])
    version = struct.unpack(">H", hello[:2])[0]
    return Said(version, cipher, compression, hello[2:34], tuple(kinds))


def _messages(record: bytes) -> Iterator[tuple[int, bytes]]:
    while len(record) >= 4:
        length = int.from_bytes(record[1:4], "big")
        yield record[0], record[4 : 4 + length]
        record = record[4 + length :]


def _records(server: WebhookProcess, sent: bytes) -> Iterator[tuple[int, bytes]]:
    with socket.create_connection((HOST, server.port), timeout=60) as connection:
        connection.sendall(sent)
        stream = connection.makefile("rb")
        try:
            while len(head := stream.read(5)) == 5:
                kind, _, length = struct.unpack(">BHH", head)
                yield kind, stream.read(length)
        except ConnectionError:
            pass


def agreed_ciphers(server: WebhookProcess) -> list[int]:
    """All that TLS 1.2 is spoken with, in the server's order if it has one."""
    left, found = list(ALL_CIPHERS), list[int]()
    while (cipher := reported(server, client_hello(TLS12, left)).cipher) is not None:
        found.append(cipher)
        left.remove(cipher)
    return found


# --- versions


@pytest.mark.parametrize("version", [SSL3, TLS10, TLS11])
def test_old_versions_are_refused(server: WebhookProcess, version: int) -> None:
    ciphers = ALL_CIPHERS[:256] + sorted(GOOD_EC)
    assert reported(server, client_hello(version, ciphers)) == REFUSED
    assert reported(server, client_hello(TLS12, ciphers)).version == TLS12


def test_the_first_message_of_ssl_2_is_refused(server: WebhookProcess) -> None:
    body = b"\1\0\2" + struct.pack(">HHH", 3, 0, 16) + b"\7\0\xc0" + os.urandom(16)
    assert reported(server, struct.pack(">H", 0x8000 | len(body)) + body) == REFUSED


def test_old_versions_are_refused_in_the_list_of_versions_as_well(server: WebhookProcess) -> None:
    assert reported(server, client_hello(TLS12, sorted(GOOD_EC), versions=(TLS11, TLS10, SSL3))) == REFUSED
    assert reported(server, client_hello(TLS12, sorted(GOOD_EC), versions=(TLS12, TLS11))).version == TLS12


@pytest.mark.parametrize(("version", "name"), [("TLSv1_2", "TLSv1.2"), ("TLSv1_3", "TLSv1.3")])
def test_new_versions_are_taken(server: WebhookProcess, version: str, name: str) -> None:
    context = trusting()
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    with _connected(server, context) as connection:
        assert connection.version() == name
        assert connection.compression() is None
        cipher = connection.cipher()
        assert cipher is not None
        assert cipher[2] >= 128
        assert "GCM" in cipher[0] or "CHACHA20" in cipher[0]


def test_a_client_that_was_made_to_fall_back_is_answered_by_an_alert(server: WebhookProcess) -> None:
    """To speak TLS 1.2 with one that knows 1.3 leaves a mark in the server's random bytes; to retry is refused."""
    assert reported(server, client_hello(TLS12, sorted(GOOD_EC))).random.endswith(b"DOWNGRD\1")
    assert reported(server, client_hello(TLS12, [*sorted(GOOD_EC), FALLBACK])) == REFUSED


# --- what TLS 1.2 is spoken with


def test_all_ciphers_have_forward_secrecy_and_authenticated_encryption(server: WebhookProcess) -> None:
    assert set(agreed_ciphers(server)) == GOOD_EC


def test_it_is_the_same_with_an_rsa_key(cluster: Cluster) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    now = datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "rsa")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    with WebhookProcess(SECCOMP_PROFILE, kubeconfig=cluster.kubeconfig, certificate=False) as process:
        process.secret.write(pem(certificate), private)
        process.wait_until_ready()
        assert set(agreed_ciphers(process)) == GOOD_RSA


def test_weak_curves_are_refused(server: WebhookProcess) -> None:
    assert reported(server, client_hello(TLS12, sorted(GOOD_EC), groups=WEAK_GROUPS)) == REFUSED
    assert reported(server, client_hello(TLS12, sorted(GOOD_EC), groups=(*WEAK_GROUPS, 23))).cipher in GOOD_EC


def test_nothing_is_compressed(server: WebhookProcess) -> None:
    assert reported(server, client_hello(TLS12, sorted(GOOD_EC), compression=b"\1\0")).compression == 0


def test_no_certificate_of_the_client_is_requested_and_one_changes_nothing(server: WebhookProcess) -> None:
    messages = reported(server, client_hello(TLS12, sorted(GOOD_EC))).messages
    assert SERVER_HELLO_DONE in messages
    assert CERTIFICATE_REQUEST not in messages
    foreign = Authority.create("foreign").issue_client("system:masters")
    context = trusting()
    directory = server.secret.directory.parent
    files = foreign.write(directory, "foreign")
    context.load_cert_chain(files.certificate, files.key)
    with _connected(server, context) as connection:
        assert b'"allowed":true' in _requested(connection)


# --- sessions


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_a_client_cannot_renegotiate(server: WebhookProcess) -> None:
    """Each time would cost the server much more than the client."""
    command = ["openssl", "s_client", "-tls1_2", "-connect", f"{HOST}:{server.port}"]
    done = subprocess.run(command, input=b"R\n", capture_output=True, timeout=120, check=False)
    output = done.stdout + done.stderr
    assert b"RENEGOTIATING" in output
    assert b"no renegotiation" in output or b"unexpected message" in output or b"handshake failure" in output, output


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_no_tickets_are_given_out(server: WebhookProcess, version: str) -> None:
    """Their key would be as old as the process: an attacker who gets it could read what was recorded before."""
    context = trusting()
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    with _connected(server, context) as connection:
        assert b'"allowed":true' in _requested(connection)
        session = connection.session
    assert session is None or not session.has_ticket


# --- certificate


def test_the_certificate_is_for_a_server_only_with_a_good_key_and_its_chain(server: WebhookProcess) -> None:
    shown = x509.load_pem_x509_certificates((server.secret.directory / "tls.crt").read_bytes())
    leaf, authority = shown
    with _connected(server, trusting()) as connection:
        sent = connection.getpeercert(binary_form=True)
    assert sent == leaf.public_bytes(serialization.Encoding.DER)
    leaf.verify_directly_issued_by(authority)
    for certificate in shown:
        key = certificate.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        assert key.key_size >= 256
        assert isinstance(certificate.signature_hash_algorithm, hashes.SHA256)
    usage = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not leaf.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    context = ssl.create_default_context(cadata=pem(authority).decode())
    with _connected(server, context) as connection:  # as an API server checks it
        assert connection.version() == "TLSv1.3"


# --- what is spoken in it


@pytest.mark.parametrize(
    ("offered", "chosen"), [(["h2", "http/1.1"], "http/1.1"), (["http/1.1"], "http/1.1"), (["h2"], None), ([], None)]
)
def test_only_http_1_is_spoken(server: WebhookProcess, offered: list[str], chosen: str | None) -> None:
    context = trusting()
    if offered:
        context.set_alpn_protocols(offered)
    with _connected(server, context) as connection:
        assert connection.selected_alpn_protocol() == chosen
        assert b'"allowed":true' in _requested(connection)


def test_plain_http_gets_no_answer_and_harms_no_client(server: WebhookProcess) -> None:
    for request in (b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\0" * 64):
        with socket.create_connection((HOST, server.port), timeout=60) as connection:
            connection.sendall(request)
            answer = b""
            try:
                while part := connection.recv(4096):
                    answer += part
            except ConnectionError:
                pass
        assert b"HTTP/" not in answer
    assert '"level":"error"' not in server.log
    with _connected(server, trusting()) as connection:
        assert b'"allowed":true' in _requested(connection)


def _connected(server: WebhookProcess, context: ssl.SSLContext) -> ssl.SSLSocket:
    plain = socket.create_connection((HOST, server.port), timeout=60)
    return context.wrap_socket(plain, server_hostname=HOST)


def _requested(connection: ssl.SSLSocket) -> bytes:
    head = f"POST {SECCOMP} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Type: application/json\r\n"
    connection.sendall(f"{head}Content-Length: {len(POD_REVIEW)}\r\n\r\n".encode() + POD_REVIEW)
    answer = b""
    try:
        while part := connection.recv(65536):
            answer += part
    except (ConnectionError, ssl.SSLEOFError):
        pass
    return answer
