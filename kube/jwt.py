"""JSON Web Tokens, signed with RSA and SHA-256 (`RS256`), and the keys by which others verify them."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from kube.objects import Object

_ALGORITHM = "RS256"
LEAST_BITS = 2048


class UnusableKey(ValueError):
    """Unusable key; the text continues a sentence about it."""


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A public key."""

    public: rsa.RSAPublicKey

    @property
    def id(self) -> str:
        """Key ID as API servers name keys of service accounts: the digest of the key."""
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        der = self.public.public_bytes(serialization.Encoding.DER, form)
        return _text(hashlib.sha256(der).digest())

    def json(self) -> Object:
        """JSON Web Key in its published form (RFC 7517)."""
        numbers = self.public.public_numbers()
        described = {"kty": "RSA", "use": "sig", "alg": _ALGORITHM, "kid": self.id}
        return {**described, "n": _number(numbers.n), "e": _number(numbers.e)}


@dataclass(frozen=True, slots=True)
class SigningKey:
    private: rsa.RSAPrivateKey

    @property
    def public(self) -> VerificationKey:
        return VerificationKey(self.private.public_key())

    def sign(self, claims: Mapping[str, Any]) -> str:
        """Token with these claims. Takes milliseconds."""
        header = {"alg": _ALGORITHM, "kid": self.public.id, "typ": "JWT"}
        signed = f"{_text(orjson.dumps(header))}.{_text(orjson.dumps(dict(claims)))}"
        return f"{signed}.{_text(self.private.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def __repr__(self) -> str:
        return f"SigningKey({self.public.id})"


def make_key() -> bytes:
    """Generate a signing key, as PEM. Takes some 100 ms."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=LEAST_BITS)
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def read_signing_key(pem: bytes) -> SigningKey:
    """Parse a private RSA key. Raises UnusableKey."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except TypeError:
        raise UnusableKey("is encrypted") from None
    except (ValueError, UnsupportedAlgorithm):
        raise UnusableKey("is not a private key in PEM format") from None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise UnusableKey("is not an RSA key")
    if key.key_size < LEAST_BITS:
        raise UnusableKey(f"has {key.key_size} bits, and needs at least {LEAST_BITS}")
    return SigningKey(key)


def read_verification_key(pem: bytes) -> VerificationKey:
    """Parse a public key, or take that of a private key. Raises UnusableKey."""
    if b"PRIVATE KEY-----" in pem:
        return read_signing_key(pem).public
    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        raise UnusableKey("is not a key in PEM format") from None
    if not isinstance(key, rsa.RSAPublicKey):
        raise UnusableKey("is not an RSA key")
    return VerificationKey(key)


def _number(number: int) -> str:
    return _text(number.to_bytes((number.bit_length() + 7) // 8, "big"))


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
