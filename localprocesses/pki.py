"""A certificate authority of one's own, its certificates as files, and kubeconfigs with them."""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import yaml

from kube.objects import Object
from kube.x509 import Certificate, Pair, PrivateKey, UnusablePair, make_ca, make_client, make_serving, read_pair

_VALIDITY = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes

    def write(self, directory: Path, name: str) -> "CertificateFiles":
        files = CertificateFiles(directory / f"{name}.crt", directory / f"{name}.key")
        files.certificate.write_bytes(self.certificate)
        write_private(files.key, self.key)
        return files


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    certificate: Path
    key: Path


class Authority:
    """Issues certificates that everything in the cluster trusts."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair

    @classmethod
    def create(cls, common_name: str, *, key: PrivateKey | None = None) -> Self:
        """Create an authority with this key, by default a new ECDSA key."""
        return cls(make_ca(common_name, now=datetime.now(UTC), lifetime=_VALIDITY, key=key))

    @classmethod
    def load(cls, files: CertificateFiles) -> Self:
        """Load the authority.

        Raises:
            UnusablePair: the files hold no certificate with its key.
        """
        try:
            return cls(read_pair(files.certificate.read_bytes(), files.key.read_bytes(), is_own=True))
        except UnusablePair as error:
            raise UnusablePair(f"the authority in {files.certificate} {error}") from None

    @property
    def certificate(self) -> Certificate:
        return self._pair.certificate

    @property
    def key(self) -> PrivateKey:
        return self._pair.key

    @property
    def bundle(self) -> bytes:
        """The authority's own certificate, PEM, for clients that trust it."""
        return self._pair.certificate_pem

    def key_pair(self) -> KeyPair:
        return _pems(self._pair)

    def issue_client(self, user: str, groups: Iterable[str] = ()) -> KeyPair:
        """Issue a client certificate for `user` in `groups`."""
        return _pems(make_client(self._pair, user, groups, now=datetime.now(UTC), lifetime=_VALIDITY))

    def issue_server(self, names: Sequence[str]) -> KeyPair:
        """Issue a serving certificate for host names and IP addresses."""
        return _pems(make_serving(self._pair, names, now=datetime.now(UTC), lifetime=_VALIDITY))


def serving_pair(names: Sequence[str]) -> KeyPair:
    """Certificate for a server, with that of its authority, which signed nothing else: clients can trust both."""
    authority = Authority.create(f"authority of {names[0]}")
    pair = authority.issue_server(names)
    return KeyPair(pair.certificate + authority.bundle, pair.key)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, from the first moment on."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(content)


def _pems(pair: Pair) -> KeyPair:
    return KeyPair(pair.certificate_pem, pair.key_pem)


def kubeconfig(*, name: str, url: str, ca: str, user: Object) -> str:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority-data": _base64(ca.encode())}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return yaml.safe_dump(document, sort_keys=False)


def token_credentials(token: str) -> Object:
    return {"token": token}


def client_certificate(pair: KeyPair) -> Object:
    return {
        "client-certificate-data": _base64(pair.certificate),
        "client-key-data": _base64(pair.key),
    }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
