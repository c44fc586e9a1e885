"""Certificate requests as kubelets make them, and as no one should make them.

    signing_request(user="system:node:n1", dns=["n1"], ips=["10.0.0.1"])

makes the PKCS#10 part with a real key; `csr_object` wraps it as the API server stores it. What the library refuses to
build is written in DER by hand: `hand_made`.
"""

import base64
import ipaddress
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kube.objects import Object

SERVING = "kubernetes.io/kubelet-serving"
CLIENT = "kubernetes.io/kube-apiserver-client"
EXTENSIONS = "1.2.840.113549.1.9.14"
MICROSOFT_EXTENSIONS = "1.3.6.1.4.1.311.2.1.14"
COMMON_NAME, ORGANIZATION = "2.5.4.3", "2.5.4.10"
SERVING_USAGES = ("digital signature", "server auth")
CLIENT_USAGES = ("digital signature", "key encipherment", "client auth")


@cache
def key() -> ec.EllipticCurvePrivateKey:
    """Always the same, so that a request is the same in each run."""
    return ec.derive_private_key(1 << 200, ec.SECP256R1())


def signing_request(
    common_names: Sequence[str] | str,
    *,
    organizations: Iterable[str] = ("system:nodes",),
    dns: Iterable[str] = (),
    ips: Iterable[str] = (),
    others: Iterable[x509.GeneralName] = (),
    subject: Iterable[x509.NameAttribute[str]] = (),
    extensions: Iterable[x509.ExtensionType] = (),
    private_key: ec.EllipticCurvePrivateKey | None = None,
) -> bytes:
    """PEM."""
    names = [common_names] if isinstance(common_names, str) else common_names
    whole = [*subject, *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations)]
    whole += [x509.NameAttribute(NameOID.COMMON_NAME, name) for name in names]
    sans = [*map(x509.DNSName, dns), *(x509.IPAddress(ipaddress.ip_address(ip)) for ip in ips), *others]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(whole))
    if sans:
        builder = builder.add_extension(x509.SubjectAlternativeName(sans), critical=False)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    signed = builder.sign(private_key or key(), hashes.SHA256(), ecdsa_deterministic=True)
    return signed.public_bytes(serialization.Encoding.PEM)


def csr_object(
    pem: bytes,
    *,
    name: str = "csr",
    user: str = "",
    groups: Sequence[str] = ("system:nodes", "system:authenticated"),
    signer: str = SERVING,
    usages: Sequence[str] | None = None,
) -> Object:
    """As the API server gives it, by default with the usages that belong to the signer; when it creates one, it replaces user and groups by those that it knows."""
    wanted = (CLIENT_USAGES if signer == CLIENT else SERVING_USAGES) if usages is None else usages
    spec: Object = {"request": base64.b64encode(pem).decode(), "signerName": signer, "usages": list(wanted)}
    if user:
        spec |= {"username": user, "groups": list(groups)}
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name, "creationTimestamp": "2024-05-01T12:00:00Z"},
        "spec": spec,
    }


def node_object(name: str, **addresses: str | Sequence[str]) -> Object:
    """`Hostname="n1", InternalIP=["10.0.0.1", "10.0.0.2"]`."""
    listed: list[dict[str, Any]] = []
    for kind, values in addresses.items():
        each = [values] if isinstance(values, str) else values
        listed += [{"type": kind, "address": value} for value in each]
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"addresses": listed}}


# --- DER by hand


def der(tag: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    if len(body) < 128:
        return bytes([tag, len(body)]) + body
    length = len(body).to_bytes((len(body).bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + body


def oid(dotted: str) -> bytes:
    first, second, *rest = map(int, dotted.split("."))
    body = bytes([40 * first + second])
    for value in rest:
        digits = [value & 0x7F]
        while value := value >> 7:
            digits.append(0x80 | value & 0x7F)
        body += bytes(reversed(digits))
    return der(0x06, body)


def dns_extensions(*names: str) -> bytes:
    """A list of one extension, the alternative names."""
    sans = der(0x30, *(der(0x82, name.encode()) for name in names))
    return der(0x30, der(0x30, oid("2.5.29.17"), der(0x04, sans)))


def attribute(dotted: str, *values: bytes) -> bytes:
    return der(0x30, oid(dotted), der(0x31, *values))


def hand_made(subject: Iterable[tuple[str, int, bytes]], *attributes: bytes) -> bytes:
    """DER of a request; subject: types, tags and bytes of its parts. Attributes are put in the order that DER wants."""
    private = key()
    parts = [der(0x31, der(0x30, oid(kind), der(tag, value))) for kind, tag, value in subject]
    public = private.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    info = der(0x30, b"\x02\x01\x00", der(0x30, *parts), public, der(0xA0, *sorted(attributes)))
    signature = private.sign(info, ec.ECDSA(hashes.SHA256()))
    return der(0x30, info, der(0x30, oid("1.2.840.10045.4.3.2")), der(0x03, b"\0", signature))


def pem(body: bytes, label: str = "CERTIFICATE REQUEST") -> bytes:
    return b"-----BEGIN %s-----\n%s-----END %s-----\n" % (label.encode(), base64.encodebytes(body), label.encode())
