"""A certificate authority of one's own: elliptic curve keys, so that a whole cluster's worth takes milliseconds."""

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALIDITY = timedelta(days=365)
_CLOCK_SKEW = timedelta(hours=1)


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

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self.certificate = certificate
        self.key = key

    @classmethod
    def create(cls, common_name: str) -> Self:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        certificate = (
            _builder(name, name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key)

    @classmethod
    def load(cls, files: CertificateFiles) -> Self:
        key = serialization.load_pem_private_key(files.key.read_bytes(), password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError(f"{files.key}: not the key of an authority of this package")
        return cls(x509.load_pem_x509_certificate(files.certificate.read_bytes()), key)

    @property
    def bundle(self) -> bytes:
        """The authority's own certificate, PEM: what a client has to trust."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def key_pair(self) -> KeyPair:
        return KeyPair(self.bundle, _pem(self.key))

    def issue_client(self, user: str, groups: Iterable[str] = ()) -> KeyPair:
        """A client certificate that the API server takes for `user` in `groups`."""
        subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject.append(x509.NameAttribute(NameOID.COMMON_NAME, user))
        return self._issue(x509.Name(subject), ExtendedKeyUsageOID.CLIENT_AUTH, ())

    def issue_server(self, names: Sequence[str]) -> KeyPair:
        """A serving certificate for host names and IP addresses."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        return self._issue(subject, ExtendedKeyUsageOID.SERVER_AUTH, [_general_name(name) for name in names])

    def _issue(self, subject: x509.Name, usage: x509.ObjectIdentifier, names: Sequence[x509.GeneralName]) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(subject, self.certificate.subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), _pem(key))


def serving_pair(names: Sequence[str]) -> KeyPair:
    """A certificate for a server, with that of the authority, which nobody else has: to trust all of it is enough."""
    authority = Authority.create(f"authority of {names[0]}")
    pair = authority.issue_server(names)
    return KeyPair(pair.certificate + authority.bundle, pair.key)


def signing_key() -> bytes:
    """A private key, PEM, for the tokens of service accounts."""
    return _pem(ec.generate_private_key(ec.SECP256R1()))


def write_private(path: Path, content: bytes) -> None:
    """Writes a file that only its owner can read, from the first moment on."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(content)


def _builder(subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _VALIDITY)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    # PKCS#1-style "EC PRIVATE KEY" is what every reader of Kubernetes components knows.
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
