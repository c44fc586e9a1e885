"""Certificates with their keys: ECDSA on P-256, as PEM."""

import datetime
import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_SLACK = datetime.timedelta(hours=1)
"""How far the clocks of API servers may be behind."""


@dataclass(frozen=True, slots=True)
class Pair:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> bytes:
        return pem(self.certificate)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def __repr__(self) -> str:
        return f"Pair({self.certificate.serial_number:x})"


def pem(*certificates: x509.Certificate) -> bytes:
    return b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in certificates)


def load_pair(certificate: bytes | None, key: bytes | None) -> Pair | None:
    """The pair of two PEM texts; None if they are missing, broken, or do not belong together."""
    try:
        loaded = x509.load_pem_x509_certificate(certificate or b"")
        private = serialization.load_pem_private_key(key or b"", password=None)
        matches = loaded.public_key() == private.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return Pair(loaded, private) if matches and isinstance(private, ec.EllipticCurvePrivateKey) else None


def load_certificates(bundle: bytes | None) -> tuple[x509.Certificate, ...]:
    """The certificates of a PEM text; none if it is missing or broken."""
    try:
        return tuple(x509.load_pem_x509_certificates(bundle or b""))
    except ValueError:
        return ()


def make_ca(name: str, *, now: datetime.datetime, lifetime: datetime.timedelta) -> Pair:
    """A CA that may sign certificates of servers and nothing below."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name} {now:%Y-%m-%dT%H:%M:%SZ}"[-64:])])
    builder = (
        _certificate(subject, subject, key, now, now + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
    )
    return Pair(builder.sign(key, hashes.SHA256()), key)


def make_serving(ca: Pair, names: Sequence[str], *, now: datetime.datetime, lifetime: datetime.timedelta) -> Pair:
    """A certificate for a server with these DNS names and IP addresses."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    until = min(now + lifetime, ca.certificate.not_valid_after_utc)
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.key.public_key())
    builder = (
        _certificate(subject, ca.certificate.subject, key, now, until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(authority, critical=False)
    )
    return Pair(builder.sign(ca.key, hashes.SHA256()), key)


def names_of(certificate: x509.Certificate) -> set[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return set()
    addresses: Iterable[object] = found.get_values_for_type(x509.IPAddress)
    return {*found.get_values_for_type(x509.DNSName), *map(str, addresses)}


def is_signed_by(certificate: x509.Certificate, ca: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime.datetime,
    until: datetime.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SLACK)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
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
