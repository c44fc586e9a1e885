"""Kubeconfigs for a Shoot, of short life, signed by the authority that its API server trusts for clients."""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kube.objects import Object, text

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
SHORTEST, LONGEST = timedelta(minutes=10), timedelta(days=1)
_SLACK = timedelta(minutes=5)
"""How far the clock of the API server may be behind."""
_LONGEST_NAME = 64
"""Of a subject in a certificate."""
_ISSUER = "service-account-issuer"
"""An address that is no API server."""


class CannotIssue(ValueError):
    """The text says what is missing."""


def issue(
    *,
    name: str,
    addresses: Mapping[str, str],
    authority: Object,
    cluster: str,
    user: str,
    group: str,
    now: datetime,
    lifetime: timedelta,
) -> tuple[bytes, datetime]:
    """The kubeconfig and when it expires: as asked within `SHORTEST` and `LONGEST`, but not after its authority.

    Args:
        name: of user and contexts.
        addresses: URLs of the API server by name; the first is the one of the current context.
        authority: data of the Secret with certificate and key of the authority for clients.
        cluster: certificates by which the API server is known, PEM.
        user: name of the user in the Shoot.
        group: of the user.
        now: begin of the lifetime.
        lifetime: as asked for.

    Raises: CannotIssue.
    """
    servers = {known: url for known, url in addresses.items() if known != _ISSUER and url}
    if not servers:
        raise CannotIssue("its API server has no advertised address")
    if not cluster:
        raise CannotIssue("the certificates of its API server are not known")
    issuer, signing = _loaded(authority)
    end = issuer.not_valid_after_utc
    if end <= now:
        raise CannotIssue("its authority for clients has expired")
    expires = min(now + min(max(lifetime, SHORTEST), LONGEST), end)
    certificate, key = _client_certificate(issuer, signing, user=user, group=group, now=now, expires=expires)
    ca = base64.b64encode(cluster.encode()).decode()
    contexts = {f"{name}-{known}": url for known, url in servers.items()}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": next(iter(contexts)),
        "clusters": [
            {"name": each, "cluster": {"server": url, "certificate-authority-data": ca}}
            for each, url in contexts.items()
        ],
        "contexts": [{"name": each, "context": {"cluster": each, "user": name}} for each in contexts],
        "users": [
            {
                "name": name,
                "user": {
                    "client-certificate-data": base64.b64encode(certificate).decode(),
                    "client-key-data": base64.b64encode(key).decode(),
                },
            }
        ],
    }
    return json.dumps(config).encode(), expires


def _client_certificate(
    issuer: x509.Certificate, signing: PrivateKey, *, user: str, group: str, now: datetime, expires: datetime
) -> tuple[bytes, bytes]:
    """Certificate and key, PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, group),
        x509.NameAttribute(NameOID.COMMON_NAME, _common_name(user)),
    ]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(subject))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SLACK)
        .not_valid_after(expires)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(signing, hashes.SHA256())
    )
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return certificate.public_bytes(encoding), key.private_bytes(encoding, form, serialization.NoEncryption())


def _common_name(user: str) -> str:
    """The name; of a longer one than fits, the begin and what tells it from others."""
    if len(user) <= _LONGEST_NAME:
        return user
    digest = hashlib.sha256(user.encode()).hexdigest()[:16]
    return f"{user[: _LONGEST_NAME - 17]}#{digest}"


def _loaded(authority: Object) -> tuple[x509.Certificate, PrivateKey]:
    try:
        pem = {name: base64.b64decode(text(authority.get(name)), validate=True) for name in ("ca.crt", "ca.key")}
        certificate = x509.load_pem_x509_certificate(pem["ca.crt"])
        key = serialization.load_pem_private_key(pem["ca.key"], password=None)
    except (binascii.Error, ValueError, TypeError, UnsupportedAlgorithm):
        raise CannotIssue("its authority for clients is missing or not readable") from None
    if not isinstance(key, PrivateKey):
        raise CannotIssue("its authority for clients has a key of another kind than RSA and ECDSA")
    if key.public_key() != certificate.public_key():
        raise CannotIssue("its authority for clients has a key that does not belong to its certificate")
    return certificate, key
