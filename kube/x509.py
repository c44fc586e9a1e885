"""X.509: CAs, and the certificates of servers and clients that they sign.

Generated keys are ECDSA on P-256: a whole cluster's worth takes milliseconds. RSA keys are for programs that require
them; they take a second, off the event loop (`kube.runtime.threads.KEYS`). Texts are PEM. Only this module,
`kube/signing_requests.py` for requests of others, and `kube/jwt.py` import `cryptography`.
"""

import hashlib
import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_Extension = TypeVar("_Extension", bound=x509.ExtensionType)
Certificate = x509.Certificate
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

_SLACK = timedelta(hours=1)
"""Tolerated lag of the clocks of those who check a certificate."""
_LONGEST_NAME = 64
"""Characters of a subject's common name."""


class UnusablePair(ValueError):
    """A certificate and a key that can't be used together; the text continues a sentence about them."""


@dataclass(frozen=True, slots=True)
class Pair:
    certificate: Certificate
    key: PrivateKey

    @property
    def certificate_pem(self) -> bytes:
        return pem(self.certificate)

    @property
    def key_pem(self) -> bytes:
        return key_pem(self.key)

    def __repr__(self) -> str:
        return f"Pair({self.certificate.serial_number:x})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Contents of a certificate, except its key, its validity period, and its signer."""

    common_name: str
    organizations: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """DNS names and IP addresses."""
    is_server: bool = False
    is_client: bool = False
    is_authority: bool = False

    def says_the_same_as(self, other: "Profile") -> bool:
        """Whether the contents are equal, in any order of names."""
        return (
            self.common_name == other.common_name
            and set(self.organizations) == set(other.organizations)
            and {*map(_canonical, self.names)} == {*map(_canonical, other.names)}
            and (self.is_server, self.is_client) == (other.is_server, other.is_client)
            and self.is_authority == other.is_authority
        )


# --- reading


def pem(*certificates: Certificate) -> bytes:
    return b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in certificates)


def read_pair(certificate: bytes, key: bytes, *, is_own: bool = False) -> Pair:
    """Load a certificate and its key; skip the slow check of RSA numbers if it `is_own`. Raises UnusablePair."""
    try:
        loaded = x509.load_pem_x509_certificate(certificate)
        private = serialization.load_pem_private_key(key, password=None, unsafe_skip_rsa_key_validation=is_own)
        public = loaded.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise UnusablePair("is missing or not readable") from None
    if not isinstance(private, PrivateKey):
        raise UnusablePair("has a key that is neither RSA nor ECDSA")
    if private.public_key() != public:
        raise UnusablePair("has a key that does not belong to its certificate")
    return Pair(loaded, private)


def read_rsa_key(key: bytes) -> rsa.RSAPrivateKey | None:
    """Load an own RSA key; None: it is missing, broken, or of another kind."""
    try:
        private = serialization.load_pem_private_key(key, password=None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return private if isinstance(private, rsa.RSAPrivateKey) else None


def load_pair(certificate: bytes | None, key: bytes | None) -> Pair | None:
    """Load a pair that was made here; None if it is missing, broken, or has a key of another kind than ECDSA."""
    try:
        pair = read_pair(certificate or b"", key or b"")
    except UnusablePair:
        return None
    return pair if isinstance(pair.key, ec.EllipticCurvePrivateKey) else None


def load_certificates(bundle: bytes | None) -> tuple[Certificate, ...]:
    """Certificates of a PEM text; none if it is missing or broken."""
    try:
        return tuple(x509.load_pem_x509_certificates(bundle or b""))
    except ValueError:
        return ()


def names_of(certificate: Certificate) -> set[str]:
    """DNS names and IP addresses of a server."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return set()
    addresses: Iterable[object] = found.get_values_for_type(x509.IPAddress)
    return {*found.get_values_for_type(x509.DNSName), *map(str, addresses)}


def profile_of(certificate: Certificate) -> Profile:
    def extension(kind: type[_Extension]) -> _Extension | None:
        try:
            return certificate.extensions.get_extension_for_class(kind).value
        except (x509.ExtensionNotFound, ValueError):
            return None

    def subject(kind: x509.ObjectIdentifier) -> tuple[str, ...]:
        return tuple(str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(kind))

    usages = set(extension(x509.ExtendedKeyUsage) or ())
    constraints = extension(x509.BasicConstraints)
    return Profile(
        common_name="".join(subject(NameOID.COMMON_NAME)),
        organizations=subject(NameOID.ORGANIZATION_NAME),
        names=tuple(names_of(certificate)),
        is_server=ExtendedKeyUsageOID.SERVER_AUTH in usages,
        is_client=ExtendedKeyUsageOID.CLIENT_AUTH in usages,
        is_authority=constraints is not None and constraints.ca,
    )


def digest(certificate: Certificate) -> bytes:
    """SHA-256 of the certificate as DER."""
    return certificate.fingerprint(hashes.SHA256())


def is_signed_by(certificate: Certificate, ca: Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


# --- making


def make_signing_key() -> bytes:
    """Private key for the tokens of service accounts, as SEC 1: an API server does not verify with PKCS #8."""
    return key_pem(ec.generate_private_key(ec.SECP256R1()), serialization.PrivateFormat.TraditionalOpenSSL)


def make_ca(name: str, *, now: datetime, lifetime: timedelta, key: PrivateKey | None = None) -> Pair:
    """CA that may sign certificates of servers and clients, and no other CAs; by default with a new ECDSA key.

    The time in its name distinguishes it from its predecessors.
    """
    key = key or make_key()
    subject = x509.Name([_common_name(f"{name} {now:%Y-%m-%dT%H:%M:%SZ}"[-_LONGEST_NAME:])])
    builder = (
        _certificate(subject, subject, key, now - _SLACK, now + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
    )
    return Pair(builder.sign(key, hashes.SHA256()), key)


def make_serving(ca: Pair, names: Sequence[str], *, now: datetime, lifetime: timedelta) -> Pair:
    """Certificate for a server with these DNS names and IP addresses. It does not outlive its CA."""
    subject = x509.Name([_common_name(names[0][:_LONGEST_NAME])])
    usage = ExtendedKeyUsageOID.SERVER_AUTH
    return _issued(ca, subject, usage, since=now - _SLACK, until=now + lifetime, names=names)


def make_client(
    ca: Pair, user: str, groups: Iterable[str] = (), *, now: datetime, lifetime: timedelta, slack: timedelta = _SLACK
) -> Pair:
    """Certificate that an API server accepts for a user in groups. It does not outlive its CA.

    A user's name that is too long for a certificate is cut, and ends with a hash that distinguishes it. `slack` is the
    tolerated lag of the API server's clock.
    """
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*organizations, _common_name(_fitting(user))])
    return _issued(ca, subject, ExtendedKeyUsageOID.CLIENT_AUTH, since=now - slack, until=now + lifetime)


def make_rsa_key(bits: int) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def rsa_key_pem(key: PrivateKey) -> bytes:
    """Key as PKCS #1, which older programs read, too."""
    return key_pem(key, serialization.PrivateFormat.TraditionalOpenSSL)


def ssh_public_key(key: PrivateKey) -> bytes:
    """Line for authorized_keys."""
    form = serialization.PublicFormat.OpenSSH
    return key.public_key().public_bytes(serialization.Encoding.OpenSSH, form) + b"\n"


def make_from_profile(
    profile: Profile, key: PrivateKey, *, ca: Pair | None, now: datetime, lifetime: timedelta
) -> Pair:
    """Certificate for a key; self-signed without `ca`. It may outlive its CA."""
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in profile.organizations]
    subject = x509.Name([*organizations, _common_name(profile.common_name)])
    usages = [
        *([ExtendedKeyUsageOID.SERVER_AUTH] if profile.is_server else []),
        *([ExtendedKeyUsageOID.CLIENT_AUTH] if profile.is_client else []),
    ]
    issuer = ca.certificate.subject if ca else subject
    builder = (
        _certificate(subject, issuer, key, now - _SLACK, now + lifetime)
        .add_extension(x509.BasicConstraints(ca=profile.is_authority, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=profile.is_authority, signs=True, enciphers_keys=True), critical=True)
    )
    if usages:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    if ca:
        builder = builder.add_extension(_authority(ca), critical=False)
    if profile.names:
        # Two spellings may be of one address.
        alternatives = [_general_name(name) for name in dict.fromkeys(map(_canonical, profile.names))]
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return Pair(builder.sign(ca.key if ca else key, hashes.SHA256()), key)


def make_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _issued(
    ca: Pair,
    subject: x509.Name,
    usage: x509.ObjectIdentifier,
    *,
    since: datetime,
    until: datetime,
    names: Sequence[str] = (),
) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _certificate(subject, ca.certificate.subject, key, since, min(until, ca.certificate.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(_authority(ca), critical=False)
    )
    if names:
        alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
        builder = builder.add_extension(alternatives, critical=False)
    return Pair(builder.sign(ca.key, hashes.SHA256()), key)


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: PrivateKey, since: datetime, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(since)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _authority(ca: Pair) -> x509.AuthorityKeyIdentifier:
    """Identifier of the CA as stated in its certificate: not all compute it from the key in the same way."""
    try:
        own = ca.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except (x509.ExtensionNotFound, ValueError):
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.key.public_key())
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def _usage(*, signs_certificates: bool, signs: bool = False, enciphers_keys: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=signs or not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=enciphers_keys,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _common_name(name: str) -> x509.NameAttribute[str]:
    return x509.NameAttribute(NameOID.COMMON_NAME, name)


def _fitting(user: str) -> str:
    if len(user) <= _LONGEST_NAME:
        return user
    digest = hashlib.sha256(user.encode()).hexdigest()[:16]
    return f"{user[: _LONGEST_NAME - 17]}#{digest}"


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _canonical(name: str) -> str:
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name


def key_pem(key: PrivateKey, form: serialization.PrivateFormat = serialization.PrivateFormat.PKCS8) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
