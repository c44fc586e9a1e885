"""Certificate of the server, and trusted client CAs, read again when their files change.

Files are compared by content, every other second: they are small, and Kubernetes changes a mounted Secret by swapping a
symbolic link, which file events miss. A new pair is loaded into a context of its own, which new connections get;
existing ones continue. The old pair stays as long as a new one is unusable.
"""

import asyncio
import os
import ssl
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kube.clock import format_duration
from kube.files import read_bounded
from kube.runtime.kubeconfig import ConfigurationError
from kube.runtime.metrics import certwatcher_read_certificate_errors_total, certwatcher_read_certificate_total
from kube.runtime.polling import wait_while
from process.logging import get_logger
from webhooks.expiry import not_after
from webhooks.metrics import certificate_expiry

CERTIFICATE, KEY = "tls.crt", "tls.key"
SETTING = "server.webhooks.tls.serverCertDir"
CLIENT_CA_SETTING = "server.webhooks.tls.clientCAFile"

_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Ciphers of TLS 1.2: forward secrecy and authenticated encryption, as all those of 1.3."""

_LOOK_EVERY_SECONDS = 2.0
_PATIENCE_SECONDS = 10.0
"""Seconds that a start waits for files, since mounted Secrets may be late."""
_LARGEST_FILE = 1 << 20
_REMEDY = "mount the Secret with the certificate, or create one with `python -m webhooks certificates`"


class CertificateError(ConfigurationError):
    """The certificate or its key is unusable; the text names file and setting."""


def directory_of(setting: str) -> Path:
    return Path(setting) if setting else Path(tempfile.gettempdir(), "k8s-webhook-server", "serving-certs")


class Authorities(Protocol):
    """Authorities whose client certificates are accepted; `str()` names them in errors."""

    def authorities(self) -> bytes:
        """Return them as PEM; empty if none is accepted.

        Raises:
            CertificateError: they are unreadable.
        """


@dataclass(frozen=True, slots=True)
class AuthoritiesFile:
    path: Path

    def __str__(self) -> str:
        return f"{self.path} of {CLIENT_CA_SETTING}"

    def authorities(self) -> bytes:
        return _read(self.path, CLIENT_CA_SETTING)


class ServingCertificate:
    """Keeps the certificate of a server current; a component in the sense of `process.runner`.

    Args:
        directory: holds `tls.crt`, the chain, and `tls.key`.
        clients: authorities of client certificates; None if clients need none. A client without certificate is
        connected nevertheless: some paths are public, see `webhooks.server`.
        protocols: that the server speaks, as in ALPN.
    """

    name = "serving certificate"

    def __init__(
        self, directory: Path, clients: Authorities | None = None, *, protocols: Sequence[str] = ("http/1.1",)
    ) -> None:
        self._directory = directory
        self._clients = clients
        self._protocols = protocols
        self._tried: tuple[bytes, bytes, bytes] | None = None
        self._problem = ""
        self._current: ssl.SSLContext | None = None
        self._authorities: bytes = b""
        self._authorities_since = 0
        """Unix time; older sessions were established with other authorities."""
        self._log = get_logger("certwatcher")
        self.context = self._new_context()
        """Context for the server: gives every new connection the current pair."""
        self.context.sni_callback = self._choose

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> int | None:
        # OpenSSL calls this also for clients that send no server name.
        if self._current is not None:
            connection.context = self._current
        # Sessions of TLS 1.2 outlive contexts, and skip the verification of the client's certificate.
        session = connection.session if connection.session_reused else None
        if session is not None and session.time <= self._authorities_since:
            return ssl.ALERT_DESCRIPTION_CERTIFICATE_UNKNOWN
        return None

    async def start(self) -> None:
        """Wait for a usable pair.

        Raises:
            CertificateError: there is still none.
        """

        async def problem() -> str:
            return "" if self.refresh() else self._problem

        if left := await wait_while(problem, seconds=_PATIENCE_SECONDS, every=min(0.5, _LOOK_EVERY_SECONDS)):
            waited = f"after waiting for {format_duration(_PATIENCE_SECONDS)}"
            raise CertificateError(f"{left} ({waited}): {_REMEDY}")

    async def wait(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY_SECONDS)
            self.refresh()

    async def stop(self) -> None:
        pass

    def refresh(self) -> bool:
        """Read the files, and use them if they have changed. Return whether there is a pair to serve with."""
        try:
            certificate, key = _read(self._directory / CERTIFICATE), _read(self._directory / KEY)
            clients = b"" if self._clients is None else self._clients.authorities()
            if (certificate, key, clients) != self._tried:
                self._tried = certificate, key, clients
                certwatcher_read_certificate_total.inc()
                _check_pem(certificate, key, self._directory)
                current = self._new_context()
                _load(current, self._directory)
                if self._clients is not None and clients:
                    _trust(current, clients, str(self._clients))
                self._current = current
                if clients != self._authorities:
                    self._authorities, self._authorities_since = clients, int(time.time())
                self._problem = ""
                self._note_expiry(certificate)
                self._log.info("Updated current TLS certificate", directory=str(self._directory))
        except CertificateError as error:
            self._log_problem(str(error))
        return self._current is not None

    def _new_context(self) -> ssl.SSLContext:
        return _server_context(self._protocols, asks_clients=self._clients is not None)

    def _note_expiry(self, certificate: bytes) -> None:
        certificate_expiry.clear()
        try:
            certificate_expiry.labels(str(self._directory / CERTIFICATE)).set(not_after(certificate))
        except ValueError as error:
            self._log.warning("Cannot read the expiration of the TLS certificate", error=str(error))

    def _log_problem(self, problem: str) -> None:
        """Log each problem once: the files are read so often that it would flood the log."""
        if problem != self._problem:
            self._problem = problem
            certwatcher_read_certificate_errors_total.inc()
            what_now = "keeping the one in use" if self._current is not None else "waiting for one"
            self._log.error(f"Could not read the TLS certificate, {what_now}", error=problem)


def _read(path: Path, setting: str = SETTING) -> bytes:
    try:
        return read_bounded(path, most=_LARGEST_FILE)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise CertificateError(f"cannot read {path} of {setting}: {reason}") from error
    except ValueError:
        raise CertificateError(f"{path} of {setting} is larger than {_LARGEST_FILE} bytes") from None


def _check_pem(certificate: bytes, key: bytes, directory: Path) -> None:
    """Check that files contain PEM, since errors of OpenSSL about this are unclear."""
    for content, kind, name in ((certificate, b"CERTIFICATE", CERTIFICATE), (key, b"PRIVATE KEY", KEY)):
        if kind + b"-----" not in content:
            raise CertificateError(f"{directory / name} of {SETTING} holds no {kind.decode().lower()} in PEM format")


def _load(context: ssl.SSLContext, directory: Path) -> None:
    """Load the pair. If files change meanwhile and do not match, the next look notices it."""
    try:
        # An empty password, so that OpenSSL does not prompt for one at the terminal if the key is encrypted.
        context.load_cert_chain(directory / CERTIFICATE, directory / KEY, password="")
    except (OSError, ValueError) as error:
        pair = f"{directory / CERTIFICATE} and {KEY} beside it"
        raise CertificateError(f"cannot use {pair} as certificate and key of {SETTING}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    known = {"KEY_VALUES_MISMATCH": "the key does not belong to the certificate", "BAD_DECRYPT": "the key is encrypted"}
    reason = getattr(error, "reason", None)
    return known.get(reason or "", str(reason or error))


def _trust(context: ssl.SSLContext, authorities: bytes, origin: str) -> None:
    try:
        context.load_verify_locations(cadata=authorities.decode("ascii"))
    except (OSError, ValueError) as error:
        raise CertificateError(f"{origin} holds no certificates in PEM format") from error


def _server_context(protocols: Sequence[str], *, asks_clients: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if asks_clients:
        context.verify_mode = ssl.CERT_OPTIONAL
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    # A new handshake in a connection costs the server much and a client little. OpenSSL 3 refuses it anyway.
    context.options |= ssl.OP_NO_RENEGOTIATION
    # The key of tickets is as old as the process, and would decrypt recordings. API servers keep none.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.set_alpn_protocols(protocols)
    return context
