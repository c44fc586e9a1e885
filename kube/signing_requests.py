"""Parse CertificateSigningRequests; and make them, at the end.

The signer reads the same bytes with a parser of its own. Wherever two parsers might read different things, the request
counts as malformed: several PEM blocks, PEM headers, several lists of extensions, Microsoft's way to list extensions.
The signature is not checked here, nor is the key: the certificate is useless to the holder of another key.
"""

import base64
import ipaddress
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtensionOID, NameOID

from kube.objects import Object, mapping, mappings, spec, text, texts
from kube.x509 import Certificate, PrivateKey

KUBELET_SERVING = "kubernetes.io/kubelet-serving"
KUBE_APISERVER_CLIENT = "kubernetes.io/kube-apiserver-client"

APPROVED = "Approved"
DENIED = "Denied"

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_LONGEST_REQUEST = 256 << 10
_BLOCK = re.compile(
    rb"-----BEGIN CERTIFICATE REQUEST-----[ \t]*\r?\n([A-Za-z0-9+/=\s]+)-----END CERTIFICATE REQUEST-----"
)
_EXTENSIONS = x509.ObjectIdentifier("1.2.840.113549.1.9.14")
_MICROSOFT_EXTENSIONS = x509.ObjectIdentifier("1.3.6.1.4.1.311.2.1.14")
_KNOWN_ATTRIBUTES = {NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME}
_TEXT_TYPES = {"UTF8String", "PrintableString", "IA5String", "NumericString", "BMPString", "T61String"}
"""Signers leave out text of other types, so the certificate would lack the name or the group."""
_OTHER_NAMES: dict[type, str] = {x509.RFC822Name: "email", x509.UniformResourceIdentifier: "URI"}
_UNREADABLE = (
    ValueError,
    TypeError,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
    UnsupportedAlgorithm,
)


class MalformedRequestError(Exception):
    """The bytes of a request can't be read, or can be read in more than one way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Requested contents of the certificate."""

    common_names: tuple[str, ...]
    """Usually one."""
    organizations: tuple[str, ...]
    dns_names: frozenset[str]
    ip_addresses: frozenset[IPAddress]
    others: frozenset[str]
    """Everything else, by its type: attributes of the subject, alternative names, extensions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningRequest:
    """Requester and requested contents. The API server vouches for the user and the groups."""

    username: str
    groups: tuple[str, ...]
    usages: tuple[str, ...]
    requested: Asked


def signer_of(csr: Mapping[str, Any]) -> str:
    return text(spec(csr).get("signerName"))


def is_pending(csr: Mapping[str, Any]) -> bool:
    """Whether it is neither approved nor denied."""
    status = mapping(csr.get("status"))
    conditions = mappings(status.get("conditions"))
    return not status.get("certificate") and all(c.get("type") not in (APPROVED, DENIED) for c in conditions)


def is_approved(csr: Mapping[str, Any]) -> bool:
    """Whether the signer issues its certificate, or has issued it."""
    conditions = mappings(mapping(csr.get("status")).get("conditions"))
    return [each.get("type") for each in conditions if each.get("status") == "True"] == [APPROVED]


def with_decision(csr: Object, condition_type: str, reason: str, message: str) -> Object:
    """Body of the request for its subresource `approval`; the API server adds the times."""
    condition = {"type": condition_type, "status": "True", "reason": reason, "message": message}
    status = mapping(csr.get("status"))
    return {**csr, "status": {**status, "conditions": [*mappings(status.get("conditions")), condition]}}


def parse(csr: Mapping[str, Any]) -> SigningRequest:
    """Parse a CertificateSigningRequest. Raises MalformedRequestError."""
    reported = spec(csr)
    return SigningRequest(
        username=text(reported.get("username")),
        groups=tuple(texts(reported.get("groups"))),
        usages=tuple(texts(reported.get("usages"))),
        requested=requested(text(reported.get("request"))),
    )


def requested(request: str) -> Asked:
    """Requested contents in the base64 text of `spec.request`. Raises MalformedRequestError."""
    if len(request) > _LONGEST_REQUEST:
        raise MalformedRequestError(f"it is longer than {_LONGEST_REQUEST} characters")
    try:
        der = _der(base64.b64decode(request, validate=True))
    except ValueError as error:
        raise MalformedRequestError(f"its base64 encoding is broken: {error}") from error
    try:
        with warnings.catch_warnings():
            # Names of Nodes, and so common names, are often longer than the 64 characters that X.509 permits.
            warnings.simplefilter("ignore")
            return _requested(x509.load_der_x509_csr(der))
    except _UNREADABLE as error:
        raise MalformedRequestError(f"it is not PKCS#10: {error}") from error


def _der(pem: bytes) -> bytes:
    if pem.count(b"-----BEGIN") > 1:
        raise MalformedRequestError("it has more than one PEM block")
    found = _BLOCK.search(pem)
    if found is None:
        raise MalformedRequestError("PEM block type must be CERTIFICATE REQUEST")
    return base64.b64decode(b"".join(found[1].split()), validate=True)


def _requested(csr: x509.CertificateSigningRequest) -> Asked:
    attributes = Counter(attribute.oid for attribute in csr.attributes)
    if attributes[_MICROSOFT_EXTENSIONS] or attributes[_EXTENSIONS] > 1:
        raise MalformedRequestError("it has extensions more than once, or in an ambiguous form")
    names = _alternative_names(csr)
    addresses = frozenset(names.get_values_for_type(x509.IPAddress)) if names else frozenset()
    if not all(isinstance(address, IPAddress) for address in addresses):
        raise MalformedRequestError("it requests a range of IP addresses")
    return Asked(
        common_names=_values(csr.subject, NameOID.COMMON_NAME),
        organizations=_values(csr.subject, NameOID.ORGANIZATION_NAME),
        dns_names=frozenset(names.get_values_for_type(x509.DNSName)) if names else frozenset(),
        ip_addresses=frozenset(address for address in addresses if isinstance(address, IPAddress)),
        others=frozenset(_others(csr, names)),
    )


def _values(name: x509.Name, oid: x509.ObjectIdentifier) -> tuple[str, ...]:
    found = name.get_attributes_for_oid(oid)
    if not all(isinstance(each.value, str) and _type_of(each) in _TEXT_TYPES for each in found):
        raise MalformedRequestError("its subject has strings of a type that signers omit")
    return tuple(str(each.value) for each in found)


def _type_of(attribute: x509.NameAttribute[str | bytes]) -> str:
    return attribute._type.name  # noqa: SLF001 - there is no public way to it


def _others(csr: x509.CertificateSigningRequest, names: x509.SubjectAlternativeName | None) -> Iterator[str]:
    for attribute in csr.subject:
        if attribute.oid not in _KNOWN_ATTRIBUTES:
            yield f"subject:{attribute.rfc4514_attribute_name}"
    for name in names or ():
        if not isinstance(name, x509.DNSName | x509.IPAddress):
            yield _OTHER_NAMES.get(type(name), type(name).__name__)
    for extension in csr.extensions:
        if extension.oid != ExtensionOID.SUBJECT_ALTERNATIVE_NAME:
            yield f"extension:{extension.oid.dotted_string}"


def _alternative_names(csr: x509.CertificateSigningRequest) -> x509.SubjectAlternativeName | None:
    try:
        return csr.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None


# --- making


@dataclass(frozen=True, slots=True)
class Holder:
    """Subject of a certificate, or of a request for one, and its other names."""

    subject: x509.Name
    others: x509.SubjectAlternativeName | None = None

    @property
    def common_name(self) -> str:
        return next(iter(self._values(NameOID.COMMON_NAME)), "")

    @property
    def organizations(self) -> list[str]:
        return self._values(NameOID.ORGANIZATION_NAME)

    def _values(self, oid: x509.ObjectIdentifier) -> list[str]:
        return [str(attribute.value) for attribute in self.subject.get_attributes_for_oid(oid)]


def holder_of(certificate: Certificate) -> Holder:
    try:
        others = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        others = None
    with _long_names():
        return Holder(certificate.subject, others)


def public_key(key: PrivateKey) -> bytes:
    """Public key in PKIX form, as DER."""
    return _public(key.public_key())


def client(user: str, groups: Iterable[str]) -> Holder:
    """Holder for a user in groups, as API servers see it."""
    with _long_names():
        names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group, _validate=False) for group in groups]
        return Holder(x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, user, _validate=False)]))


def make_request(key: ec.EllipticCurvePrivateKey, holder: Holder) -> bytes:
    """Request to a CA for a certificate, in PKCS#10 form, as PEM."""
    with _long_names():
        builder = x509.CertificateSigningRequestBuilder().subject_name(holder.subject)
        if holder.others is not None:
            builder = builder.add_extension(holder.others, critical=False)
        return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def public_key_of_request(pem: bytes) -> bytes | None:
    """Public key in PKIX form, as DER; None: it is no request, or has a key of an unknown kind."""
    try:
        with _long_names():
            return _public(x509.load_pem_x509_csr(pem).public_key())
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None


def _public(key: CertificatePublicKeyTypes) -> bytes:
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


@contextmanager
def _long_names() -> Iterator[None]:
    """Permit long names: those of users often exceed the 64 characters of X.509; API servers accept them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
